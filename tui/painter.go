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

// painter writes changed lines at once, but not more often than [maxFrameRate]. Bubble
// Tea's own renderer polls for frames, which costs CPU time while idle and delays keys.
// It only switches the terminal's modes; see [output].
type painter struct {
	out    *output
	images *images.Renderer
	wake   chan struct{} // capacity 1

	mu      sync.Mutex
	view    string
	repaint bool // the terminal's content is unknown
}

func newPainter(out *output, images *images.Renderer) *painter {
	return &painter{out: out, images: images, wake: make(chan struct{}, 1)}
}

// show schedules a frame. It never waits for the terminal; a newer frame replaces an
// older one.
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
	default: // already scheduled
	}
}

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

// paint writes the text first, which users wait for, then the images.
func (p *painter) paint(shown, lines []string) bool {
	before := p.images.Before(lines)
	frame := difference(shown, lines, p.images.Text)
	if len(before)+len(frame) > 0 && !p.out.paint(append(before, frame...)) {
		return false
	}
	over := p.images.Draw(shown, lines)
	return len(over) == 0 || p.out.paint(over)
}

// difference returns the bytes that turn the shown lines into lines, which are as wide as
// the terminal. text renders a line over an old one.
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
