// Lenient reads what a server writes that is not quite a message. It knows no
// connection and keeps nothing.

package wire

import (
	"bytes"
	"unicode/utf8"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

var frameStart = []byte(`{"jsonrpc"`)

// maxFrameStarts is the maximum number of positions in a line that are tried as the start of a message.
const maxFrameStarts = 8

// ParseFrame reads a line of a backend as leniently as is safe: invalid UTF-8
// becomes U+FFFD, and a message behind log text that lacked its line break is
// found. Inside a line that begins as a message nothing is searched: there,
// text of third parties could pose as a message. It may nest depth deep.
func ParseFrame(frame []byte, depth int) (jsonrpc.Message, error) {
	m, err := jsonrpc.ParseWithin(frame, depth)
	return RepairFrame(frame, depth, m, err)
}

// RepairFrame is ParseFrame for a frame that jsonrpc.Parse returned m and err for.
func RepairFrame(frame []byte, depth int, m jsonrpc.Message, err error) (jsonrpc.Message, error) {
	if err == nil {
		return m, nil
	}
	if !utf8.Valid(frame) {
		frame = bytes.ToValidUTF8(frame, []byte("\uFFFD"))
		if m, err = jsonrpc.ParseWithin(frame, depth); err == nil {
			return m, nil
		}
	}
	if messageLike(frame) {
		return m, err
	}
	rest := frame
	for range maxFrameStarts {
		at := bytes.Index(rest, frameStart)
		if at < 0 {
			break
		}
		rest = rest[at:]
		if found, e := jsonrpc.ParseWithin(rest, depth); e == nil {
			return found, nil
		}
		rest = rest[len(frameStart):]
	}
	return m, err
}

// messageLike reports whether a line begins as an object with members.
func messageLike(frame []byte) bool {
	rest, ok := bytes.CutPrefix(frame, []byte("{"))
	rest = bytes.TrimLeft(rest, " \t")
	return ok && len(rest) > 0 && rest[0] == '"'
}

// AsksForAnswer reports whether a broken frame was meant as a request, as far as its
// members before the fault tell.
func AsksForAnswer(frame []byte) bool {
	for k := range rawjson.Members(frame) {
		switch {
		case k.Is("method"):
			return true
		case k.Is("result"), k.Is("error"):
			return false
		}
	}
	return false
}
