package tui

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// output is the terminal for two: Bubble Tea, which switches its modes, and the painter,
// whose frames leave the cursor on the row that is selected, where screen readers look
// for it. A frame says where each of its lines stands, so it may stand anywhere between
// two.
type output struct {
	w    io.Writer
	mu   sync.Mutex    // of writing
	on   bool          // the second screen is shown
	spot atomic.Uint32 // row and column, from 1, 16 bits each
	// before returns bytes to write before the second screen is left; nil for none.
	before func() []byte
}

// piece is how much is written at once: a terminal at the end of a slow line has to take
// that within the time for a write.
const piece = 256 << 10

// What enters and leaves the terminal's second screen.
const enterScreen, leaveScreen = "\x1b[?1049h", "\x1b[?1049l"

// park says where the cursor belongs after the next frame.
func (o *output) park(x, y int) { o.spot.Store(uint32(y+1)<<16 | uint32(x+1)&0xffff) }

// home begins each frame of Bubble Tea's renderer.
const home = "\x1b[H"

// Write takes what Bubble Tea writes, of which its frames are left out.
func (o *output) Write(frame []byte) (int, error) {
	if bytes.HasPrefix(frame, []byte(home)) {
		return len(frame), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pass(frame)
}

// paint writes a frame, if the screen is there to be painted.
func (o *output) paint(frame []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.on {
		return false
	}
	_, err := o.pass(frame)
	return err == nil
}

func (o *output) pass(frame []byte) (int, error) {
	was := o.on
	if enter, leave := bytes.LastIndex(frame, []byte(enterScreen)), bytes.LastIndex(frame, []byte(leaveScreen)); enter != leave {
		o.on = enter > leave
	}
	var full []byte
	if was && !o.on && o.before != nil {
		full = o.before()
	}
	full = append(slices.Grow(full, len(frame)+16), frame...)
	if spot := o.spot.Load(); spot != 0 && len(frame) > 0 && o.on { // else the cursor is the shell's
		full = appendSpot(full, spot)
	}
	for rest := full; len(rest) > 0; {
		n, err := o.w.Write(rest[:min(len(rest), piece)])
		if err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(frame), nil
}

func appendSpot(full []byte, spot uint32) []byte {
	full = append(full, "\x1b["...)
	full = strconv.AppendUint(full, uint64(spot>>16), 10)
	full = append(full, ';')
	full = strconv.AppendUint(full, uint64(spot&0xffff), 10)
	return append(full, 'H')
}
