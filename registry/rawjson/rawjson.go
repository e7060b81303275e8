// Package rawjson checks, reads and edits JSON text without decoding it.
//
// It implements the grammar (RFC 8259) and the tables of relevant MCP members
// ([KeyTree]). All functions are pure and safe for concurrent use; returned slices alias
// their input. Readers require a text accepted by [Valid]. On other texts they return
// garbage, but never panic or loop.
package rawjson

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// MaxDepth is the maximum nesting of arrays and objects. It equals the limit of
// encoding/json, so peers written in Go can decode everything accepted here.
const MaxDepth = 10000

// SyntaxError is the error for invalid JSON.
type SyntaxError struct {
	Offset int // bytes before the error
	Reason string
	Depth  int // exceeded nesting limit, or 0
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

// Explain returns the reason with line and column in src, counted from 1 in characters.
// The result is safe to show.
func (e *SyntaxError) Explain(src []byte) string {
	before := src[:min(e.Offset, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf("line %d, column %d: %s", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(before[start:])+1, e.Reason)
}

// Valid returns an error unless src is one JSON value in UTF-8, nested at most [MaxDepth]
// deep. Whitespace around it is allowed.
func Valid(src []byte) error {
	var c Checker
	return c.End(src)
}

// Scan checks the one value that starts at src[i]. It returns the index after it, or
// after its valid part.
func Scan(src []byte, i int) (end int, err error) {
	if i < len(src) && AfterSpace(src, i) > i {
		return i, unexpectedByte(src, i)
	}
	c := Checker{checked: i}
	err = c.check(src, true, true)
	return c.checked, err
}

// AfterSpace returns the index of the first non-whitespace byte from i on.
func AfterSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}
