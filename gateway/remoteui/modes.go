package remoteui

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

// knownModes are the private modes that are reset, in this order (xterm's control
// sequences, "DEC Private Mode Set").
var knownModes = []int{
	2026,                                        // synchronized output
	1003, 1002, 1000, 9, 1006, 1015, 1005, 1016, // mouse
	2004, 1004, // paste, focus
	1, 66, // cursor keys, keypad
	1047, 47, 1049, // alternate buffer
}

const cursorMode = 25 // cursor; set by default

// resetSequences resets the modes that pagers and editors set. First they terminate a split
// sequence. DECSC and DECRC keep the cursor's place while the scrolling region is reset.
const resetSequences = "\x1b\\\x0f\x1b(B\x1b[4l\x1b[?7h\x1b[!p\x1b7\x1b[r\x1b8\x1b[m\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[?25h\x1b[?1049l"

// maxParams is the parser's limit for parameters of a sequence.
const maxParams = 30

// modes tracks the modes that output sets in a terminal. Output may be split anywhere.
// The zero value is a fresh terminal.
type modes struct {
	on     map[int]bool
	hidden bool // the cursor
	drawn  bool // there was output
	parser *ansi.Parser
}

func (m *modes) scan(p []byte) {
	if m.parser == nil {
		m.parser = new(ansi.Parser)
		m.parser.SetParamsSize(maxParams + 2)
		m.parser.SetDataSize(1) // the texts of sequences are not needed
		m.parser.SetHandler(ansi.Handler{HandleCsi: m.set, HandleEsc: m.escape})
	}
	m.drawn = m.drawn || len(p) > 0
	for i := 0; i < len(p); i++ {
		if m.parser.State() == parser.GroundState {
			next := bytes.IndexByte(p[i:], ansi.ESC)
			if next < 0 {
				return
			}
			i += next
		}
		m.parser.Advance(p[i])
	}
}

// escape handles a full reset (RIS).
func (m *modes) escape(cmd ansi.Cmd) {
	if cmd == 'c' {
		m.on, m.hidden = nil, false
	}
}

// set handles the sequences that set (DECSET) and reset (DECRST) private modes.
func (m *modes) set(cmd ansi.Cmd, params ansi.Params) {
	on := cmd.Final() == 'h'
	if cmd.Prefix() != '?' || cmd.Intermediate() != 0 || !on && cmd.Final() != 'l' || len(params) > maxParams {
		return
	}
	for _, param := range params {
		switch mode := param.Param(0); {
		case mode == cursorMode:
			m.hidden = !on
		case slices.Contains(knownModes, mode):
			if m.on == nil {
				m.on = make(map[int]bool)
			}
			m.on[mode] = on
		}
	}
}

// exitSequences returns "" if there was no output.
func (m *modes) exitSequences() string {
	if !m.drawn {
		return ""
	}
	s := ""
	if m.parser.State() != parser.GroundState {
		s = "\x1b\\" // terminates a split sequence
	}
	s += "\x1b[m"
	screens := ""
	for _, mode := range knownModes {
		if !m.on[mode] {
			continue
		}
		off := "\x1b[?" + strconv.Itoa(mode) + "l"
		if isAlternate(mode) {
			screens += off
		} else {
			s += off
		}
	}
	if m.hidden {
		s += "\x1b[?25h"
	}
	return s + screens
}

func (m *modes) enterSequences() string {
	if m.parser != nil {
		m.parser.Reset() // the rest of a split sequence is never shown
	}
	s := ""
	for i := len(knownModes) - 1; i >= 0; i-- {
		if mode := knownModes[i]; m.on[mode] && mode != 2026 {
			s += "\x1b[?" + strconv.Itoa(mode) + "h"
		}
	}
	if m.hidden {
		s += "\x1b[?25l"
	}
	return s
}

func isAlternate(mode int) bool { return mode == 1049 || mode == 1047 || mode == 47 }
