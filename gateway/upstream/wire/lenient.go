package wire

import (
	"bytes"
	"unicode/utf8"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

var frameStart = []byte(`{"jsonrpc"`)

// maxFrameStarts is the maximum number of positions in a line that are tried as the start
// of a message.
const maxFrameStarts = 8

// ParseFrame parses a line of a server leniently. It replaces invalid UTF-8 by U+FFFD and
// finds a message after log text without a line break. It doesn't search a line that
// starts like a message, where third-party text could pose as one. depth limits the
// nesting.
func ParseFrame(frame []byte, depth int) (jsonrpc.Message, error) {
	m, err := jsonrpc.ParseWithin(frame, depth)
	return RepairFrame(frame, depth, m, err)
}

// RepairFrame is ParseFrame for a frame that was parsed to m and err.
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

func messageLike(frame []byte) bool {
	rest, ok := bytes.CutPrefix(frame, []byte("{"))
	rest = bytes.TrimLeft(rest, " \t")
	return ok && len(rest) > 0 && rest[0] == '"'
}

// AsksForAnswer reports whether a malformed frame looks like a request by its members
// before the error.
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
