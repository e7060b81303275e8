package tui

import (
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
}

// park says where the cursor belongs after the next frame.
func (o *output) park(x, y int) { o.spot.Store(uint32(y+1)<<16 | uint32(x+1)&0xffff) }

func (o *output) Write(frame []byte) (int, error) {
	spot := o.spot.Load()
	if spot == 0 || len(frame) == 0 {
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
