//go:build e2e

package transparency

import (
	"encoding/json"
	"slices"
	"strings"

	"goblin/gateway/e2e"
)

// jsonTree is a JSON value that keeps what a decoder loses: the order of members,
// duplicate members, and the text of numbers and strings. Only the space between tokens
// is lost.
type jsonTree struct {
	text  string   // of a scalar; otherwise "{" or "["
	names []string // of an object's members, unchanged
	items []*jsonTree
}

// parseTree parses a valid JSON text.
func parseTree(raw []byte) *jsonTree {
	if !json.Valid(raw) {
		return &jsonTree{text: "not JSON: " + string(raw)}
	}
	p := treeParser{string(raw)}
	return p.value()
}

type treeParser struct{ rest string }

func (p *treeParser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// take reads one token.
func (p *treeParser) take() string {
	p.space()
	n := 1
	switch {
	case p.rest[0] == '"':
		for ; p.rest[n] != '"'; n++ {
			if p.rest[n] == '\\' {
				n++
			}
		}
		n++
	case !strings.ContainsRune("{}[]:,", rune(p.rest[0])):
		if n = strings.IndexAny(p.rest, "{}[]:, \t\r\n"); n < 0 {
			n = len(p.rest)
		}
	}
	token := p.rest[:n]
	p.rest = p.rest[n:]
	p.space()
	return token
}

func (p *treeParser) value() *jsonTree {
	v := &jsonTree{text: p.take()}
	if v.text != "{" && v.text != "[" {
		return v
	}
	for p.rest[0] != '}' && p.rest[0] != ']' {
		if v.text == "{" {
			v.names = append(v.names, p.take())
			p.take()
		}
		v.items = append(v.items, p.value())
		if p.rest[0] == ',' {
			p.take()
		}
	}
	p.take()
	return v
}

func (v *jsonTree) String() string {
	var b strings.Builder
	v.print(&b)
	return b.String()
}

func (v *jsonTree) print(b *strings.Builder) {
	b.WriteString(v.text)
	if v.text != "{" && v.text != "[" {
		return
	}
	for i, item := range v.items {
		if i > 0 {
			b.WriteString(",\n")
		}
		if v.text == "{" {
			b.WriteString(v.names[i] + ":")
		}
		item.print(b)
	}
	b.WriteByte(v.text[0] + 2)
}

// at follows member names; it returns nil if one is missing.
func (v *jsonTree) at(path ...string) *jsonTree {
	for _, name := range path {
		i := v.index(name)
		if i < 0 {
			return nil
		}
		v = v.items[i]
	}
	return v
}

// index returns the index of a member, or the last one of several with that name, as
// decoders do.
func (v *jsonTree) index(name string) int {
	if v == nil {
		return -1
	}
	for i, raw := range slices.Backward(v.names) {
		if e2e.Str([]byte(raw)) == name {
			return i
		}
	}
	return -1
}

// drop removes a member.
func (v *jsonTree) drop(name string) {
	if i := v.index(name); i >= 0 {
		v.names, v.items = slices.Delete(v.names, i, i+1), slices.Delete(v.items, i, i+1)
	}
}

// elements returns the elements of an array.
func (v *jsonTree) elements() []*jsonTree {
	if v == nil || v.text != "[" {
		return nil
	}
	return v.items
}

// original undoes the rename of a string: it removes the prefix and normalizes the
// escapes.
func (v *jsonTree) original(prefix string) {
	if v == nil {
		return
	}
	var s string
	if json.Unmarshal([]byte(v.text), &s) == nil && v.text[0] == '"' {
		v.text = string(e2e.Marshal(strings.TrimPrefix(s, prefix)))
	}
}
