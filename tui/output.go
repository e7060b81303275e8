package tui

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// output shares the terminal between Bubble Tea, which switches its modes, and the
// painter, which draws the frames. Frames leave the cursor on the selected row for
// assistive technology. Each line of a frame is positioned, so the cursor may be anywhere
// between frames.
type output struct {
	w           io.Writer
	mu          sync.Mutex    // serializes writes
	screenShown bool          // the alternate buffer is visible
	cursor      atomic.Uint32 // row and column, from 1, 16 bits each
	// beforeLeave returns bytes to write before the alternate buffer is left. It may be
	// nil.
	beforeLeave func() []byte
}

// maxWrite is the size of one write, in bytes. A slow connection must accept it within
// the write timeout.
const maxWrite = 256 << 10

// Sequences that enter and leave the alternate buffer.
const enterScreen, leaveScreen = "\x1b[?1049h", "\x1b[?1049l"

func (o *output) setCursor(x, y int) { o.cursor.Store(uint32(y+1)<<16 | uint32(x+1)&0xffff) }

// cursorHome begins each frame of Bubble Tea's renderer.
const cursorHome = "\x1b[H"

// Write writes Bubble Tea's output except its frames.
func (o *output) Write(frame []byte) (int, error) {
	if bytes.HasPrefix(frame, []byte(cursorHome)) {
		return len(frame), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writePart(frame)
}

// paint writes a frame unless the alternate buffer is hidden.
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
	if spot := o.cursor.Load(); spot != 0 && len(frame) > 0 && o.screenShown { // otherwise the cursor is the shell's
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
