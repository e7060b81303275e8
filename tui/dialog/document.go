package dialog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/ohler55/ojg/jp"

	"goblin/registry/termtext"
)

// Limits of a document and its search.
const (
	maxData           = 16 << 20 // bytes of JSON
	maxPath           = 512      // bytes of a path
	maxDescents       = 2        // ".." in a path; each visits a whole subtree
	maxRootFilterData = 64 << 10 // bytes of JSON for filters that use the root
	maxFound          = 10_000   // values shown
)

// Document is JSON that paths can search. It is not safe for concurrent use. The path
// library needs maps, so the order of members is stored separately.
type Document struct {
	data  []byte
	all   []any                // top-level values
	order map[uintptr][]string // by object; nil before the first search
}

// ReadDocument decodes JSON of at most [maxData] bytes. Several values in a row become an
// array.
func ReadDocument(data []byte) (*Document, error) {
	if len(data) > maxData {
		return nil, errors.New("more than 16 MiB of JSON")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var all []any
	for {
		var v any
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF) && len(all) > 0:
			return &Document{data: data, all: all}, nil
		case err != nil:
			return nil, errors.New("no JSON to search")
		}
		all = append(all, filterable(v))
	}
}

func (d *Document) value() any {
	if len(d.all) == 1 {
		return d.all[0]
	}
	return d.all
}

// FindInDocument returns the values at a path as JSON, several as an array of at most
// maxFound. n is their number. size is the length of the text in bytes.
func FindInDocument(d *Document, size int, path string) (found []byte, n int, err error) {
	path = strings.TrimSpace(path)
	descents := strings.Count(path, "..")
	switch {
	case path == "" || path == "$":
		return d.encoded([]any{d.value()})
	case len(path) > maxPath:
		return nil, 0, errors.New("the path is longer than 512 bytes")
	case descents > maxDescents, descents > 0 && strings.Contains(path, "?") && size > maxRootFilterData && strings.Count(path, "..") > 1:
		return nil, 0, errors.New("too many \"..\" in the path; this would take too long")
	case strings.LastIndexByte(path, '$') > 0 && size > maxRootFilterData:
		return nil, 0, errors.New("\"$\" in a filter takes too long on this much JSON")
	}
	defer func() {
		if recover() != nil { // the library may panic
			found, n, err = nil, 0, errors.New("this path can't be evaluated")
		}
	}()
	x, err := jp.ParseString(path)
	if err != nil {
		return nil, 0, errors.New(termtext.Line(err.Error()))
	}
	return d.encoded(x.Get(d.value()))
}

// filterable replaces numbers by types that filters can compare, if the value stays
// exact.
func filterable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			v[k] = filterable(item)
		}
	case []any:
		for i, item := range v {
			v[i] = filterable(item)
		}
	case json.Number:
		s := v.String()
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && strconv.FormatFloat(f, 'f', -1, 64) == s {
			return f
		}
	}
	return v
}

func (d *Document) readOrder() {
	if d.order != nil {
		return
	}
	d.order = map[uintptr][]string{}
	t := json.NewDecoder(bytes.NewReader(d.data))
	t.UseNumber()
	for _, v := range d.all {
		d.walk(t, v)
	}
}

// walk records the order of members in v, whose text t reads. The last of duplicate
// members counts.
func (d *Document) walk(t *json.Decoder, v any) {
	open, _ := t.Token()
	switch open {
	case json.Delim('{'):
		object, _ := v.(map[string]any)
		var names []string
		for t.More() {
			token, _ := t.Token()
			name, _ := token.(string)
			d.walk(t, object[name])
			names = append(names, name)
		}
		d.order[reflect.ValueOf(object).Pointer()] = names
	case json.Delim('['):
		array, _ := v.([]any)
		for i := 0; t.More(); i++ {
			var item any
			if i < len(array) {
				item = array[i]
			}
			d.walk(t, item)
		}
	default:
		return
	}
	_, _ = t.Token() // closing delimiter
}

// write encodes a value with members in their original order.
func (d *Document) write(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		written := make(map[string]bool, len(v))
		for _, name := range d.order[reflect.ValueOf(v).Pointer()] {
			if _, has := v[name]; !has || written[name] {
				continue
			}
			if len(written) > 0 {
				b.WriteByte(',')
			}
			written[name] = true
			if err := d.write(b, name); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := d.write(b, v[name]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case []any:
		for i, item := range v {
			b.WriteByte("[,"[min(i, 1)])
			if err := d.write(b, item); err != nil {
				return err
			}
		}
		if len(v) == 0 {
			b.WriteByte('[')
		}
		b.WriteByte(']')
		return nil
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	b.Truncate(b.Len() - 1) // drops the newline
	return nil
}

func (d *Document) encoded(found []any) ([]byte, int, error) {
	n := len(found)
	var v any = append([]any{}, found[:min(n, maxFound)]...)
	if n == 1 {
		v = found[0]
	}
	d.readOrder()
	var b bytes.Buffer
	err := d.write(&b, v)
	return b.Bytes(), n, err
}
