package tui

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"goblin/tui/images"
)

// painter writes the lines of the screen that changed, at once, and then at most
// so often. Bubble Tea's own renderer looks for a new frame as often as frames may leave,
// which costs more than all else while nothing happens, and lets a key wait for the next
// look; it is left the terminal's modes alone, see [output].
type painter struct {
	out    *output
	images *images.Renderer
	wake   chan struct{} // of capacity 1

	mu      sync.Mutex
	view    string
	repaint bool // the content of the terminal is unknown
}

func newPainter(out *output, images *images.Renderer) *painter {
	return &painter{out: out, images: images, wake: make(chan struct{}, 1)}
}

// show has a frame painted. It never waits for the terminal, which gets the last one.
func (p *painter) show(view string, whole bool) {
	p.mu.Lock()
	changed := whole || view != p.view
	p.view, p.repaint = view, p.repaint || whole
	p.mu.Unlock()
	if !changed {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default: // it will look
	}
}

// run paints until ctx ends.
func (p *painter) run(ctx context.Context) {
	var shown []string
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-p.wake:
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		view, whole := p.view, p.repaint
		p.repaint = false
		p.mu.Unlock()
		lines := strings.Split(view, "\n")
		if whole || len(lines) != len(shown) {
			shown = nil
		}
		if p.paint(shown, lines) {
			shown = lines
		} else {
			shown = nil
			p.images.Invalidate()
		}
		pause.Reset(time.Second / maxFrameRate)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// paint makes of the lines that are shown others: their text first, which people wait for,
// then the images over it.
func (p *painter) paint(shown, lines []string) bool {
	before := p.images.Before(lines)
	frame := difference(shown, lines, p.images.Text)
	if len(before)+len(frame) > 0 && !p.out.paint(append(before, frame...)) {
		return false
	}
	over := p.images.Draw(shown, lines)
	return len(over) == 0 || p.out.paint(over)
}

// difference returns the bytes that turn the shown lines into others; each is as wide as
// the terminal. text writes a line where another stands. text is how a line is written
// where another stands.
func difference(shown, lines []string, text func(old, line string) string) []byte {
	var b bytes.Buffer
	for i, line := range lines {
		old := ""
		if i < len(shown) {
			if old = shown[i]; old == line {
				continue
			}
		}
		b.WriteString("\x1b[" + strconv.Itoa(i+1) + ";1H")
		b.WriteString(text(old, line))
	}
	return slices.Clip(b.Bytes())
}
