package viewer

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// builder appends lines to a document. After an error it appends nothing.
type builder struct {
	ctx       context.Context
	lk        *theme.Theme
	o         Options
	d         *Doc
	lineWidth int // in cells, without the cell for edge marks
	err       error
}

func (b *builder) section(k *Section) {
	if k.Title != "" {
		b.line(inkTitle, termtext.Line(k.Title), 0)
	}
	switch k.Kind {
	case Fields:
		b.fields(k.Fields)
	case Text:
		b.plain(k.Text)
	case Markdown:
		b.markdown(k.Text)
	case JSON:
		b.json(k)
	case Hex:
		b.hex(k)
	case Note:
		b.remark(inkDim, k.Text, "")
	case Log:
		b.log(k.Lines)
	case Error:
		b.remark(inkBad, k.Text, "! ")
	}
}

func (b *builder) pos() int { return len(b.d.arena) }

func (b *builder) put(s string) { b.d.arena = append(b.d.arena, s...) }

func (b *builder) setInk(i ink) { b.d.arena = append(b.d.arena, byte(i)) }

// add appends a line and periodically checks the context.
func (b *builder) add(l line) {
	if len(b.d.lines)&4095 == 4095 && b.err == nil {
		b.err = b.ctx.Err()
	}
	if n := len(b.d.lines); n == cap(b.d.lines) {
		b.d.lines = slices.Grow(b.d.lines, max(n, 64)) // there may be a million
	}
	b.d.lines = append(b.d.lines, l)
}

func (b *builder) blank() { b.add(line{off: uint32(b.pos()), ink: inkPlain}) }

// line adds sanitized text without line breaks in one ink, wrapped.
func (b *builder) line(i ink, s string, hang int) {
	from := b.pos()
	b.put(s)
	b.wrap(from, line{ink: i}, hang)
}

func (b *builder) remark(i ink, text, mark string) {
	text, _ = truncate(text, b.o.MaxBytes)
	for s := range strings.Lines(termtext.Text(text)) {
		b.line(i, mark+strings.TrimSuffix(s, "\n"), len(mark))
		mark = theme.Spaces(len(mark))
	}
}

func (b *builder) empty() { b.line(inkDim, "empty", 0) }

func (b *builder) openHint() string {
	if b.o.Opens == "" {
		return ""
	}
	return ", " + b.o.Opens + " opens all"
}

func (b *builder) noteTruncation(shown, size int) {
	if shown < size {
		b.d.shown, b.d.size = b.d.shown+shown, b.d.size+size
		b.blank()
		b.line(inkWarn, "showing "+formatShare(shown, size)+b.openHint(), 0)
	}
}

func labelWidth(fields []Field) (cells int) {
	for _, f := range fields {
		if f.Value != "" {
			cells = max(cells, theme.Width(termtext.Line(f.Label)))
		}
	}
	return cells
}

func (b *builder) fields(fields []Field) {
	column := min(labelWidth(fields), 24, b.lineWidth/3)
	for _, f := range fields {
		if f.Value == "" {
			continue
		}
		value, lost := truncate(f.Value, b.o.MaxBytes)
		if !b.o.Raw {
			value = shortenDataURI(value)
		}
		value = f.text(value)
		if lost {
			value += b.lk.Ellipsis
		}
		b.d.styles = append(b.d.styles, f.Style)
		style := uint32(len(b.d.styles) - 1)
		label := termtext.Line(f.Label)
		for s := range strings.SplitSeq(value, "\n") {
			from := b.pos()
			l := line{ink: inkField, arg: style, indent: uint16(column + 2)}
			if label != "" {
				b.put(label)
				b.put(theme.Spaces(max(column-theme.Width(label), 0) + 2))
				b.setInk(inkField)
				l.ink, l.indent, label = inkDim, 0, ""
			}
			b.put(s)
			b.wrap(from, l, column+2-int(l.indent))
		}
	}
}

func (b *builder) plain(text string) {
	if text == "" {
		b.empty()
		return
	}
	shown, _ := truncate(text, b.o.MaxBytes)
	b.lines(termtext.Text(shown))
	b.noteTruncation(len(shown), len(text))
}

// numberedLine returns a line before n lines with numbers, if they are wanted and have
// room.
func (b *builder) numberedLine(n int) line {
	l := line{ink: inkPlain}
	if gutter := len(fmt.Sprint(n)) + 1; b.o.Numbers && 3*gutter <= b.lineWidth {
		l.indent, l.flags = uint16(gutter), numbered
	}
	return l
}

func (b *builder) log(lines []Line) {
	l := b.numberedLine(len(lines))
	for i, k := range lines {
		if b.err != nil {
			return
		}
		switch {
		case k.Level >= slog.LevelError:
			l.ink = inkBad
		case k.Level >= slog.LevelWarn:
			l.ink = inkWarn
		case k.Level < slog.LevelInfo:
			l.ink = inkDim
		default:
			l.ink = inkPlain
		}
		if l.flags&numbered != 0 {
			l.arg = uint32(i + 1)
			b.d.numbers = i + 1
		}
		from := b.pos()
		b.put(termtext.Line(k.Text))
		b.wrap(from, l, 0)
	}
}

func (b *builder) lines(s string) {
	n := strings.Count(s, "\n")
	if !strings.HasSuffix(s, "\n") {
		n++
	}
	l := b.numberedLine(n)
	b.d.arena = append(b.d.arena, s...)
	from, end := b.pos()-len(s), b.pos()
	for from < end && b.err == nil {
		to, next := end, end
		if n := bytes.IndexByte(b.d.arena[from:end], '\n'); n >= 0 {
			to, next = from+n, from+n+1
		}
		if l.flags&numbered != 0 {
			l.arg++
			b.d.numbers = max(b.d.numbers, int(l.arg))
		}
		b.wrapRange(from, to, l, 0)
		from = next
	}
}

// truncate cuts a text to at most most bytes of whole characters, if possible at a late
// line break.
func truncate(s string, most int) (string, bool) {
	if len(s) <= most {
		return s, false
	}
	s = termtext.Truncate(s, most)
	if i := strings.LastIndexByte(s, '\n'); i >= most-most/8 {
		s = s[:i+1]
	}
	return s, true
}

// formatShare returns a part of a size, such as "1.0 of 5.2 MB".
func formatShare(part, whole int) string {
	a, unit := splitSize(int64(part))
	z, other := splitSize(int64(whole))
	if unit == other {
		return a + " of " + z + " " + unit
	}
	return a + " " + unit + " of " + z + " " + other
}

func splitSize(n int64) (number, unit string) {
	number, unit, _ = strings.Cut(termtext.Size(max(n, 0)), " ")
	return number, unit
}

// briefFrom is the minimum length of a shortened data: URI, in bytes.
const briefFrom = 64

// shortenDataURI replaces a long data: URI by its type and size.
func shortenDataURI(s string) string {
	if len(s) < briefFrom || !strings.EqualFold(s[:len("data:")], "data:") {
		return s
	}
	head, body, ok := strings.Cut(s[len("data:"):], ",")
	if !ok || len(head) > 200 {
		return s
	}
	kind, _, _ := strings.Cut(head, ";")
	if kind == "" {
		kind = "text/plain" // RFC 2397
	}
	held := len(body) - 2*strings.Count(body, "%")
	if strings.HasSuffix(strings.ToLower(head), ";base64") {
		held = len(strings.TrimRight(body, "=")) * 3 / 4
	}
	n, unit := splitSize(int64(held))
	return "data:" + kind + ", " + n + " " + unit
}
