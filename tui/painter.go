package tui

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// painter writes the lines of the screen that changed, at once, and then at most
// so often. Bubble Tea's own renderer looks for a new frame as often as frames may leave,
// which costs more than all else while nothing happens, and lets a key wait for the next
// look; it is left the terminal's modes alone, see [output].
type painter struct {
	out  *output
	wake chan struct{} // of capacity 1

	mu    sync.Mutex
	view  string
	whole bool // what stands on the terminal is not known
}

func newPainter(out *output) *painter { return &painter{out: out, wake: make(chan struct{}, 1)} }

// show has a frame painted. It never waits for the terminal, which gets the last one.
func (p *painter) show(view string, whole bool) {
	p.mu.Lock()
	changed := whole || view != p.view
	p.view, p.whole = view, p.whole || whole
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
		view, whole := p.view, p.whole
		p.whole = false
		p.mu.Unlock()
		lines := strings.Split(view, "\n")
		if whole || len(lines) != len(shown) {
			shown = nil
		}
		if frame := difference(shown, lines); len(frame) == 0 || p.out.paint(frame) {
			shown = lines
		} else {
			shown = nil
		}
		pause.Reset(time.Second / frames)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// difference is what makes of the lines that are shown those that are to be; each is as
// wide as the terminal.
func difference(shown, lines []string) []byte {
	var b bytes.Buffer
	for i, line := range lines {
		if i < len(shown) && shown[i] == line {
			continue
		}
		b.WriteString("\x1b[" + strconv.Itoa(i+1) + ";1H")
		b.WriteString(line)
	}
	return slices.Clip(b.Bytes())
}
