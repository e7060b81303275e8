package savedcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"

	"goblin/registry/rawjson"
)

// Limits of a path and of the document that it reads.
const (
	maxPath     = 1000     // bytes
	maxDescents = 2        // ".." in a path; each visits a whole subtree
	maxDocument = 64 << 20 // bytes
	maxNested   = 200      // depth
	// maxSteps is the sum of the depths of all values, for ".." and for removed values.
	maxSteps = 10 << 20
	// maxRootFilter is the size of documents, in bytes, for filters that use the root.
	// They may read the whole document for each value.
	maxRootFilter = 64 << 10
)

// parsePath parses a JSONPath (RFC 9535).
func parsePath(s string) (path *jsonpath.Path, err error) {
	defer func() {
		if recover() != nil { // a defect of the library
			path, err = nil, errors.New("malformed path")
		}
	}()
	switch {
	case !strings.HasPrefix(s, "$"):
		return nil, errors.New(`it does not begin with "$"; write a JSONPath such as $.content[0].text`)
	case len(s) > maxPath:
		return nil, fmt.Errorf("longer than %d bytes", maxPath)
	case strings.Count(s, "..") > maxDescents:
		return nil, fmt.Errorf(`more than %d ".."`, maxDescents)
	}
	path, err = jsonpath.Parse(s)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "jsonpath: "))
	}
	return path, nil
}

// isMember reports whether a path is the member name of the root, or with below, a value
// inside of it.
func isMember(path, name string, below bool) bool {
	p, err := parsePath(path)
	if err != nil {
		return false
	}
	segments := p.Query().Segments()
	if len(segments) == 0 || len(segments) > 1 && !below || segments[0].IsDescendant() {
		return false
	}
	selectors := segments[0].Selectors()
	return len(selectors) == 1 && selectors[0] == spec.Name(name)
}

// document is a decoded answer.
type document struct {
	root   any
	size   int // bytes
	values int
	depth  int
	steps  int // sum of the depths of all values
}

func decodeDocument(text []byte) (*document, error) {
	if len(text) > maxDocument {
		return nil, errors.New("the answer is larger than 64 MiB")
	}
	if err := rawjson.Valid(text); err != nil {
		return nil, err
	}
	doc := &document{size: len(text)}
	doc.depth, doc.steps, doc.values = nesting(text)
	if doc.depth > maxNested {
		return nil, fmt.Errorf("the answer is nested more than %d deep", maxNested)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc.root); err != nil {
		return nil, err
	}
	return doc, nil
}

// nesting returns the depth of a valid JSON text, the sum of the depths of its values and
// their number.
func nesting(text []byte) (deepest, steps, values int) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = rawjson.AfterString(text, i) - 1
		case '{', '[':
			depth++
			values++
			deepest = max(deepest, depth)
			steps += depth
		case ',':
			steps += depth
			values++
		case '}', ']':
			depth--
		}
	}
	return deepest, steps, values + 1
}

// nodes returns the values that a path selects.
func (d *document) nodes(path string) (all []any, err error) {
	p, err := d.path(path, strings.Contains(path, ".."))
	if err != nil {
		return nil, err
	}
	defer recovered(&err)
	return p.Select(d.root), nil
}

// places returns the places of the values that a path selects.
func (d *document) places(path string) (all []*spec.LocatedNode, err error) {
	p, err := d.path(path, true)
	if err != nil {
		return nil, err
	}
	defer recovered(&err)
	return p.SelectLocated(d.root), nil
}

func recovered(err *error) {
	if recover() != nil { // a defect of the library
		*err = errors.New("cannot be evaluated")
	}
}

// path parses a path and refuses one that takes long. deep reports that the path visits
// whole subtrees.
func (d *document) path(s string, deep bool) (*jsonpath.Path, error) {
	_, filter, _ := strings.Cut(s, "?")
	switch {
	case deep && d.steps > maxSteps:
		return nil, errCost
	case strings.Contains(filter, "$") && d.size > maxRootFilter:
		return nil, errors.New(`the answer is larger than 64 KiB, which is the limit for "$" in a filter`)
	}
	if err := d.permits(costOf(s), strings.Count(s, "..")); err != nil {
		return nil, err
	}
	return parsePath(s)
}

var errNothing = errors.New("selects nothing")

// one returns the only value that a path selects.
func (d *document) one(path string) (json.RawMessage, error) {
	all, err := d.nodes(path)
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, errNothing
	case len(all) > 1:
		return nil, fmt.Errorf("selects %d values instead of one", len(all))
	}
	return encode(all[0])
}

func encode(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}

// removed replaces a value until [prune] removes it.
type removed struct{}

// without removes the values that paths select, and returns the document. An element of
// an array leaves no gap.
func (d *document) without(paths []string) (json.RawMessage, error) {
	var all []*spec.LocatedNode
	for _, path := range paths {
		found, err := d.places(path)
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", path, err)
		}
		all = append(all, found...)
	}
	for _, n := range all {
		d.remove(n.Path)
	}
	return encode(prune(d.root))
}

func (d *document) remove(path spec.NormalizedPath) {
	at := d.root
	for i, step := range path {
		last := i == len(path)-1
		switch step := step.(type) {
		case spec.Name:
			members, ok := at.(map[string]any)
			if !ok {
				return // inside of a removed value
			}
			if last {
				delete(members, string(step))
			}
			at = members[string(step)]
		case spec.Index:
			items, ok := at.([]any)
			if !ok || int(step) >= len(items) {
				return
			}
			if last {
				items[step] = removed{}
			}
			at = items[step]
		}
	}
}

// prune removes the elements that are marked as removed.
func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = prune(member)
		}
	case []any:
		kept := v[:0]
		for _, item := range v {
			if item != (removed{}) {
				kept = append(kept, prune(item))
			}
		}
		return kept
	}
	return v
}
