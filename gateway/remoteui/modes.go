package remoteui

import (
	"bytes"
	"strconv"
)

// Private modes of terminals that are put back (xterm's control sequences,
// "DEC Private Mode Set"), in the order in which they are switched off.
var knownModes = []int{
	2026,                                        // synchronized output
	1003, 1002, 1000, 9, 1006, 1015, 1005, 1016, // mouse
	2004, 1004, // paste, focus
	1, 66, // cursor keys, keypad
	1047, 47, 1049, // alternate screen
}

const cursorMode = 25 // the one that is on in a fresh terminal

// leftBehind undoes what pagers and editors switch on: colours, mouse, paste,
// keypad, a hidden cursor, the alternate screen.
const leftBehind = "\x1b[m\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[?25h\x1b[?1049l"

const maxParams = 64 // of one sequence, in bytes; longer ones switch nothing

type scanState uint8

const (
	ground scanState = iota
	escape
	sequence // after ESC [
	text     // in an OSC, DCS, APC, PM or SOS
	textEscape
)

// modes follows what output switches on in a terminal. Output may be cut
// anywhere. The zero value is a fresh terminal.
type modes struct {
	on     map[int]bool
	hidden bool // the cursor

	state   scanState
	private bool
	bad     bool
	params  []byte
	drawn   bool // there was output
}

// scan notes what p switches.
func (m *modes) scan(p []byte) {
	m.drawn = m.drawn || len(p) > 0
	for len(p) > 0 {
		if m.state == ground {
			i := bytes.IndexByte(p, 0x1b)
			if i < 0 {
				return
			}
			p = p[i:]
		}
		m.step(p[0])
		p = p[1:]
	}
}

func (m *modes) step(c byte) {
	switch c {
	case 0x1b:
		if m.state == text {
			m.state = textEscape
		} else {
			m.state = escape
		}
		return
	case 0x18, 0x1a: // CAN and SUB end everything
		m.state = ground
		return
	}
	switch m.state {
	case escape, textEscape:
		m.begin(c)
	case sequence:
		m.collect(c)
	case text:
		if c == 0x07 {
			m.state = ground
		}
	}
}

// begin looks at the byte after ESC. A string ends at any ESC, whether a
// backslash follows or not.
func (m *modes) begin(c byte) {
	m.state = ground
	switch c {
	case '[':
		m.state = sequence
		m.private = false
		m.bad = false
		m.params = m.params[:0]
	case ']', 'P', '_', '^', 'X':
		m.state = text
	case 'c': // full reset
		m.on, m.hidden = nil, false
	}
}

func (m *modes) collect(c byte) {
	switch {
	case c < 0x20 || c == 0x7f: // executed or ignored within a sequence
	case c == '?' && len(m.params) == 0 && !m.private:
		m.private = true
	case c >= '0' && c <= '9' || c == ';':
		if len(m.params) == maxParams {
			m.bad = true
			return
		}
		m.params = append(m.params, c)
	case c >= 0x40 && c <= 0x7e:
		m.state = ground
		if m.private && !m.bad && (c == 'h' || c == 'l') {
			m.set(c == 'h')
		}
	default:
		m.bad = true
	}
}

func (m *modes) set(on bool) {
	for _, field := range bytes.Split(m.params, []byte{';'}) {
		mode, err := strconv.Atoi(string(field))
		if err != nil {
			continue
		}
		if mode == cursorMode {
			m.hidden = !on
			continue
		}
		for _, known := range knownModes {
			if mode == known {
				if m.on == nil {
					m.on = make(map[int]bool)
				}
				m.on[mode] = on
			}
		}
	}
}

// reset returns the sequences that end these modes: "" if nothing was ever shown.
func (m *modes) reset() string {
	if !m.drawn {
		return ""
	}
	s := ""
	if m.state != ground {
		s = "\x1b\\" // ends what was cut off
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

// again returns the sequences that enter these modes.
func (m *modes) again() string {
	m.state = ground // the rest of a cut sequence is never shown
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
