package viewer

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMatches is the maximum number of stored matches.
const maxMatches = 1 << 20

type span struct{ from, to uint32 } // of the arena

type search struct {
	query   string
	matches []span // in order, not overlapping
	at      int    // current match, the start for Next and Prev
	awaited bool   // the first match of a later document will be shown
}

// Search marks all matches, also across wrapped lines, and moves to the first one at or
// below the top. It ignores case unless text has capital letters. An empty text clears
// the search. It takes milliseconds per megabyte.
func (v *View) Search(text string) (matches int) {
	v.query = text
	v.find()
	v.showMatches()
	v.awaited = text != ""
	if len(v.matches) == 0 {
		return 0
	}
	v.at = v.matchFrom(v.top)
	v.reveal()
	return len(v.matches)
}

// Next moves to the next match and wraps around.
func (v *View) Next() { v.step(1) }

// Prev moves to the previous match and wraps around.
func (v *View) Prev() { v.step(-1) }

func (v *View) step(by int) {
	if n := len(v.matches); n > 0 {
		v.at = (v.at + by + n) % n
		v.reveal()
	}
}

// MatchIndex returns the current match, counted from 1, and the number of matches.
func (v *View) MatchIndex() (at, n int) {
	if len(v.matches) == 0 {
		return 0, 0
	}
	return v.at + 1, len(v.matches)
}

// MatchPosition returns [View.MatchIndex] as text, followed by where or, in a truncated
// document, by the searched part.
func (v *View) MatchPosition(where string) string {
	if v.doc.size > 0 {
		where = "in the first " + formatShare(v.doc.shown, v.doc.size)
	}
	at, n := v.MatchIndex()
	return fmt.Sprintf("%d of %d %s", at, n, where)
}

// reveal scrolls to the current match unless it is visible.
func (v *View) reveal() {
	from := v.matches[v.at].from
	i := sort.Search(len(v.doc.lines), func(i int) bool { return v.doc.lines[i].off > from }) - 1
	if h := max(v.h, 1); i < v.top || i >= v.top+h {
		v.top = i - h/3
	}
	v.Scroll(0)
}

// matchFrom returns the first match at or below a line, or 0.
func (v *View) matchFrom(top int) int {
	if top >= len(v.doc.lines) {
		return 0
	}
	off := v.doc.lines[top].off
	i := sort.Search(len(v.matches), func(i int) bool { return v.matches[i].from >= off })
	if i == len(v.matches) {
		return 0
	}
	return i
}

func (v *View) find() {
	v.matches, v.at = v.matches[:0:0], 0
	if v.query == "" {
		return
	}
	exact := strings.ContainsFunc(v.query, unicode.IsUpper)
	f := finder{needle: []byte(v.query), exact: exact}
	if !exact {
		f.needle = fold(nil, v.query)
	}
	d := v.whole
	for i := 0; i < len(d.lines) && len(v.matches) < maxMatches; {
		from, to, next := d.sourceLine(i)
		v.matches = f.line(v.matches, d.arena[from:to], uint32(from))
		i = next
	}
}

func fold(dst []byte, s string) []byte {
	for _, r := range s {
		dst = utf8.AppendRune(dst, unicode.ToLower(r))
	}
	return dst
}

type finder struct {
	needle  []byte
	exact   bool
	text    []byte
	offsets []uint32 // in the line, for each byte of text and its end
}

func (f *finder) line(out []span, s []byte, off uint32) []span {
	simple := true
	for _, c := range s {
		if c >= utf8.RuneSelf || isInk(c) {
			simple = false
			break
		}
	}
	if simple {
		text := s
		if !f.exact {
			f.text = append(f.text[:0], s...)
			for i, c := range f.text {
				if c >= 'A' && c <= 'Z' {
					f.text[i] = c + 'a' - 'A'
				}
			}
			text = f.text
		}
		return f.each(out, text, func(i int) uint32 { return off + uint32(i) })
	}
	f.text, f.offsets = f.text[:0], f.offsets[:0]
	for i := 0; i < len(s); {
		if isInk(s[i]) {
			i++
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		if !f.exact {
			r = unicode.ToLower(r)
		}
		f.text = utf8.AppendRune(f.text, r)
		for len(f.offsets) < len(f.text) {
			f.offsets = append(f.offsets, uint32(i))
		}
		i += n
	}
	f.offsets = append(f.offsets, uint32(len(s)))
	return f.each(out, f.text, func(i int) uint32 { return off + f.offsets[i] })
}

func (f *finder) each(out []span, text []byte, at func(int) uint32) []span {
	for i := 0; len(out) < maxMatches; {
		k := bytes.Index(text[i:], f.needle)
		if k < 0 {
			break
		}
		from := i + k
		i = from + len(f.needle)
		out = append(out, span{at(from), at(i)})
	}
	return out
}
