package remoteui

import (
	"strconv"
	"strings"
	"time"
)

// What a terminal is asked besides its background. Terminals answer in order, and all
// answer the last one.
const (
	// askKitty asks kitty's graphics protocol whether it is there, with one pixel that is
	// shown nowhere.
	askKitty = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
	askCell  = "\x1b[16t" // how many pixels a cell has (xterm's window operations)
	askWhat  = "\x1b[c"   // what it is and has (DA1)
)

// questions returns the queries to write to a terminal; "" for one that must not be asked.
// Multiplexers answer for themselves or not at all, and the Linux console would show the
// question.
func questions(getenv func(string) string) string {
	term := getenv("TERM")
	for _, prefix := range []string{"screen", "tmux", "dumb", "linux"} {
		if strings.HasPrefix(term, prefix) {
			return ""
		}
	}
	if term == "" {
		return ""
	}
	s := askBackground
	if getenv("TMUX") != "" {
		return s
	}
	// Some terminals show what they do not know, so that only those are asked for kitty's
	// protocol which may have it, and its placeholders.
	if strings.Contains(term, "kitty") || strings.Contains(term, "ghostty") || getenv("KITTY_WINDOW_ID") != "" || getenv("TERM_PROGRAM") == "ghostty" {
		s += askKitty
	}
	return s + askCell + askWhat
}

// answerKind is a kind of answer of terminals.
type answerKind int

const (
	aboutBackground answerKind = iota
	aboutKitty
	aboutCell
	aboutWhat
	answerKinds
)

// shapes are how answers look: their beginning, the characters that may follow, how many
// at most, and the end of a control sequence, 0 for BEL or ST.
var shapes = [answerKinds]struct {
	head, body string
	most       int
	end        byte
}{
	aboutBackground: {"\x1b]11;", "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:/#", 64, 0},
	aboutKitty:      {"\x1b_G", "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ=,;:.-_ ", 256, 0},
	aboutCell:       {"\x1b[6;", "0123456789;", 16, 't'},
	aboutWhat:       {"\x1b[?", "0123456789;", 64, 'c'},
}

const (
	headHeld = 50 * time.Millisecond
	bodyHeld = 500 * time.Millisecond
)

// terminalAnswer is an answer, without its head and end.
type terminalAnswer struct {
	kind answerKind
	body string
}

// answerParser cuts answers out of keys. The zero value cuts nothing; of each kind that was
// asked for it cuts the first.
type answerParser struct {
	asked [answerKinds]bool
	held  []byte // the start of what may be an answer
	// leaked: the first of held, an ESC, was given out already. ESC alone at
	// the end of a read is a key that must not wait; what follows may still
	// show that it began an answer.
	leaked bool
}

// ask has the parser expect the answers to what is asked.
func (c *answerParser) ask(questions string) {
	for kind, question := range [answerKinds]string{askBackground, askKitty, askCell, askWhat} {
		c.asked[kind] = strings.Contains(questions, question)
	}
}

// idle reports that no answer is waited for.
func (c *answerParser) idle() bool { return c.asked == [answerKinds]bool{} }

// cut appends the keys in p to keys, in order, and the answers to found. What might be an
// answer is held; see hold.
func (c *answerParser) cut(keys, p []byte) (out []byte, all []terminalAnswer) {
	for i, b := range p {
		if c.idle() {
			return append(keys, p[i:]...), all
		}
		var kind answerKind
		var done bool
		if keys, kind, done = c.step(keys, b); done {
			body := string(c.held[len(shapes[kind].head) : len(c.held)-1])
			all = append(all, terminalAnswer{kind, strings.TrimRight(body, "\x1b")})
			c.held, c.leaked = c.held[:0], false
			c.asked[kind] = false
			if kind == aboutWhat { // it was asked last
				c.asked[aboutKitty], c.asked[aboutCell] = false, false
			}
		}
	}
	if len(c.held) == 1 && !c.leaked {
		keys, c.leaked = append(keys, c.held...), true
	}
	return keys, all
}

// step takes one byte; done: what is held is an answer.
func (c *answerParser) step(keys []byte, b byte) (out []byte, kind answerKind, done bool) {
	if kind, fits, done := c.fits(b); fits {
		c.held = append(c.held, b)
		return keys, kind, done
	}
	if n := len(c.held) - 1; n > 0 && c.held[n] == 0x1b { // begins anew
		keys = c.give(keys, n)
		c.held = append(c.held, 0x1b)
		return c.step(keys, b)
	}
	keys = c.give(keys, len(c.held))
	if b == 0x1b {
		c.held = append(c.held, b)
		return keys, 0, false
	}
	return append(keys, b), 0, false
}

// give appends the first n held bytes to keys, and forgets all.
func (c *answerParser) give(keys []byte, n int) []byte {
	from := 0
	if c.leaked {
		from = 1
	}
	keys = append(keys, c.held[min(from, n):n]...)
	c.held, c.leaked = c.held[:0], false
	return keys
}

// fits reports whether b goes on with what is held, as an answer that is waited for, and
// whether that is whole then.
func (c *answerParser) fits(b byte) (kind answerKind, fits, done bool) {
	n := len(c.held)
	for kind, s := range shapes {
		begun := min(n, len(s.head))
		if !c.asked[kind] || string(c.held[:begun]) != s.head[:begun] {
			continue
		}
		switch {
		case n < len(s.head):
			fits = b == s.head[n]
		case s.end != 0:
			done = b == s.end
			fits = done || n < len(s.head)+s.most && strings.IndexByte(s.body, b) >= 0
		case c.held[n-1] == 0x1b:
			done = b == '\\'
			fits = done
		default:
			done = b == '\a'
			fits = done || n < len(s.head)+s.most && (b == 0x1b || strings.IndexByte(s.body, b) >= 0)
		}
		if fits {
			return answerKind(kind), true, done
		}
	}
	return 0, false, false
}

// hold is how long to wait for more before flush; 0: nothing is held.
func (c *answerParser) hold() time.Duration {
	n := len(c.held)
	if n == 0 || n == 1 && c.leaked {
		return 0
	}
	for kind, s := range shapes {
		if c.asked[kind] && n >= len(s.head) && string(c.held[:len(s.head)]) == s.head {
			return bodyHeld // hardly a key begins so
		}
	}
	return headHeld
}

// flush appends what is held to keys.
func (c *answerParser) flush(keys []byte) []byte { return c.give(keys, len(c.held)) }

// learn notes what a terminal answered about images.
func (s *size) learn(a terminalAnswer) {
	switch a.kind {
	case aboutKitty:
		_, verdict, _ := strings.Cut(a.body, ";")
		s.Kitty = verdict == "OK"
	case aboutCell:
		h, w, _ := strings.Cut(a.body, ";")
		s.CellWidth, s.CellHeight = pixels(w), pixels(h)
	case aboutWhat:
		for i, has := range strings.Split(a.body, ";") {
			s.Sixel = s.Sixel || i > 0 && has == "4"
		}
	}
}

// mostCell bounds a side of a cell, in pixels.
const mostCell = 200

// pixels is a side of a cell; 0 for what is none.
func pixels(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > mostCell {
		return 0
	}
	return n
}
