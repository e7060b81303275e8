package remoteui

import (
	"strconv"
	"strings"
	"time"
)

// Queries in addition to the background. Terminals reply in order, and all reply to the
// last one.
const (
	// queryKitty uses one invisible pixel.
	queryKitty      = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
	queryCellSize   = "\x1b[16t" // cell size in pixels (xterm's window operations)
	queryAttributes = "\x1b[c"   // terminal type and features (DA1)
)

// queries returns "" if a terminal must not be queried. Multiplexers reply for themselves
// or not at all, and the Linux console would display the query.
func queries(getenv func(string) string) string {
	term := getenv("TERM")
	for _, prefix := range []string{"screen", "tmux", "dumb", "linux"} {
		if strings.HasPrefix(term, prefix) {
			return ""
		}
	}
	if term == "" {
		return ""
	}
	s := queryBackground
	if getenv("TMUX") != "" {
		return s
	}
	// Some terminals display unknown sequences, so query kitty's protocol only where it
	// and its placeholders may be supported.
	if strings.Contains(term, "kitty") || strings.Contains(term, "ghostty") || getenv("KITTY_WINDOW_ID") != "" || getenv("TERM_PROGRAM") == "ghostty" {
		s += queryKitty
	}
	return s + queryCellSize + queryAttributes
}

type replyKind int

const (
	replyBackground replyKind = iota
	replyKitty
	replyCellSize
	replyAttributes
	replyKinds
)

// replyPatterns describe the replies: prefix, allowed characters, their maximum number,
// and the final byte of a control sequence (0: BEL or ST).
var replyPatterns = [replyKinds]struct {
	head, body string
	most       int
	end        byte
}{
	replyBackground: {"\x1b]11;", "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:/#", 64, 0},
	replyKitty:      {"\x1b_G", "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ=,;:.-_ ", 256, 0},
	replyCellSize:   {"\x1b[6;", "0123456789;", 16, 't'},
	replyAttributes: {"\x1b[?", "0123456789;", 64, 'c'},
}

const (
	headTimeout = 50 * time.Millisecond
	bodyTimeout = 500 * time.Millisecond
)

type terminalReply struct {
	kind replyKind
	body string
}

// replyParser extracts replies from keys: the first one of each expected kind. The zero
// value extracts nothing.
type replyParser struct {
	expected [replyKinds]bool
	pending  []byte // the start of a possible reply
	// escForwarded reports whether the first pending byte, an ESC, was already forwarded.
	// ESC alone at the end of a read is a key that must not wait.
	escForwarded bool
}

func (c *replyParser) expect(questions string) {
	for kind, question := range [replyKinds]string{queryBackground, queryKitty, queryCellSize, queryAttributes} {
		c.expected[kind] = strings.Contains(questions, question)
	}
}

func (c *replyParser) isIdle() bool { return c.expected == [replyKinds]bool{} }

// extract appends the keys in p to keys and returns the replies. Bytes that may start a
// reply stay pending, see flushDelay.
func (c *replyParser) extract(keys, p []byte) (out []byte, all []terminalReply) {
	for i, b := range p {
		if c.isIdle() {
			return append(keys, p[i:]...), all
		}
		var kind replyKind
		var done bool
		if keys, kind, done = c.step(keys, b); done {
			body := string(c.pending[len(replyPatterns[kind].head) : len(c.pending)-1])
			all = append(all, terminalReply{kind, strings.TrimRight(body, "\x1b")})
			c.pending, c.escForwarded = c.pending[:0], false
			c.expected[kind] = false
			if kind == replyAttributes { // the last query
				c.expected[replyKitty], c.expected[replyCellSize] = false, false
			}
		}
	}
	if len(c.pending) == 1 && !c.escForwarded {
		keys, c.escForwarded = append(keys, c.pending...), true
	}
	return keys, all
}

// step handles one byte. done reports whether the pending bytes are a complete reply.
func (c *replyParser) step(keys []byte, b byte) (out []byte, kind replyKind, done bool) {
	if kind, fits, done := c.match(b); fits {
		c.pending = append(c.pending, b)
		return keys, kind, done
	}
	if n := len(c.pending) - 1; n > 0 && c.pending[n] == 0x1b { // a new reply starts
		keys = c.release(keys, n)
		c.pending = append(c.pending, 0x1b)
		return c.step(keys, b)
	}
	keys = c.release(keys, len(c.pending))
	if b == 0x1b {
		c.pending = append(c.pending, b)
		return keys, 0, false
	}
	return append(keys, b), 0, false
}

// release appends the first n pending bytes to keys, and drops all pending bytes.
func (c *replyParser) release(keys []byte, n int) []byte {
	from := 0
	if c.escForwarded {
		from = 1
	}
	keys = append(keys, c.pending[min(from, n):n]...)
	c.pending, c.escForwarded = c.pending[:0], false
	return keys
}

// match reports whether b continues the pending bytes as an expected reply, and completes
// it.
func (c *replyParser) match(b byte) (kind replyKind, fits, done bool) {
	n := len(c.pending)
	for kind, s := range replyPatterns {
		begun := min(n, len(s.head))
		if !c.expected[kind] || string(c.pending[:begun]) != s.head[:begun] {
			continue
		}
		switch {
		case n < len(s.head):
			fits = b == s.head[n]
		case s.end != 0:
			done = b == s.end
			fits = done || n < len(s.head)+s.most && strings.IndexByte(s.body, b) >= 0
		case c.pending[n-1] == 0x1b:
			done = b == '\\'
			fits = done
		default:
			done = b == '\a'
			fits = done || n < len(s.head)+s.most && (b == 0x1b || strings.IndexByte(s.body, b) >= 0)
		}
		if fits {
			return replyKind(kind), true, done
		}
	}
	return 0, false, false
}

// flushDelay returns the time to wait for more bytes before flush, or 0 if nothing is
// pending.
func (c *replyParser) flushDelay() time.Duration {
	n := len(c.pending)
	if n == 0 || n == 1 && c.escForwarded {
		return 0
	}
	for kind, s := range replyPatterns {
		if c.expected[kind] && n >= len(s.head) && string(c.pending[:len(s.head)]) == s.head {
			return bodyTimeout // keys hardly ever start like this
		}
	}
	return headTimeout
}

func (c *replyParser) flush(keys []byte) []byte { return c.release(keys, len(c.pending)) }

func (s *size) applyReply(a terminalReply) {
	switch a.kind {
	case replyKitty:
		_, verdict, _ := strings.Cut(a.body, ";")
		s.Kitty = verdict == "OK"
	case replyCellSize:
		h, w, _ := strings.Cut(a.body, ";")
		s.CellWidth, s.CellHeight = parsePixels(w), parsePixels(h)
	case replyAttributes:
		for i, has := range strings.Split(a.body, ";") {
			s.Sixel = s.Sixel || i > 0 && has == "4"
		}
	}
}

// maxCellSide is in pixels.
const maxCellSide = 200

// parsePixels returns 0 for an invalid value.
func parsePixels(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > maxCellSide {
		return 0
	}
	return n
}
