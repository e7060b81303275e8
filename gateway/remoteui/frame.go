package remoteui

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

const (
	frameHello      = 'h'
	frameInput      = 'i'
	frameSize       = 's'
	frameBackground = 'b'
	frameDone       = 'd'
	framePause      = 'p'

	frameOutput  = 'o'
	frameContent = 'c'
	frameExec    = 'e'
	frameSave    = 'w'
	frameExit    = 'x'
)

// Limits, in bytes.
const (
	frameHead    = 5
	maxControl   = 1 << 20
	maxOutput    = 8 << 20
	maxQueued    = 64 << 10  // unread keys
	maxContent   = 128 << 20 // for a pager, an editor or a file
	contentPiece = 256 << 10
	contentHead  = 8 // the order's id
)

// Limits of a UI, in cells.
const (
	maxSide  = 1000
	maxCells = 250_000
)

type hello struct {
	size
	Env   map[string]string `json:"env,omitempty"`
	Theme string            `json:"theme,omitempty"`
	ASCII bool              `json:"ascii,omitempty"`
	Dark  *bool             `json:"dark,omitempty"` // nil if not known yet
}

// size is a terminal's size in cells and its image support.
type size struct {
	Width      int  `json:"width"`
	Height     int  `json:"height"`
	CellWidth  int  `json:"cellWidth,omitempty"` // in pixels; missing if unknown
	CellHeight int  `json:"cellHeight,omitempty"`
	Kitty      bool `json:"kitty,omitempty"`
	Sixel      bool `json:"sixel,omitempty"`
}

type order struct {
	ID   uint64 `json:"id"`
	Kind string `json:"kind,omitempty"` // of a program: "pager", "editor" or "browser"
	Name string `json:"name"`           // of the content, path to save to, or URL
}

type orderResult struct {
	ID    uint64 `json:"id"`
	Path  string `json:"path,omitempty"`
	Error string `json:"error,omitempty"`
}

func limit(kind byte) int {
	switch kind {
	case frameOutput, frameContent:
		return maxOutput
	case frameInput:
		return maxQueued
	}
	return maxControl
}

// appendFrame requires a payload within its limit.
func appendFrame(b []byte, kind byte, payload []byte) []byte {
	b = append(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// jsonFrame requires a type of this package, which always marshals.
func jsonFrame(kind byte, v any) []byte {
	payload, _ := json.Marshal(v)
	return appendFrame(nil, kind, payload)
}

// readFrame reads one frame, into buf if it is large enough. An error before the first
// byte is io.EOF, later io.ErrUnexpectedEOF.
func readFrame(r io.Reader, buf []byte) (kind byte, payload []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	kind = head[0]
	n := binary.BigEndian.Uint32(head[1:])
	if most := limit(kind); n > uint32(most) {
		return kind, nil, fmt.Errorf("frame %q of %d bytes, the limit is %d", kind, n, most)
	}
	if int(n) > cap(buf) {
		buf = make([]byte, n)
	}
	payload = buf[:n]
	if _, err := io.ReadFull(r, payload); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return kind, nil, err
	}
	return kind, payload, nil
}
