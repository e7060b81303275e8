// Package viewer shows long content: text, JSON, Markdown, bytes and images.
//
// [Build] turns sections into a [Doc]: sanitized lines, wrapped to a width. It takes tens
// of milliseconds per megabyte, so run it in a command; cancelling its context stops it.
// A Doc belongs to its builder until it is shown. After [Doc.Mark] it never changes, and
// any goroutine may read it. A [View] is a window on a Doc and belongs to the goroutine
// of its UI. It styles only the visible lines.
//
// A section longer than [Options.MaxBytes] is cut, with a note. FromResource, FromTool
// and FromPrompt convert MCP results into sections; one malformed entry never affects the
// others. The package must not import the catalog, keys or panes.
package viewer

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// Kind is the kind of a section.
type Kind uint8

// The kinds of sections.
const (
	Fields   Kind = iota // labelled values, one per line
	Text                 // plain lines, wrapped
	Markdown             // headings, lists, quotes, code, emphasis, links
	JSON                 // one member or element per line
	Hex                  // fields about bytes and a dump of the first
	Note                 // a remark by the UI
	Error                // an error, with "!" before it
	Log                  // lines in the colors of their levels
)

// Field is a labelled value; empty values are hidden. Line breaks are escaped unless
// Prose is set, so that a value cannot imitate another field.
type Field struct {
	Label, Value string
	Prose        bool        // the value may have several lines
	Style        theme.Style // of the value
}

func (f *Field) text(value string) string {
	if f.Prose {
		return strings.TrimRight(termtext.Text(value), "\n")
	}
	return termtext.Line(strings.TrimRight(value, "\r\n"))
}

// Line is a line of a log. Its text should name the level, since colors may be missing.
type Line struct {
	Text  string
	Level slog.Level
}

// Section is a part of a document: a title and one kind of content.
type Section struct {
	Title  string // optional
	Kind   Kind
	Fields []Field
	Lines  []Line // of Log
	Text   string // of Text, Markdown, Note and Error
	Data   []byte // of JSON and Hex; the caller must not change it later
	MIME   string
	// Unmarked excludes the section from [Doc.Mark], for text about the content.
	Unmarked bool
	// Start makes the section the target of [View.ToStart].
	Start bool
}

// Tab is a named part of what a detail shows. Sections may run in a command.
type Tab struct {
	Name     string
	Sections func(ctx context.Context) []Section
}

// Options control the layout of sections.
type Options struct {
	Width int // in cells, including one for edge marks; default 80
	// MaxBytes is the maximum number of bytes shown of one section; default 1 MiB.
	MaxBytes int
	// Depth is the number of JSON levels shown below the outermost value, or negative for
	// all.
	Depth int
	// Fold is the number of those levels to fold; a negative value shows more.
	Fold    int
	Toggled map[uint64]bool // JSON nodes with inverted folding, see [View.Node]
	Numbers bool            // line numbers for Text
	NoWrap  bool            // lines are not wrapped
	Raw     bool            // long data: URIs are shown in full
	Opens   string          // key that opens truncated content, or ""
}

const (
	defaultWidth = 80
	defaultMost  = 1 << 20
	tabStop      = 8
	arenaMost    = 1 << 30 // well below the limit of the line index
)

// ink is a style of the theme. In the text it is one byte before a piece. Sanitized text
// has no control characters except line breaks and tabs, so the other values are free.
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
	inkField // the style at the line's arg
	inks
)

func isInk(c byte) bool { return c < byte(inks) && c != '\t' && c != '\n' }

type flags uint8

const (
	continued flags = 1 << iota // belongs to the same source line as its predecessor
	numbered                    // arg is its number, drawn in the indent
	ruled                       // a horizontal rule instead of text
	pictured                    // arg indexes the pictures
	quoted                      // times the depth, up to maxQuote
)

const maxQuote = 7

func quotes(depth int) flags { return flags(min(depth, maxQuote)) * quoted }

// line is one drawn line: a piece of the arena and its prefix.
type line struct {
	off, n uint32
	arg    uint32 // line number or index of a style
	indent uint16
	ink    ink // at the start of the line
	flags  flags
}

func (l line) depth() int  { return int(l.flags / quoted) }
func (l line) prefix() int { return int(l.indent) + 2*l.depth() }

// Doc is a document: the lines of sections.
type Doc struct {
	arena    []byte
	lines    []line
	styles   []theme.Style
	changed  []bool   // nil: no marks
	unmarked [][2]int // line ranges without marks
	start    int      // first line of the start section
	sections []Section
	nodes    []docNode
	starts   []int // first lines of the sections
	levels   int   // levels of the deepest JSON
	pictures []strip
	images   int // number of drawn images
	numbers  int // highest line number, or 0
	width    int
	longest  int // cells of the longest line
	// Bytes of the truncated sections: shown and total.
	shown, size int
}

type docNode struct {
	line   int
	id     uint64
	folded bool
}

// Levels returns the number of levels of the deepest JSON.
func (d *Doc) Levels() int { return d.levels }

// Len returns the number of lines.
func (d *Doc) Len() int { return len(d.lines) }

// Width returns the width to which the lines were wrapped, in cells.
func (d *Doc) Width() int { return d.width }

func (d *Doc) text(l line) []byte { return d.arena[l.off : l.off+l.n] }

// sourceLine returns the source line that begins with line i, and the next one's first
// line.
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
			b.line(inkWarn, "the rest is too long to show", 0)
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
			return nil, fmt.Errorf("lay out content: %w", b.err)
		}
	}
	return b.d, nil
}
