package tui

import (
	"bytes"
	"io"
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
}

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
	if enter, leave := bytes.LastIndex(frame, []byte(enterScreen)), bytes.LastIndex(frame, []byte(leaveScreen)); enter != leave {
		o.on = enter > leave
	}
	spot := o.spot.Load()
	if spot == 0 || len(frame) == 0 || !o.on { // else the cursor is the shell's
		return o.w.Write(frame)
	}
	full := make([]byte, 0, len(frame)+16)
	full = append(full, frame...)
	full = append(full, "\x1b["...)
	full = strconv.AppendUint(full, uint64(spot>>16), 10)
	full = append(full, ';')
	full = strconv.AppendUint(full, uint64(spot&0xffff), 10)
	full = append(full, 'H')
	if _, err := o.w.Write(full); err != nil {
		return 0, err
	}
	return len(frame), nil
}
