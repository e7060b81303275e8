package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// Limits of quoted text from a server, in bytes.
const (
	maxErrorText = 4 << 10
	// maxRedacted limits the text searched for secrets. It exceeds maxErrorText so that
	// no part of a secret remains.
	maxRedacted = 64 << 10
	maxCode     = 100
)

func (l *link) parseReply(m *jsonrpc.Message) (jsonrpc.Reply, error) {
	reply := jsonrpc.Reply{Result: m.Result, Error: m.Error, Shape: m.Shape, Buffer: m.Buffer}
	switch {
	case m.Error != nil && !wire.IsErrorObject(m.Error):
		if code, ok := wire.Integer(rawjson.Get(m.Error, "code")); ok && rawjson.IsString(rawjson.Get(m.Error, "message")) {
			reply.Error, reply.Shape = rawjson.SetMember(m.Error, "code", strconv.AppendInt(nil, code, 10)), nil
			return reply, nil
		}
		return jsonrpc.Reply{}, l.srv.malformedError(m.Error)
	case m.Result != nil && !rawjson.IsObject(m.Result):
		if l.expectsEmptyResult(m.ID) {
			return jsonrpc.Reply{Result: []byte("{}")}, nil
		}
		return jsonrpc.Reply{}, l.srv.newError(BadReply, "sent a result that is not an object: "+l.srv.quoteValue(m.Result), nil)
	}
	return reply, nil
}

func (l *link) expectsEmptyResult(id []byte) bool {
	n, _ := rawjson.Int(id)
	c, _ := l.calls.Lookup(n)
	if c == nil {
		return false
	}
	switch c.Method {
	case "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		return true
	}
	return false
}

func (s *Server) malformedError(object []byte) *Error {
	fault := &jsonrpc.Error{Code: jsonrpc.CodeInternal}
	cause, words := "that is not an object", ""
	if !rawjson.IsObject(object) {
		words = s.quoteValue(object)
	} else {
		code, message := rawjson.Get(object, "code"), rawjson.Get(object, "message")
		fault.Data = rawjson.Get(object, "data")
		if n, ok := wire.ErrorCode(code); ok {
			fault.Code = int(n)
		}
		cause = "without an integer code"
		if rawjson.IsString(message) && len(message) > len(`""`) {
			words = s.quoteValue(message) + s.errorDetails(code, fault.Data)
		} else {
			cause, words = "without a message", s.quoteValue(object)
		}
	}
	fault.Message = words
	err := s.newError(BadReply, "sent an error "+cause+": "+words, errRPC{fault})
	err.Fault = fault
	return err
}

func (s *Server) errorDetails(code, data []byte) string {
	text := ""
	if code != nil {
		text = "code " + s.quote(string(code[:min(len(code), maxRedacted)]), maxCode)
	}
	if data != nil {
		if text != "" {
			text += ", "
		}
		text += "data " + s.quote(string(data[:min(len(data), maxRedacted)]), maxErrorText)
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", text)
}

func (s *Server) quoteValue(v []byte) string {
	v = v[:min(len(v), maxRedacted)]
	text, ok := rawjson.String(v)
	if !ok {
		text = string(v)
	}
	return s.quote(text, maxErrorText)
}

// stripReply removes ambiguous members from a reply. It skips results in the legacy era,
// whose members this package doesn't read.
func (l *link) stripReply(c *Call, reply jsonrpc.Reply) jsonrpc.Reply {
	if reply.Error != nil {
		reply.Error = l.stripAmbiguous(c, rawjson.ErrorObject, reply.Shape, reply.Error)
	}
	if c.modern && reply.Result != nil {
		was := reply.Result
		reply.Result = l.stripAmbiguous(c, rawjson.Result(c.Method), reply.Shape, was)
		if &reply.Result[0] != &was[0] {
			reply.Shape = nil // it describes the old text
		}
	}
	return reply
}

func (l *link) stripAmbiguous(c *Call, tree *rawjson.KeyTree, shape *rawjson.Layout, text []byte) []byte {
	clean := tree.Clean(shape, text)
	if &clean[0] != &text[0] {
		l.srv.LogRemoved(c.Method, tree, text)
	}
	return clean
}

// LogRemoved logs that ambiguous members were removed from a text.
func (s *Server) LogRemoved(method string, tree *rawjson.KeyTree, text []byte) {
	if doubt, ok := errors.AsType[*rawjson.AmbiguousError](tree.Check(text)); ok {
		s.LogRepaired(method, fmt.Sprintf("removed members that JSON parsers may confuse with %q", doubt.Name))
	}
}

const maxRepairs = 256

// LogRepaired logs a repair of the results of a method, once per text.
func (s *Server) LogRepaired(method, text string) {
	line := method + ": " + text
	s.mu.Lock()
	known := s.repaired[line] || len(s.repaired) >= maxRepairs
	if !known {
		if s.repaired == nil {
			s.repaired = make(map[string]bool)
		}
		s.repaired[line] = true
	}
	s.mu.Unlock()
	if !known {
		s.note(slog.LevelWarn, "repaired an answer to "+line)
		s.log.WarnContext(journaled, "answer repaired", "method", method, "repair", text)
	}
}
