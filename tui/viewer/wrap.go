package viewer

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Limits of a grapheme cluster, in bytes. Clusters beyond longCluster are malicious and
// replaced. Only lookCluster bytes are examined.
const (
	longCluster = 64
	lookCluster = 128
	replacement = "\ufffd"
)

// clusterKind describes whether a character always takes its own cells.
type clusterKind uint8

const (
	isolated  clusterKind = iota // never joins its neighbours
	joining                      // may join its neighbours
	oversized                    // drawn as the replacement character
)

// cluster measures the first character of s, which must not be empty or begin with a
// control character.
func cluster(s []byte) (n, cells int, f clusterKind) {
	if s[0] < utf8.RuneSelf {
		return 1, 1, isolated
	}
	r, n := utf8.DecodeRune(s)
	if w := runeWidth(r); w > 0 {
		if len(s) == n || s[n] < utf8.RuneSelf {
			return n, w, isolated
		}
		if next, _ := utf8.DecodeRune(s[n:]); runeWidth(next) > 0 {
			return n, w, isolated
		}
	}
	if len(s) > lookCluster {
		end := lookCluster
		for end > lookCluster-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	c, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	if len(c) > longCluster {
		return len(c), 1, oversized
	}
	return max(len(c), 1), w, joining
}

// runeWidth returns the cells of a rune that never joins its neighbours, or 0.
func runeWidth(r rune) int {
	switch {
	case r < 0xa1:
		return 0
	case r <= 0x2ff: // Latin
		if r == 0xad || r == 0xa9 || r == 0xae {
			return 0
		}
		return 1
	case r >= 0x370 && r <= 0x482, r >= 0x48a && r <= 0x52f: // Greek, Cyrillic
		return 1
	case r >= 0x2010 && r <= 0x2027: // dashes, quotes
		return 1
	case r >= 0x2500 && r <= 0x259f: // boxes
		return 1
	case r >= 0x3041 && r <= 0x3096, r >= 0x30a1 && r <= 0x30fa, // kana
		r >= 0x4e00 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3: // han, hangul
		return 2
	}
	return 0
}

// cellWidth returns the width of a text with inks and tabs at the start of a line. It
// stops beyond most.
func cellWidth(s []byte, most int) (col int) {
	for len(s) > 0 && col <= most {
		switch c := s[0]; {
		case c == '\t':
			col += tabStop - col%tabStop
			s = s[1:]
		case isInk(c):
			s = s[1:]
		default:
			n, w, _ := cluster(s)
			col += w
			s = s[n:]
		}
	}
	return col
}

// wrap adds the arena from an offset on as one source line; hang indents its continuation
// lines.
func (b *builder) wrap(from int, l line, hang int) { b.wrapRange(from, b.pos(), l, hang) }

// wrapRange breaks after a space in the second half of the line, or where the line is
// full. It drops spaces at a break.
func (b *builder) wrapRange(from, to int, l line, hang int) {
	next := l
	next.flags |= continued
	if l.flags&numbered == 0 {
		l.indent = min(l.indent, uint16(b.lineWidth/2))
		next.indent = uint16(min(int(l.indent)+hang, b.lineWidth/2))
	}
	s := b.d.arena[:to]
	room := max(b.lineWidth-l.prefix(), 1)
	if b.o.NoWrap || to-from <= room && bytes.IndexByte(s[from:], '\t') < 0 {
		l.off, l.n = uint32(from), uint32(to-from)
		b.add(l) // no character takes more cells than bytes
		b.updateLongest(l, to-from)
		return
	}
	var (
		start, col      = from, 0
		gap, gapCol     = -1, 0 // after the last space
		current, gapInk = l.ink, l.ink
	)
	end := func(at, begin int, with ink) {
		l.off, l.n = uint32(start), uint32(at-start)
		b.add(l)
		b.d.longest = max(b.d.longest, l.prefix()+col)
		l.flags, l.indent, l.ink = next.flags, next.indent, with
		current = with
		room = max(b.lineWidth-l.prefix(), 1)
		start, col, gap = begin, 0, -1
	}
	for i := from; i < to && b.err == nil; {
		n, w := 1, 1
		switch c := s[i]; {
		case c == '\t':
			w = tabStop - col%tabStop
		case isInk(c):
			current = ink(c)
			i++
			continue
		case c >= utf8.RuneSelf:
			n, w, _ = cluster(s[i:])
		}
		if col > 0 && col+w > room {
			switch {
			case s[i] == ' ' || s[i] == '\t':
				at := i
				if i = to - len(bytes.TrimLeft(s[i:], " \t")); i == to {
					to = at // only spaces are left
					break
				}
				end(at, i, current)
			case gap > start && gapCol > room/2:
				i = gap
				end(gap, gap, gapInk)
			default:
				end(i, i, current)
			}
			continue
		}
		i += n
		col += w
		if s[i-n] == ' ' {
			gap, gapCol, gapInk = i, col, current
		}
	}
	l.off, l.n = uint32(start), uint32(to-start)
	b.add(l)
	b.d.longest = max(b.d.longest, l.prefix()+col)
}

func (b *builder) updateLongest(l line, most int) {
	if l.prefix()+most > b.d.longest {
		b.d.longest = max(b.d.longest, l.prefix()+cellWidth(b.d.text(l), math.MaxInt32))
	}
}

// addUnwrapped adds the arena from an offset on as one line of any length.
func (b *builder) addUnwrapped(from int, l line) {
	l.off, l.n = uint32(from), uint32(b.pos()-from)
	b.add(l)
	b.d.longest = max(b.d.longest, l.prefix()+cellWidth(b.d.text(l), math.MaxInt32))
}
