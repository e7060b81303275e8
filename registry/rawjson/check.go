package rawjson

import (
	"errors"
	"fmt"
)

// Checker is [Valid] for a text that arrives in pieces: what is there is checked
// while the rest is on its way. The zero value is ready to use.
type Checker struct {
	// Depth is how deeply arrays and objects may nest; 0, and more than
	// [MaxDepth], stand for that. It is set before the first part.
	Depth int

	at     int   // what stands before it has been checked
	next   state // what may stand there
	around state // what comes after a value in the innermost container
	inside state // of the string under way: inName or inText
	from   int   // where that begins
	held   bool  // nothing more is looked at until the end
	lines  bool  // a line break stands between two tokens
	open   nesting
	marks  // of long values
	top    top
	err    error
}

// state names the bytes that may come next.
type state uint8

const (
	wantValue    state = iota
	wantName           // of a member
	wantElement        // a value or the end of the array
	wantMember         // a name or the end of the object
	wantColon          // after a name
	afterElement       // a comma or the end of the array
	afterMember        // a comma or the end of the object
	over               // nothing: the outermost value has ended
	inText             // the rest of a string that is a value
	inName             // the rest of a string that is a name
	states             // the number of states
)

// inString reports whether a string has begun that has not ended.
func (s state) inString() bool { return s == inText || s == inName }

// act is the effect of a byte.
type act uint8

const (
	fault act = iota
	quote
	quoteName
	opener
	closer
	comma
	equals
	scalar
)

// table gives the effect of each byte in each state. Within strings there is none.
var table = func() (t [states][256]act) {
	set := func(a act, bytes string, in ...state) {
		for _, s := range in {
			for _, b := range []byte(bytes) {
				t[s][b] = a
			}
		}
	}
	set(quote, `"`, wantValue, wantElement)
	set(quoteName, `"`, wantName, wantMember)
	set(opener, `{[`, wantValue, wantElement)
	set(scalar, `-0123456789tfn`, wantValue, wantElement)
	set(closer, `]`, wantElement, afterElement)
	set(closer, `}`, wantMember, afterMember)
	set(comma, `,`, afterElement, afterMember)
	set(equals, `:`, wantColon)
	return t
}()

// afterComma gives the state after a comma.
var afterComma = [states]state{afterElement: wantValue, afterMember: wantName}

// maxAgain is how much may be looked at again when more has arrived. Only
// numbers are longer.
const maxAgain = 64

// errShort says that a token goes on in what has not arrived yet.
var errShort = errors.New("more to come")

// Feed checks a part of a text: src is all of it that has arrived so far, from
// its beginning. A fault is told by [Checker.End].
func (c *Checker) Feed(src []byte) {
	c.top.off = true
	if c.err == nil && !c.held {
		c.err = c.run(src, false, false)
		c.held = len(src)-c.at > maxAgain
	}
}

// End is [Valid] for src, of which what was given to More is the beginning.
func (c *Checker) End(src []byte) error {
	if c.err == nil {
		c.top.off = c.top.off || c.on || len(src) >= maxTopText
		c.err = c.run(src, true, false)
	}
	return c.err
}

// HasLineBreaks reports whether the text has line breaks between its tokens: see
// [OneLine].
func (c *Checker) HasLineBreaks() bool { return c.lines }

// run goes on to the end of src, or to that of the value if alone is set.
// Without whole it stops before a token that may go on.
func (c *Checker) run(src []byte, whole, alone bool) error {
	i, next, err := c.resume(src, whole)
	for err == nil && !next.inString() && (next != over || !alone) {
		if i < len(src) && src[i] <= ' ' {
			i = c.space(src, i)
		}
		if i >= len(src) {
			break
		}
		switch table[next][src[i]] {
		case quote:
			c.from, c.inside = i, inText
			i, next, err = c.text(src, i+1, whole)
		case quoteName:
			c.from, c.inside = i, inName
			i, next, err = c.text(src, i+1, whole)
			c.top.named(c.open.depth, c.from, i)
		case comma:
			c.top.ends(c.open.depth, i)
			next = afterComma[next]
			i++
		case equals:
			next = wantValue
			i++
			c.top.begins(c.open.depth, i)
		case opener:
			next, err = c.opens(src, i)
			i++
		case closer:
			c.top.ends(c.open.depth, i)
			i++
			next = c.closes(i)
		case scalar:
			if i, err = other(src, i, whole); err == nil {
				next = c.around
			}
		default:
			err = misplaced(next, src, i)
		}
	}
	c.at, c.next = i, next
	if whole && err == nil && next != over {
		return misplaced(next, src, len(src))
	}
	if errors.Is(err, errShort) {
		return nil
	}
	return err
}

// resume goes on where the last run stopped, which may be within a string.
func (c *Checker) resume(src []byte, whole bool) (i int, next state, err error) {
	if c.open.depth == 0 {
		c.around = over
	}
	if c.next.inString() && c.at < len(src) {
		return c.text(src, c.at, whole)
	}
	return c.at, c.next, nil
}

// misplaced is the error of a byte, or an end, that may not stand at i.
func misplaced(next state, src []byte, i int) error {
	switch {
	case next == wantName, next == wantMember:
		return &SyntaxError{Offset: i, Reason: "expected a member name"}
	case next == wantColon:
		return &SyntaxError{Offset: i, Reason: "expected a colon"}
	case next.inString():
		return unterminated(i)
	case i >= len(src):
		return &SyntaxError{Offset: i, Reason: "unexpected end"}
	case next == over:
		return &SyntaxError{Offset: i, Reason: "text after the value"}
	}
	return unexpected(src, i)
}

func unterminated(n int) error { return &SyntaxError{Offset: n, Reason: "unterminated string"} }

func unexpected(src []byte, i int) error {
	return &SyntaxError{Offset: i, Reason: fmt.Sprintf("unexpected %q", src[i])}
}

// space skips white space.
func (c *Checker) space(src []byte, i int) int {
	for ; i < len(src); i++ {
		switch src[i] {
		case ' ', '\t':
		case '\n', '\r':
			c.lines = c.lines || c.open.depth > 0
		default:
			return i
		}
	}
	return i
}

// opens begins a container.
func (c *Checker) opens(src []byte, i int) (next state, err error) {
	object := src[i] == '{'
	if d := c.open.depth; d == MaxDepth || d == c.Depth && d > 0 {
		return wantValue, &SyntaxError{Offset: i, Reason: "nested too deeply", Depth: d}
	}
	c.open.push(object)
	c.opened(c.open.depth, i)
	if object {
		c.around = afterMember
		return wantMember, nil
	}
	c.around = afterElement
	return wantElement, nil
}

// closes ends the innermost container.
func (c *Checker) closes(end int) (next state) {
	c.closed(c.open.depth, end)
	c.open.pop()
	switch {
	case c.open.depth == 0:
		c.around = over
	case c.open.object():
		c.around = afterMember
	default:
		c.around = afterElement
	}
	return c.around
}

// text takes a string up to its end, or as far as it is there.
func (c *Checker) text(src []byte, i int, whole bool) (end int, next state, err error) {
	if i = ordinary(src, i); i < len(src) && src[i] == '"' {
		i++ // as with most of them
	} else {
		var closed bool
		if i, closed, err = text(src, i, whole); err != nil || !closed {
			return i, c.inside, err
		}
	}
	if i-c.from >= minLong {
		c.string(c.from, i)
	}
	if c.inside == inName {
		return i, wantColon, nil
	}
	return i, c.around, nil
}

// other takes a number or a word.
func other(src []byte, i int, whole bool) (int, error) {
	switch src[i] {
	case 't':
		return literal(src, i, "true", whole)
	case 'f':
		return literal(src, i, "false", whole)
	case 'n':
		return literal(src, i, "null", whole)
	}
	return number(src, i, whole)
}

// nesting is a stack of one bit per open container: set for an object.
type nesting struct {
	depth int
	word  uint64   // of the innermost ones, the innermost in the lowest bit
	outer []uint64 // 64 of those around them in each
}

func (n *nesting) push(object bool) {
	if n.depth > 0 && n.depth%64 == 0 {
		n.outer = append(n.outer, n.word)
	}
	n.word <<= 1
	if object {
		n.word |= 1
	}
	n.depth++
}

func (n *nesting) pop() {
	n.depth--
	n.word >>= 1
	if last := len(n.outer) - 1; last >= 0 && n.depth%64 == 0 {
		n.word, n.outer = n.outer[last], n.outer[:last]
	}
}

func (n *nesting) object() bool { return n.word&1 != 0 }
