package tui

import (
	"bytes"
	"io"
	"strconv"
	"sync/atomic"
)

// output passes a screen's frames on and leaves the terminal's cursor on the
// row that is selected, where screen readers look for it. Every frame begins
// by going home, so it may stand anywhere between two.
type output struct {
	w    io.Writer
	spot atomic.Uint32 // row and column, from 1, 16 bits each
	away atomic.Bool   // the terminal shows what was there before
}

// What enters and leaves the terminal's second screen.
const enterScreen, leaveScreen = "\x1b[?1049h", "\x1b[?1049l"

// park says where the cursor belongs after the next frame.
func (o *output) park(x, y int) { o.spot.Store(uint32(y+1)<<16 | uint32(x+1)&0xffff) }

func (o *output) Write(frame []byte) (int, error) {
	if at := bytes.LastIndex(frame, []byte(leaveScreen)); at >= 0 || o.away.Load() {
		// The cursor is the shell's from here on.
		o.away.Store(bytes.LastIndex(frame, []byte(enterScreen)) <= at)
	}
	spot := o.spot.Load()
	if spot == 0 || len(frame) == 0 || o.away.Load() {
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
