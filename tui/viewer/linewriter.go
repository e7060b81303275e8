package viewer

import (
	"goblin/tui/theme"
)

const reset = "\x1b[m"

// lineWriter writes one styled line and skips cells outside the window.
type lineWriter struct {
	text      []byte
	style     theme.Style
	uncertain bool // a character may have joined its neighbours
	strict    bool // such characters are replaced

	skip  int  // cells to skip first
	limit int  // maximum cells
	x     int  // cells written
	full  bool // some text didn't fit
}

func (p *lineWriter) setStyle(s theme.Style) {
	if s == p.style {
		return
	}
	if p.style != "" {
		p.text = append(p.text, reset...)
	}
	p.text = append(p.text, s...)
	p.style = s
}

// writeString writes text without counting its cells.
func (p *lineWriter) writeString(s string) { p.text = append(p.text, s...) }

func (p *lineWriter) skipHidden(n int) (hidden int) {
	hidden = min(p.skip, n)
	p.skip -= hidden
	return hidden
}

func (p *lineWriter) writeASCII(style theme.Style, s []byte) {
	s = s[p.skipHidden(len(s)):]
	if n := p.limit - p.x; len(s) > n {
		s = s[:n]
		p.full = true
	}
	if len(s) > 0 {
		p.setStyle(style)
		p.text = append(p.text, s...)
		p.x += len(s)
	}
}

func (p *lineWriter) writeSpaces(style theme.Style, n int) {
	n -= p.skipHidden(n)
	if most := p.limit - p.x; n > most {
		n = most
		p.full = true
	}
	if n > 0 {
		p.setStyle(style)
		p.writeString(theme.Spaces(n))
		p.x += n
	}
}

// writeCluster writes one character, or spaces if only half of it is in the window.
func (p *lineWriter) writeCluster(style theme.Style, s []byte, cells int, f clusterKind) {
	if p.skip > 0 {
		if hidden := p.skipHidden(cells); hidden < cells {
			p.writeSpaces(style, cells-hidden)
		}
		return
	}
	if p.x+cells > p.limit {
		p.full = true
		return
	}
	p.setStyle(style)
	p.x += cells
	switch {
	case f == isolated:
		p.text = append(p.text, s...)
		return
	case f == oversized || p.strict && cells > 0:
		p.writeString(replacement)
		p.writeString(theme.Spaces(cells - 1))
	case !p.strict:
		p.text = append(p.text, s...)
	}
	p.uncertain = true
}
