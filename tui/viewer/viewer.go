// Package viewer shows long content: text, JSON, Markdown, bytes and images.
//
// [Build] turns sections into a [Doc]: text that is safe for a terminal, wrapped to a width,
// with indexed lines. Megabytes take it tens of milliseconds, so it belongs in a command. It
// stops when its context is cancelled. A Doc belongs to its builder until it is shown. After
// [Doc.Mark] it never changes, and any goroutine may read it. A [View] is a window on a Doc and
// belongs to the goroutine of its screen. It styles only the lines in the window.
//
// A section that is longer than [Options].Most is cut, with a note. The package knows no
// catalog, no keys and no panes. FromResource, FromTool and FromPrompt turn results of MCP into
// sections, because every pane needs that. One odd entry never spoils the others.
package viewer

import (
	"context"
	"fmt"
	"strings"

	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// Kind is the way in which a section is shown.
type Kind uint8

// The kinds of sections.
const (
	Fields   Kind = iota // labelled values, one below the other
	Text                 // lines as they are, long ones wrapped
	Markdown             // headings, lists, quotes, code, emphasis and links
	JSON                 // one member or element a line
	Hex                  // fields about bytes and the first of them
	Note                 // a remark by the screen itself
	Error                // what went wrong, with "!" before it
)

// Field is a labelled value. A field without a value is not shown. Line breaks of a value are
// escaped unless Prose is set, so that a value cannot imitate another field.
type Field struct {
	Label, Value string
	Prose        bool        // the value may have several lines
	Style        theme.Style // of the value
}

// text makes a value safe to show.
func (f *Field) text(value string) string {
	if f.Prose {
		return strings.TrimRight(termtext.Text(value), "\n")
	}
	return termtext.Line(strings.TrimRight(value, "\r\n"))
}

// Section is a part of a document: a title and one kind of content.
type Section struct {
	Title  string // above it, "" for none
	Kind   Kind
	Fields []Field
	Text   string // of Text, Markdown, Note and Error
	Data   []byte // of JSON and Hex; kept, so it must not be changed
	MIME   string
	Size   int64 // in bytes, where Text or Data is only the beginning; else 0
	// Unmarked keeps [Doc.Mark] off it: it is about the content.
	Unmarked bool
	// Start says that what one came for begins here, see [View.ToStart].
	Start bool
	Shut  bool // of JSON: its outermost value is folded
}

// Options control the layout of sections.
type Options struct {
	Width int // in cells, the first of which is kept free for edge marks; 80 if not positive
	// MaxBytes is the maximum number of bytes of one section that are shown; 1 MiB if not positive.
	MaxBytes int
	// Depth is how deep JSON is shown: 0 shows the outermost value only, with
	// what is in it folded; negative folds nothing.
	Depth int
	// Fold is how many of the levels that would be shown are folded; negative,
	// how many more are shown.
	Fold    int
	Toggled map[uint64]bool // nodes of JSON that are shown the other way, see [View.Node]
	Numbers bool            // of the lines of Text
	NoWrap  bool            // lines are not wrapped
	Raw     bool            // long data: URIs are shown in full
	Opens   string          // the key that opens all of what is shown in part, if one does
}

const (
	defaultWidth = 80
	defaultMost  = 1 << 20
	tabStop      = 8
	arenaMost    = 1 << 30 // far below what the index of lines can count
)

// ink says which style a piece of a line gets from the theme. It stands in the text itself
// as one byte before the piece: control characters are free for that, since
// none is left in sanitised text but line breaks and tabs, which no ink is.
type ink byte

const (
	inkNone ink = iota
	inkPlain
	inkBold
	inkEm
	inkCode
	inkLink
	inkName
	inkString
	inkNumber
	_ // \t
	_ // \n
	inkWord
	inkPunct
	inkDim
	inkHeading
	inkTitle
	inkBad
	inkWarn
	inkField // the style that the line's arg points to
	inks
)

func isInk(c byte) bool { return c < byte(inks) && c != '\t' && c != '\n' }

type flags uint8

const (
	continued flags = 1 << iota // belongs to the same source line as its predecessor
	numbered                    // arg is its number, drawn in the indent
	ruled                       // a horizontal rule instead of text
	pictured                    // arg is a line of the pictures
	quoted                      // times the depth, up to maxQuote
)

const maxQuote = 7

func quotes(depth int) flags { return flags(min(depth, maxQuote)) * quoted }

// line is one line of the screen: text of the arena and what stands before it.
type line struct {
	off, n uint32
	arg    uint32 // line number or index of a style
	indent uint16
	ink    ink // that it begins in
	flags  flags
}

func (l line) depth() int  { return int(l.flags / quoted) }
func (l line) prefix() int { return int(l.indent) + 2*l.depth() }

// Doc is a document: the lines of sections.
type Doc struct {
	arena    []byte
	lines    []line
	styles   []theme.Style
	changed  []bool   // nil: nothing
	unmarked [][2]int // lines that are never marked
	start    int      // the first line of the section that is the start
	sections []Section
	nodes    []docNode
	starts   []int // the first lines of the sections
	levels   int   // levels of the deepest JSON
	pictures []strip
	images   int // that are drawn
	width    int
	longest  int // cells of the longest line
	// Bytes of the truncated sections: the shown ones, and all.
	shown, size int64
}

// docNode is a container of JSON and the line that it begins in.
type docNode struct {
	line   int
	id     uint64
	folded bool // it is folded
}

// Levels is how many levels the JSON has that lies deepest.
func (d *Doc) Levels() int { return d.levels }

// Len is how many lines there are.
func (d *Doc) Len() int { return len(d.lines) }

// Width returns the width to which the lines were wrapped, in cells.
func (d *Doc) Width() int { return d.width }

func (d *Doc) text(l line) []byte { return d.arena[l.off : l.off+l.n] }

// sourceLine returns the text of the source line that begins with line i, and the index of the
// next source line's first line.
func (d *Doc) sourceLine(i int) (from, to, next int) {
	for next = i + 1; next < len(d.lines) && d.lines[next].flags&continued != 0; {
		next++
	}
	last := d.lines[next-1]
	return int(d.lines[i].off), int(last.off + last.n), next
}

// Build lays out sections. It fails only if the context is cancelled.
func Build(ctx context.Context, lk *theme.Theme, sections []Section, o Options) (*Doc, error) {
	if o.Width <= 0 {
		o.Width = defaultWidth
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMost
	}
	b := &builder{ctx: ctx, lk: lk, o: o, lineWidth: max(o.Width-1, 1), d: &Doc{width: o.Width, sections: sections}}
	n := 0
	for i := range sections {
		n += min(len(sections[i].Text)+len(sections[i].Data), o.MaxBytes)
	}
	b.d.arena = make([]byte, 0, n+n/8)
	for i := range sections {
		if i > 0 {
			b.blank()
		}
		if b.pos() > arenaMost {
			b.line(inkWarn, "the rest is too long to be shown", 0)
			break
		}
		first := len(b.d.lines)
		b.d.starts = append(b.d.starts, first)
		b.section(&sections[i])
		if sections[i].Start {
			b.d.start = first
		}
		if sections[i].Unmarked {
			b.d.unmarked = append(b.d.unmarked, [2]int{first, len(b.d.lines)})
		}
		if b.err == nil {
			b.err = ctx.Err()
		}
		if b.err != nil {
			return nil, fmt.Errorf("lay content out: %w", b.err)
		}
	}
	return b.d, nil
}
