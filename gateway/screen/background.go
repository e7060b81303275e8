package screen

import (
	"strconv"
	"strings"
	"time"
)

// askBackground asks a terminal for its background (xterm's OSC 11).
const askBackground = "\x1b]11;?\x1b\\"

const (
	answerHead = "\x1b]11;"
	maxAnswer  = 64 // bytes of a colour
	headHeld   = 50 * time.Millisecond
	bodyHeld   = 500 * time.Millisecond
)

// asks reports whether a terminal of this kind may be asked for its background.
// Multiplexers answer for themselves or not at all, and the Linux console
// would show the question.
func asks(term string) bool {
	for _, prefix := range []string{"screen", "tmux", "dumb", "linux"} {
		if strings.HasPrefix(term, prefix) {
			return false
		}
	}
	return term != ""
}

// cutter cuts the answer to askBackground out of keys. The zero value cuts
// nothing; one that is armed cuts the first answer.
type cutter struct {
	armed bool
	held  []byte // the start of what may be an answer
	// leaked: the first of held, an ESC, was given out already. ESC alone at
	// the end of a read is a key that must not wait; what follows may still
	// show that it began an answer.
	leaked bool
}

// cut appends the keys in p to keys, in order. found: p completed the answer,
// which is colour. What might be an answer is held; see hold.
func (c *cutter) cut(keys, p []byte) (out []byte, colour string, found bool) {
	for i, b := range p {
		if !c.armed {
			return append(keys, p[i:]...), colour, found
		}
		var done bool
		if keys, done = c.step(keys, b); done {
			colour, found = strings.TrimRight(string(c.held[len(answerHead):]), "\a\x1b\\"), true
			*c = cutter{}
		}
	}
	if len(c.held) == 1 && !c.leaked {
		keys, c.leaked = append(keys, c.held...), true
	}
	return keys, colour, found
}

// step takes one byte; done: what is held is an answer.
func (c *cutter) step(keys []byte, b byte) (out []byte, done bool) {
	if c.fits(b) {
		c.held = append(c.held, b)
		return keys, len(c.held) > len(answerHead) && (b == '\a' || b == '\\')
	}
	if n := len(c.held) - 1; n > 0 && c.held[n] == 0x1b { // begins anew
		keys = c.give(keys, n)
		c.held = append(c.held, 0x1b)
		return c.step(keys, b)
	}
	keys = c.give(keys, len(c.held))
	if b == 0x1b {
		c.held = append(c.held, b)
		return keys, false
	}
	return append(keys, b), false
}

// give appends the first n held bytes to keys, and forgets all.
func (c *cutter) give(keys []byte, n int) []byte {
	from := 0
	if c.leaked {
		from = 1
	}
	keys = append(keys, c.held[min(from, n):n]...)
	c.held, c.leaked = c.held[:0], false
	return keys
}

// fits reports whether b goes on with what is held.
func (c *cutter) fits(b byte) bool {
	n := len(c.held)
	switch {
	case n < len(answerHead):
		return b == answerHead[n]
	case c.held[n-1] == 0x1b:
		return b == '\\'
	case n == len(answerHead)+maxAnswer:
		return false
	}
	return b == '\a' || b == 0x1b || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == ':' || b == '/' || b == '#'
}

// hold is how long to wait for more before flush; 0: nothing is held.
func (c *cutter) hold() time.Duration {
	switch n := len(c.held); {
	case n == 0 || n == 1 && c.leaked:
		return 0
	case n < len(answerHead):
		return headHeld
	}
	return bodyHeld // no key begins so
}

// flush appends what is held to keys.
func (c *cutter) flush(keys []byte) []byte { return c.give(keys, len(c.held)) }

// isDark reports whether a colour, as a terminal answers it, is a dark one:
// rgb:R/G/B or rgba:R/G/B/A with 1 to 4 hexadecimal digits each, or #RRGGBB.
func isDark(colour string) (dark, ok bool) {
	var fields []string
	if spec, is := strings.CutPrefix(colour, "#"); is && len(spec) == 6 {
		fields = []string{spec[:2], spec[2:4], spec[4:]}
	} else if kind, spec, is := strings.Cut(colour, ":"); is && (kind == "rgb" || kind == "rgba") {
		fields = strings.Split(spec, "/")
	}
	if len(fields) != 3 && len(fields) != 4 {
		return false, false
	}
	luma := 0.0
	for i, weight := range []float64{0.299, 0.587, 0.114} { // ITU-R BT.601
		v, err := strconv.ParseUint(fields[i], 16, 16)
		if err != nil || len(fields[i]) > 4 {
			return false, false
		}
		most := uint64(1)<<(4*len(fields[i])) - 1
		luma += weight * float64(v) / float64(most)
	}
	return luma < 0.5, true
}

// darkFrom reads COLORFGBG as rxvt sets it: "foreground;background", numbers of
// the 16 colours.
func darkFrom(colorfgbg string) *bool {
	n, err := strconv.Atoi(colorfgbg[strings.LastIndexByte(colorfgbg, ';')+1:])
	if err != nil || n < 0 || n > 15 {
		return nil
	}
	dark := n <= 6 || n == 8
	return &dark
}
