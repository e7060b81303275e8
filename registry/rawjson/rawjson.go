// Package rawjson checks, reads and edits JSON text without decoding it.
//
// It owns the grammar (RFC 8259), nothing else: it knows no protocol. All
// functions are pure and safe for concurrent use; returned slices alias their
// input. [Valid] must have accepted a text before the readers below look at
// it; on text that it did not accept they return garbage, but they never
// panic and never loop.
package rawjson

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// MaxDepth is how deeply arrays and objects may nest. It is the bound of Go's
// own decoder, so whatever passes here can be decoded by peers written in Go.
const MaxDepth = 10000

// SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	Offset int    // bytes before the fault
	Reason string // what was wrong there
	Depth  int    // the bound that the text nests beyond, if that is the fault; else 0
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

// Explain returns the line and column of the fault in src, counted from 1 in characters,
// and the reason. The result is safe to show.
func (e *SyntaxError) Explain(src []byte) string {
	before := src[:min(e.Offset, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf("line %d, column %d: %s", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(before[start:])+1, e.Reason)
}

// Valid reports whether src is exactly one JSON value (with surrounding white
// space), encoded as UTF-8 and nested at most [MaxDepth] deep.
func Valid(src []byte) error {
	var c Checker
	return c.End(src)
}

// Scan checks the grammar and the encoding of the one value that starts at
// src[i] and returns the index after it, or after what is good of it.
func Scan(src []byte, i int) (end int, err error) {
	if i < len(src) && AfterSpace(src, i) > i {
		return i, unexpectedByte(src, i)
	}
	c := Checker{checked: i}
	err = c.check(src, true, true)
	return c.checked, err
}

// AfterSpace is the place of the first byte from i on that is no white space.
func AfterSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}
