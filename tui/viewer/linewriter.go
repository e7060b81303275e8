package viewer

import (
	"goblin/tui/theme"
)

const reset = "\x1b[m"

// pen writes one line in styles; a style is changed only when text follows.
// What is left of the window and right of it is left out.
type pen struct {
	text   []byte
	style  theme.Style
	odd    bool // a character may have joined with its neighbours
	strict bool // no such character is drawn

	skip  int  // cells to leave out before anything is drawn
	limit int  // cells that may be drawn
	x     int  // cells drawn
	full  bool // something did not fit any more
}

func (p *pen) set(s theme.Style) {
	if s == p.style {
		return
	}
	if p.style != "" {
		p.text = append(p.text, reset...)
	}
	p.text = append(p.text, s...)
	p.style = s
}

// string writes what takes its cells for certain and is not counted.
func (p *pen) string(s string) { p.text = append(p.text, s...) }

// room takes the cells out of n that are left of the window.
func (p *pen) room(n int) (hidden int) {
	hidden = min(p.skip, n)
	p.skip -= hidden
	return hidden
}

// run writes characters of one cell each.
func (p *pen) run(style theme.Style, s []byte) {
	s = s[p.room(len(s)):]
	if n := p.limit - p.x; len(s) > n {
		s = s[:n]
		p.full = true
	}
	if len(s) > 0 {
		p.set(style)
		p.text = append(p.text, s...)
		p.x += len(s)
	}
}

func (p *pen) blank(style theme.Style, n int) {
	n -= p.room(n)
	if most := p.limit - p.x; n > most {
		n = most
		p.full = true
	}
	if n > 0 {
		p.set(style)
		p.string(theme.Blank(n))
		p.x += n
	}
}

// cluster writes one character of so many cells, or spaces for the half of it
// that is in the window.
func (p *pen) cluster(style theme.Style, s []byte, cells int, f form) {
	if p.skip > 0 {
		if hidden := p.room(cells); hidden < cells {
			p.blank(style, cells-hidden)
		}
		return
	}
	if p.x+cells > p.limit {
		p.full = true
		return
	}
	p.set(style)
	p.x += cells
	switch {
	case f == alone:
		p.text = append(p.text, s...)
		return
	case f == huge || p.strict && cells > 0:
		p.string(replacement)
		p.string(theme.Blank(cells - 1))
	case !p.strict:
		p.text = append(p.text, s...)
	}
	p.odd = true
}
