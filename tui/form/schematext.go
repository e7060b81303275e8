package form

import (
	"fmt"
	"strings"

	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// mostSchema are the lines of a schema that can be read beside what is typed.
const mostSchema = 5000

// schemaText is a schema for reading, which scrolls.
type schemaText struct {
	lines []string
	off   int
	high  int // lines of the last draw
	most  int // how far it scrolls
}

// of makes the text once.
func (s *schemaText) of(schema func() []byte) {
	if s.lines != nil {
		return
	}
	lines := strings.SplitN(indented(schema()), "\n", mostSchema+1)
	s.lines = lines[:min(len(lines), mostSchema)]
}

// window is h lines of at most w cells. The last tells where one is, if there is more.
func (s *schemaText) window(l *theme.Look, w, h int) []string {
	room := h
	if len(s.lines) > h {
		room = max(h-1, 0)
	}
	s.high, s.most = max(room, 1), max(len(s.lines)-room, 0)
	s.off = max(min(s.off, s.most), 0)
	out := make([]string, h)
	for i := range out {
		switch at := s.off + i; {
		case i >= room && len(s.lines) > h:
			out[i] = l.Dim.On(l.Cut(fmt.Sprintf("%s %d to %d of %d, PgDn", l.Ellipsis, s.off+1, s.off+room, len(s.lines)), w))
		case at < len(s.lines):
			out[i] = l.Dim.On(l.Cut(termtext.Line(termtext.Head(s.lines[at], shortText)), max(w, 0)))
		}
	}
	return out
}

// schemaShown is the schema beside what has the focus, and whose it is.
func (f *Form) schemaShown() (*schemaText, *field) {
	if f.raw {
		if f.schema.lines == nil {
			return nil, nil
		}
		return &f.schema, nil
	}
	if fd := f.current(); fd != nil && fd.kind == JSON && fd.schema.lines != nil {
		return &fd.schema, fd
	}
	return nil, nil
}

// page scrolls the schema beside what has the focus.
func (f *Form) page(down bool) {
	if s, _ := f.schemaShown(); s != nil {
		by := max(s.high-1, 1)
		if !down {
			by = -by
		}
		f.Scroll(by)
	}
}

// Scroll moves the schema beside what has the focus by lines.
func (f *Form) Scroll(by int) {
	if s, fd := f.schemaShown(); s != nil {
		s.off = max(min(s.off+by, s.most), 0)
		if fd != nil {
			fd.stale = true
		}
	}
}
