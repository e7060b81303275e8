package rawjson

import (
	"errors"
	"fmt"
)

// Checker is [Valid] for a text that arrives in parts, and checks each part on arrival.
// The zero value is ready.
type Checker struct {
	// Depth is the maximum nesting of arrays and objects. 0 means [MaxDepth], which is
	// also the maximum. It must be set before the first part.
	Depth int

	checked     int   // checked bytes
	next        state // what may come at checked
	afterValue  state // state after a value in the innermost container
	stringState state // of the current string: inName or inText
	stringStart int   // start of the current string
	deferred    bool  // End checks the rest
	lineBreaks  bool  // line breaks between tokens
	open        bitStack
	longValues  // of long values
	top         topMembers
	err         error
}

type state uint8

const (
	wantValue    state = iota
	wantName           // of a member
	wantElement        // a value or the end of the array
	wantMember         // a name or the end of the object
	wantColon          // after a name
	afterElement       // a comma or the end of the array
	afterMember        // a comma or the end of the object
	atEnd              // nothing, after the outermost value
	inText             // the rest of a string that is a value
	inName             // the rest of a string that is a name
	numStates
)

func (s state) inString() bool { return s == inText || s == inName }

type action uint8

const (
	fault action = iota
	quote
	quoteName
	opener
	closer
	comma
	colon
	scalar
)

var transitions = func() (t [numStates][256]action) {
	set := func(a action, bytes string, in ...state) {
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
	set(colon, `:`, wantColon)
	return t
}()

var afterComma = [numStates]state{afterElement: wantValue, afterMember: wantName}

// maxRescan is the maximum number of bytes checked again when more arrive. Only numbers
// are longer.
const maxRescan = 64

var errIncomplete = errors.New("more to come")

// Feed checks the next part of a text. src is all of the text so far. [Checker.End]
// returns errors.
func (c *Checker) Feed(src []byte) {
	c.top.disabled = true
	if c.err == nil && !c.deferred {
		c.err = c.check(src, false, false)
		c.deferred = len(src)-c.checked > maxRescan
	}
}

// End is [Valid] for src, which begins with the text passed to Feed.
func (c *Checker) End(src []byte) error {
	if c.err == nil {
		c.top.disabled = c.top.disabled || c.enabled || len(src) >= maxTopText
		c.err = c.check(src, true, false)
	}
	return c.err
}

// HasLineBreaks reports whether the text has line breaks between tokens, see [OneLine].
func (c *Checker) HasLineBreaks() bool { return c.lineBreaks }

// check checks src to its end, or to the end of one value if alone is set. Without whole
// it stops before a token that may continue.
func (c *Checker) check(src []byte, whole, alone bool) error {
	i, next, err := c.resume(src, whole)
	for err == nil && !next.inString() && (next != atEnd || !alone) {
		if i < len(src) && src[i] <= ' ' {
			i = c.skipSpace(src, i)
		}
		if i >= len(src) {
			break
		}
		switch transitions[next][src[i]] {
		case quote:
			c.stringStart, c.stringState = i, inText
			i, next, err = c.checkString(src, i+1, whole)
		case quoteName:
			c.stringStart, c.stringState = i, inName
			i, next, err = c.checkString(src, i+1, whole)
			c.top.addName(c.open.depth, c.stringStart, i)
		case comma:
			c.top.setValueEnd(c.open.depth, i)
			next = afterComma[next]
			i++
		case colon:
			next = wantValue
			i++
			c.top.setValueStart(c.open.depth, i)
		case opener:
			next, err = c.openContainer(src, i)
			i++
		case closer:
			c.top.setValueEnd(c.open.depth, i)
			i++
			next = c.closeContainer(i)
		case scalar:
			if i, err = scanScalar(src, i, whole); err == nil {
				next = c.afterValue
			}
		default:
			err = stateError(next, src, i)
		}
	}
	c.checked, c.next = i, next
	if whole && err == nil && next != atEnd {
		return stateError(next, src, len(src))
	}
	if errors.Is(err, errIncomplete) {
		return nil
	}
	return err
}

func (c *Checker) resume(src []byte, whole bool) (i int, next state, err error) {
	if c.open.depth == 0 {
		c.afterValue = atEnd
	}
	if c.next.inString() && c.checked < len(src) {
		return c.checkString(src, c.checked, whole)
	}
	return c.checked, c.next, nil
}

func stateError(next state, src []byte, i int) error {
	switch {
	case next == wantName, next == wantMember:
		return &SyntaxError{Offset: i, Reason: "expected a member name"}
	case next == wantColon:
		return &SyntaxError{Offset: i, Reason: "expected a colon"}
	case next.inString():
		return unterminated(i)
	case i >= len(src):
		return &SyntaxError{Offset: i, Reason: "unexpected end"}
	case next == atEnd:
		return &SyntaxError{Offset: i, Reason: "text after the value"}
	}
	return unexpectedByte(src, i)
}

func unterminated(n int) error { return &SyntaxError{Offset: n, Reason: "unterminated string"} }

func unexpectedByte(src []byte, i int) error {
	return &SyntaxError{Offset: i, Reason: fmt.Sprintf("unexpected %q", src[i])}
}

func (c *Checker) skipSpace(src []byte, i int) int {
	for ; i < len(src); i++ {
		switch src[i] {
		case ' ', '\t':
		case '\n', '\r':
			c.lineBreaks = c.lineBreaks || c.open.depth > 0
		default:
			return i
		}
	}
	return i
}

func (c *Checker) openContainer(src []byte, i int) (next state, err error) {
	object := src[i] == '{'
	if d := c.open.depth; d == MaxDepth || d == c.Depth && d > 0 {
		return wantValue, &SyntaxError{Offset: i, Reason: "nested too deeply", Depth: d}
	}
	c.open.push(object)
	c.containerStart(c.open.depth, i)
	if object {
		c.afterValue = afterMember
		return wantMember, nil
	}
	c.afterValue = afterElement
	return wantElement, nil
}

func (c *Checker) closeContainer(end int) (next state) {
	c.containerEnd(c.open.depth, end)
	c.open.pop()
	switch {
	case c.open.depth == 0:
		c.afterValue = atEnd
	case c.open.isObject():
		c.afterValue = afterMember
	default:
		c.afterValue = afterElement
	}
	return c.afterValue
}

func (c *Checker) checkString(src []byte, i int, whole bool) (end int, next state, err error) {
	if i = skipPlain(src, i); i < len(src) && src[i] == '"' {
		i++ // the most common case
	} else {
		var closed bool
		if i, closed, err = scanString(src, i, whole); err != nil || !closed {
			return i, c.stringState, err
		}
	}
	if i-c.stringStart >= minLong {
		c.addString(c.stringStart, i)
	}
	if c.stringState == inName {
		return i, wantColon, nil
	}
	return i, c.afterValue, nil
}

func scanScalar(src []byte, i int, whole bool) (int, error) {
	switch src[i] {
	case 't':
		return scanLiteral(src, i, "true", whole)
	case 'f':
		return scanLiteral(src, i, "false", whole)
	case 'n':
		return scanLiteral(src, i, "null", whole)
	}
	return scanNumber(src, i, whole)
}

type bitStack struct {
	depth int
	word  uint64   // innermost ones, in the lowest bits
	outer []uint64 // the others, 64 per element
}

func (n *bitStack) push(object bool) {
	if n.depth > 0 && n.depth%64 == 0 {
		n.outer = append(n.outer, n.word)
	}
	n.word <<= 1
	if object {
		n.word |= 1
	}
	n.depth++
}

func (n *bitStack) pop() {
	n.depth--
	n.word >>= 1
	if last := len(n.outer) - 1; last >= 0 && n.depth%64 == 0 {
		n.word, n.outer = n.outer[last], n.outer[:last]
	}
}

func (n *bitStack) isObject() bool { return n.word&1 != 0 }
