package images

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"
)

// Invalidate marks all images as missing in the terminal.
func (g *Renderer) Invalidate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.entries {
		e.sent = false
	}
}

// Before returns the bytes to write before lines. They free evicted images and send new
// ones to kitty.
func (g *Renderer) Before(lines []string) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b bytes.Buffer
	g.freeStale(&b)
	if g.protocol != Kitty {
		return b.Bytes()
	}
	for _, line := range lines {
		if !strings.Contains(line, placeholder) {
			continue
		}
		for _, r := range runs(line) {
			if e := g.slots[r.slot]; e != nil && !e.sent {
				g.transmit(&b, e)
				e.sent = true
			}
		}
	}
	return b.Bytes()
}

// Free returns the bytes that make the terminal free all images.
func (g *Renderer) Free() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b bytes.Buffer
	g.freeStale(&b)
	for _, e := range g.entries {
		if e.sent {
			e.sent = false
			g.free(&b, e.slot)
		}
	}
	return b.Bytes()
}

func (g *Renderer) freeStale(b *bytes.Buffer) {
	for _, slot := range g.stale {
		g.free(b, slot)
	}
	g.stale = g.stale[:0]
}

// id returns kitty's image id: the third diacritic of a cell is its most significant
// byte, the color its least.
func (g *Renderer) id(slot byte) string {
	return "i=" + strconv.Itoa(int(slot)<<24|int(g.color))
}

// quiet suppresses kitty's replies, which would arrive as input.
const quiet = "q=2"

func (g *Renderer) free(b *bytes.Buffer, slot byte) {
	g.writeSequence(b, ansi.KittyGraphics(nil, "a=d", "d=I", g.id(slot), quiet))
}

func (g *Renderer) transmit(b *bytes.Buffer, e *entry) {
	data := []byte(base64.StdEncoding.EncodeToString(e.png))
	options := []string{"a=T", "U=1", g.id(e.slot), fmt.Sprintf("c=%d", e.Cols), fmt.Sprintf("r=%d", e.Rows), "f=100", quiet}
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), kitty.MaxChunkSize)
		more := "m=1"
		if n == len(data) {
			more = "m=0"
		}
		if !first {
			options = []string{quiet}
		}
		g.writeSequence(b, ansi.KittyGraphics(data[:n], append(options, more)...))
		data = data[n:]
	}
}

func (g *Renderer) writeSequence(b *bytes.Buffer, sequence string) {
	if g.tmux {
		sequence = ansi.TmuxPassthrough(sequence)
	}
	b.WriteString(sequence)
}

type rect struct {
	run
	y, rows int
}

// Draw returns the bytes that draw images over changed lines, to write after their text.
// Adjacent rows are drawn together.
func (g *Renderer) Draw(old, lines []string) []byte {
	if p := g.Protocol(); p == None || p == Kitty {
		return nil
	}
	var b bytes.Buffer
	for _, r := range rects(old, lines) {
		g.mu.Lock()
		e, protocol := g.slots[r.slot], g.protocol
		g.mu.Unlock()
		if e == nil || r.row+r.rows > e.Rows || r.col+r.n > e.Cols {
			continue // a new frame will replace these cells
		}
		fmt.Fprintf(&b, "\x1b[%d;%dH", r.y+1, r.x+1)
		switch protocol {
		case ITerm:
			g.drawInline(&b, e, r)
		case Sixel: // tmux supports sixel itself
			e.sixel(&b, image.Rect(r.col*e.w, r.row*e.h, (r.col+r.n)*e.w, (r.row+r.rows)*e.h))
		}
	}
	return b.Bytes()
}

func rects(old, lines []string) (all []rect) {
	var open []int // in the previous line
	for y, line := range lines {
		var next []int
		if strings.Contains(line, placeholder) && (y >= len(old) || old[y] != line) {
			now := runs(line)
			if y < len(old) && sameRuns(runs(old[y]), now) {
				now = nil // already drawn
			}
		each:
			for _, r := range now {
				for _, i := range open {
					if o := &all[i]; o.x == r.x && o.showsSame(r) && o.row+o.rows == r.row {
						o.rows++
						next = append(next, i)
						continue each
					}
				}
				all = append(all, rect{run: r, y: y, rows: 1})
				next = append(next, len(all)-1)
			}
		}
		open = next
	}
	return all
}

func (g *Renderer) drawInline(b *bytes.Buffer, e *entry, r rect) {
	data := e.png
	if r.rows < e.Rows || r.n < e.Cols {
		var part bytes.Buffer
		area := image.Rect(r.col*e.w, r.row*e.h, (r.col+r.n)*e.w, (r.row+r.rows)*e.h)
		if encoder.Encode(&part, e.decoded().SubImage(area)) != nil {
			return // unreachable
		}
		data = part.Bytes()
	}
	g.writeSequence(b, fmt.Sprintf("\x1b]1337;File=inline=1;size=%d;width=%d;height=%d;preserveAspectRatio=0;doNotMoveCursor=1:%s\a",
		len(data), r.n, r.rows, base64.StdEncoding.EncodeToString(data)))
}

// decoded returns the cached pixels of an image. Only the terminal's writer may call it.
func (e *entry) decoded() *image.NRGBA {
	if e.raw == nil {
		e.raw = e.pixels()
	}
	return e.raw
}
