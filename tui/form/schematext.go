package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// maxSchemaLines is the maximum number of lines shown of a schema.
const maxSchemaLines = 5000

type schemaText struct {
	lines  []string
	off    int
	height int // lines of the last draw
	maxOff int // maximum of off
}

func (s *schemaText) load(schema func() []byte) {
	if s.lines != nil {
		return
	}
	lines := strings.SplitN(indent(schema()), "\n", maxSchemaLines+1)
	s.lines = lines[:min(len(lines), maxSchemaLines)]
}

// window returns h lines of at most w cells, the last with the position if there are
// more.
func (s *schemaText) window(l *theme.Theme, w, h int) []string {
	room := h
	if len(s.lines) > h {
		room = max(h-1, 0)
	}
	s.height, s.maxOff = max(room, 1), max(len(s.lines)-room, 0)
	s.off = max(min(s.off, s.maxOff), 0)
	out := make([]string, h)
	for i := range out {
		switch at := s.off + i; {
		case i >= room && len(s.lines) > h:
			out[i] = l.Dim.On(l.Cut(fmt.Sprintf("%s lines %d to %d of %d, PgDn", l.Ellipsis, s.off+1, s.off+room, len(s.lines)), w))
		case at < len(s.lines):
			out[i] = l.Dim.On(l.Cut(termtext.Line(termtext.Truncate(s.lines[at], shortText)), max(w, 0)))
		}
	}
	return out
}

func (f *Form) visibleSchema() (*schemaText, *field) {
	if f.raw {
		if f.schema.lines == nil {
			return nil, nil
		}
		return &f.schema, nil
	}
	if fd := f.currentField(); fd != nil && fd.kind == JSON && fd.schema.lines != nil {
		return &fd.schema, fd
	}
	return nil, nil
}

func (f *Form) pageSchema(down bool) {
	if s, _ := f.visibleSchema(); s != nil {
		by := max(s.height-1, 1)
		if !down {
			by = -by
		}
		f.Scroll(by)
	}
}

// Scroll scrolls the schema beside the focused field by lines.
func (f *Form) Scroll(by int) {
	if s, fd := f.visibleSchema(); s != nil {
		s.off = max(min(s.off+by, s.maxOff), 0)
		if fd != nil {
			fd.stale = true
		}
	}
}

const (
	maxExpanded = 256 << 10 // bytes of all expanded schemas
	maxNested   = 8         // of expanded references
)

// expand replaces references by their targets for reading. Circular, external and too
// deep ones stay. within lists the surrounding references.
func (r *resolver) expand(raw json.RawMessage, within []string) json.RawMessage {
	if r.bytesLeft -= len(raw); r.bytesLeft < 0 {
		return raw
	}
	if rawjson.IsArray(raw) {
		var out [][]byte
		for item := range rawjson.Elements(raw) {
			out = append(out, r.expand(item, within))
		}
		return rawjson.Array(out...)
	}
	list, ok := readMembers(raw, maxMembers)
	if !ok {
		return raw
	}
	list, within = r.inline(list, within)
	for i, m := range list {
		list[i].value = r.expand(m.value, within)
	}
	return writeObject(list)
}

// inline replaces "$ref" by its target's members; sibling members take precedence.
func (r *resolver) inline(list []member, within []string) ([]member, []string) {
	at := slices.IndexFunc(list, func(m member) bool { return m.name == "$ref" })
	if at < 0 {
		return list, within
	}
	ref := stringOf(list[at].value)
	pointer, local := strings.CutPrefix(ref, "#/")
	if !local || len(within) >= maxNested || slices.Contains(within, ref) || r.lookup(ref) == nil {
		return list, within
	}
	target, ok := readMembers(r.texts[pointer], maxMembers)
	if !ok {
		return list, within
	}
	out := slices.Delete(slices.Clone(list), at, at+1)
	for _, m := range target {
		if !slices.ContainsFunc(list, func(have member) bool { return have.name == m.name }) || m.name == "$ref" {
			out = append(out, m)
		}
	}
	return out, append(slices.Clone(within), ref)
}

// ResolveRefs returns a schema with references replaced by their targets, within limits.
func ResolveRefs(schema json.RawMessage) json.RawMessage {
	if !json.Valid(schema) {
		return schema
	}
	expanded := newResolver(schema).expand(schema, nil)
	list, ok := readMembers(expanded, maxMembers)
	if !ok {
		return expanded
	}
	used := false
	rest := slices.DeleteFunc(slices.Clone(list), func(m member) bool { return m.name == "$defs" || m.name == "definitions" })
	for _, m := range rest {
		used = used || bytes.Contains(m.value, []byte(`"$ref"`))
	}
	if used { // circular references
		return expanded
	}
	return writeObject(rest)
}
