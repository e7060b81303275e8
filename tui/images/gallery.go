package images

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"image"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"
)

const (
	maxImages = 64
	maxPixels = 16 << 20
	slots     = 200 // of images; kitty's diacritics allow more
)

// The default cell size in pixels.
const defaultCellWidth, defaultCellHeight = 10, 20

// Renderer draws and caches the images of one terminal. The zero value draws none. It is
// safe for concurrent use.
type Renderer struct {
	mu       sync.Mutex
	protocol Protocol
	w, h     int  // of a cell, in pixels
	tmux     bool // sequences must be passed through tmux

	entries map[[sha256.Size]byte]*entry
	slots   [slots]*entry
	pixels  int
	uses    uint64
	color   byte   // low byte of kitty's ids
	stale   []byte // slots of images that the terminal must free
}

type entry struct {
	*Image
	slot byte
	used uint64
	sent bool // kitty has it
	raw  *image.NRGBA
	pal  *image.Paletted
}

// Set sets the protocol and the cell size, and reports whether existing images became
// invalid. Programs that share the terminal should use different seeds.
func (g *Renderer) Set(p Protocol, f TerminalReply, tmux bool, seed int) (changed bool) {
	w, h := f.CellWidth, f.CellHeight
	if w <= 0 || h <= 0 {
		w, h = defaultCellWidth, defaultCellHeight
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p == g.protocol && (p == None || w == g.w && h == g.h) {
		return false
	}
	for _, e := range g.entries {
		g.drop(e)
	}
	g.protocol = p
	g.w = w
	g.h = h
	g.tmux = tmux
	g.color = byte(1 + (seed&0x7fffffff)%255)
	return true
}

// Protocol returns the protocol in use; a nil renderer has none.
func (g *Renderer) Protocol() Protocol {
	if g == nil {
		return None
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.protocol
}

func (g *Renderer) cell() (w, h int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return cmp.Or(g.w, defaultCellWidth), cmp.Or(g.h, defaultCellHeight)
}

// Row returns the cells [from, to) of an image's row.
func (g *Renderer) Row(m *Image, row, from, to int) string {
	if from >= to {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.protocol == None {
		return strings.Repeat(" ", to-from)
	}
	e := g.entryFor(m)
	var b strings.Builder
	fmt.Fprintf(&b, "\x1b[38;5;%dm", g.color)
	slot := kitty.Diacritic(int(e.slot))
	for col := from; col < to; col++ {
		b.WriteRune(kitty.Placeholder)
		b.WriteRune(kitty.Diacritic(row))
		b.WriteRune(kitty.Diacritic(col))
		b.WriteRune(slot)
	}
	b.WriteString("\x1b[39m")
	return b.String()
}

// At a limit, a new image evicts the least recently used ones.
func (g *Renderer) entryFor(m *Image) *entry {
	g.uses++
	if e := g.entries[m.key]; e != nil {
		e.used = g.uses
		return e
	}
	for len(g.entries) >= maxImages || len(g.entries) > 0 && g.pixels+m.area() > maxPixels {
		var oldest *entry
		for _, e := range g.entries {
			if oldest == nil || e.used < oldest.used {
				oldest = e
			}
		}
		g.drop(oldest)
	}
	if g.entries == nil {
		g.entries = map[[sha256.Size]byte]*entry{}
	}
	e := &entry{Image: m, used: g.uses}
	for at := int(g.uses); ; at++ { // a freed slot is not reused at once
		at %= slots
		if at > 0 && g.slots[at] == nil {
			e.slot = byte(at)
			break
		}
	}
	g.entries[m.key], g.slots[e.slot] = e, e
	g.pixels += m.area()
	return e
}

func (m *Image) area() int { return m.Cols * m.w * m.Rows * m.h }

func (g *Renderer) drop(e *entry) {
	delete(g.entries, e.key)
	g.slots[e.slot] = nil
	g.pixels -= e.area()
	if e.sent {
		g.stale = append(g.stale, e.slot)
	}
}

type run struct {
	x, n     int // cells
	from, to int // bytes
	slot     byte
	row, col int
}

func runs(line string) (all []run) {
	width, measured := 0, 0
	for at := 0; ; {
		i := strings.Index(line[at:], placeholder)
		if i < 0 {
			return all
		}
		at += i
		row, col, slot, end, ok := cellAt(line, at)
		if !ok {
			at += len(placeholder)
			continue
		}
		width += ansi.StringWidth(line[measured:at])
		r := run{x: width, n: 1, from: at, to: end, slot: slot, row: row, col: col}
		width++
		measured, at = end, end
		if n := len(all) - 1; n >= 0 && all[n].to == r.from && all[n].slot == slot && all[n].row == row && all[n].col+all[n].n == col {
			all[n].n, all[n].to = all[n].n+1, end
			continue
		}
		all = append(all, r)
	}
}

const placeholder = string(kitty.Placeholder)

func cellAt(line string, at int) (row, col int, slot byte, end int, ok bool) {
	at += len(placeholder)
	var marks [3]int
	for i := range marks {
		r, size := utf8.DecodeRuneInString(line[at:])
		n, is := numbers()[r]
		if !is {
			return 0, 0, 0, at, false
		}
		marks[i] = n
		at += size
	}
	if marks[2] >= slots {
		return 0, 0, 0, at, false
	}
	return marks[0], marks[1], byte(marks[2]), at, true
}

var numbers = sync.OnceValue(func() map[rune]int {
	all := make(map[rune]int, maxCols)
	for i := range maxCols {
		all[kitty.Diacritic(i)] = i
	}
	return all
})

// Text returns the bytes that turn the line old into line. Except for kitty, it replaces
// image cells by blanks, or skips them if the image is already there.
func (g *Renderer) Text(old, line string) string {
	if !strings.Contains(line, placeholder) || g.Protocol() == Kitty {
		return line
	}
	now := runs(line)
	there := sameRuns(runs(old), now)
	var b strings.Builder
	at := 0
	for _, r := range now {
		b.WriteString(line[at:r.from])
		if there {
			fmt.Fprintf(&b, "\x1b[%dC", r.n)
		} else {
			b.WriteString(strings.Repeat(" ", r.n))
		}
		at = r.to
	}
	b.WriteString(line[at:])
	return b.String()
}

func sameRuns(a, b []run) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].showsSame(b[i]) || a[i].x != b[i].x || a[i].row != b[i].row {
			return false
		}
	}
	return true
}

func (r run) showsSame(o run) bool { return r.n == o.n && r.slot == o.slot && r.col == o.col }
