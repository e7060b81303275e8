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
	w           io.Writer
	mu          sync.Mutex    // of writing
	screenShown bool          // the second screen is shown
	cursor      atomic.Uint32 // row and column, from 1, 16 bits each
	// beforeLeave returns bytes to write before the second screen is left; nil for none.
	beforeLeave func() []byte
}

// maxWrite is the size of one write, in bytes. A terminal at the end of a slow connection must
// accept it within the write timeout.
const maxWrite = 256 << 10

// What enters and leaves the terminal's second screen.
const enterScreen, leaveScreen = "\x1b[?1049h", "\x1b[?1049l"

// setCursor sets the position of the cursor after the next frame.
func (o *output) setCursor(x, y int) { o.cursor.Store(uint32(y+1)<<16 | uint32(x+1)&0xffff) }

// home begins each frame of Bubble Tea's renderer.
const home = "\x1b[H"

// Write takes what Bubble Tea writes, of which its frames are left out.
func (o *output) Write(frame []byte) (int, error) {
	if bytes.HasPrefix(frame, []byte(home)) {
		return len(frame), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writePart(frame)
}

// paint writes a frame, if the screen is there to be painted.
func (o *output) paint(frame []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.screenShown {
		return false
	}
	_, err := o.writePart(frame)
	return err == nil
}

func (o *output) writePart(frame []byte) (int, error) {
	was := o.screenShown
	if enter, leave := bytes.LastIndex(frame, []byte(enterScreen)), bytes.LastIndex(frame, []byte(leaveScreen)); enter != leave {
		o.screenShown = enter > leave
	}
	var full []byte
	if was && !o.screenShown && o.beforeLeave != nil {
		full = o.beforeLeave()
	}
	full = append(slices.Grow(full, len(frame)+16), frame...)
	if spot := o.cursor.Load(); spot != 0 && len(frame) > 0 && o.screenShown { // else the cursor is the shell's
		full = appendCursor(full, spot)
	}
	for rest := full; len(rest) > 0; {
		n, err := o.w.Write(rest[:min(len(rest), maxWrite)])
		if err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(frame), nil
}

func appendCursor(full []byte, spot uint32) []byte {
	full = append(full, "\x1b["...)
	full = strconv.AppendUint(full, uint64(spot>>16), 10)
	full = append(full, ';')
	full = strconv.AppendUint(full, uint64(spot&0xffff), 10)
	return append(full, 'H')
}
