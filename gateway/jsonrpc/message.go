// Package jsonrpc reads, checks, builds and queues JSON-RPC 2.0 messages as raw bytes.
//
// A message is scanned once for its envelope; values stay raw bytes. The package must not
// know MCP methods, servers or clients. See https://www.jsonrpc.org/specification.
//
// [Parse] and functions that build frames are pure. A [Reader] belongs to one goroutine.
// [SendQueue] and [Pending] are safe for concurrent use and never block.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"goblin/registry/rawjson"
)

// Message is a JSON-RPC message. Its slices alias the parsed frame.
type Message struct {
	ID     []byte // raw number or string; nil when absent (or null in a response)
	Method string // "" in a response
	Params []byte // raw object or array; nil when absent
	Result []byte // raw value; nil when absent
	Error  []byte // raw value; nil when absent
	// Shape lets readers skip large values; it may be nil.
	Shape *rawjson.Layout
	// Buffer is the reusable memory of the slices, held by the message, or nil.
	Buffer *Buffer

	hasLineBreaks bool // between tokens
	hasMethod     bool // even an invalid one
}

// OneLine removes line breaks between tokens, which would end the frame.
func (m *Message) OneLine() {
	if m.hasLineBreaks {
		rawjson.OneLine(m.Params)
		rawjson.OneLine(m.Result)
		rawjson.OneLine(m.Error)
	}
}

// OneLine removes all line breaks except the last byte.
func OneLine(frame []byte) []byte {
	rawjson.OneLine(frame[:len(frame)-1])
	return frame
}

// IsRequest reports whether m needs an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether m is a request without id.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether m is an answer.
func (m *Message) IsResponse() bool { return m.Method == "" }

// ParseError is the reason why a frame is not a message.
type ParseError struct {
	ID          []byte // nil when unknown
	Code        int    // CodeParse, CodeInvalidRequest or CodeInvalidParams
	WantsAnswer bool   // false for answers and parse errors
	Cause       error
}

func (e *ParseError) Error() string { return e.Cause.Error() }
func (e *ParseError) Unwrap() error { return e.Cause }

// Reply returns the error to answer with.
func (e *ParseError) Reply() *Error {
	what := "Parse error"
	switch e.Code {
	case CodeInvalidRequest:
		what = "Invalid request"
	case CodeInvalidParams:
		what = "Invalid params"
	}
	return &Error{Code: e.Code, Message: what + ": " + e.Cause.Error()}
}

func invalidRequest(m *Message, format string, args ...any) error {
	return &ParseError{ID: m.ID, Code: CodeInvalidRequest, WantsAnswer: m.hasMethod, Cause: fmt.Errorf(format, args...)}
}

// ErrBatch is the cause of the error for a well-formed batch.
var ErrBatch = errors.New("batches are not supported; send one message at a time")

// Parse checks a frame and returns its envelope, or a [*ParseError]. Batches fail with
// ErrBatch, since only revision 2025-03-26 has them.
func Parse(frame []byte) (Message, error) { return ParseWithin(frame, 0) }

// ParseWithin is Parse with a nesting limit; 0 means [rawjson.MaxDepth].
func ParseWithin(frame []byte, depth int) (Message, error) {
	c := rawjson.Checker{Depth: depth}
	if len(frame) > minShapeSize {
		c.RecordShape()
	}
	return parse(&c, frame, frame)
}

// minShapeSize is the frame size in bytes above which recording shapes pays off.
const minShapeSize = 4 << 10

// parse parses frame, a part of src that c has partly checked.
func parse(c *rawjson.Checker, src, frame []byte) (m Message, err error) {
	if err := c.End(src); err != nil {
		return m, syntaxError(frame, err)
	}
	m.Shape, m.hasLineBreaks = c.Shape(src), c.HasLineBreaks()
	if rawjson.IsArray(frame) {
		return m, &ParseError{Code: CodeInvalidRequest, Cause: ErrBatch}
	}
	if !rawjson.IsObject(frame) {
		return m, invalidRequest(&m, "a message must be an object")
	}
	if err := m.readMembers(c, src, frame); err != nil {
		return m, err
	}
	return m, m.check()
}

func syntaxError(frame []byte, err error) error {
	bad := &ParseError{ID: findID(frame), Code: CodeParse, Cause: err}
	var fault *rawjson.SyntaxError
	if !errors.As(err, &fault) || fault.Depth == 0 {
		return bad
	}
	bad.Code = CodeInvalidRequest
	bad.Cause = fmt.Errorf("arrays and objects nested more than %d deep (limits.depth)", fault.Depth)
	for k := range rawjson.Members(frame) {
		bad.WantsAnswer = bad.WantsAnswer || k.Is("method")
	}
	return bad
}

const (
	memberVersion = 1 << iota
	memberID
	memberMethod
	memberParams
	memberResult
	memberError
)

// envelope holds members that Message lacks, and flags of all members.
type envelope struct {
	method, version []byte
	duplicate       rawjson.Key
	seen            int
}

func (m *Message) addMember(e *envelope, k rawjson.Key, v []byte) {
	bit := 0
	switch string(k.Name()) {
	case "jsonrpc":
		bit, e.version = memberVersion, v
	case "id":
		bit, m.ID = memberID, v
	case "method":
		bit, e.method = memberMethod, v
	case "params":
		bit, m.Params = memberParams, v
	case "result":
		bit, m.Result = memberResult, v
	case "error":
		bit, m.Error = memberError, v
	}
	if e.seen&bit != 0 {
		e.duplicate = k
	}
	e.seen |= bit
}

func (m *Message) readMembers(c *rawjson.Checker, src, frame []byte) error {
	var e envelope
	if n := c.MemberCount(); n > 0 {
		for i := range n {
			k, v := c.Member(src, i)
			m.addMember(&e, k, v)
		}
	} else {
		for k, v := range m.Shape.Members(frame) {
			m.addMember(&e, k, v)
		}
	}
	m.hasMethod = e.seen&memberMethod != 0
	if err := m.checkID(); err != nil {
		return err
	}
	if e.duplicate != nil {
		return invalidRequest(m, "duplicate member %s", e.duplicate)
	}
	if string(e.version) != `"2.0"` {
		return invalidRequest(m, `member "jsonrpc" must be "2.0"`)
	}
	if !m.hasMethod {
		return nil
	}
	if m.Method = methodName(e.method); m.Method == "" {
		return invalidRequest(m, `member "method" must be a non-empty string`)
	}
	return nil
}

var methodNames struct {
	sync.RWMutex
	names map[string]string
}

// Limits of methodNames, because peers choose the names.
const (
	maxMethods   = 256
	maxMethodLen = 64
)

// methodName returns "" if the method is not a string.
func methodName(raw []byte) string {
	methodNames.RLock()
	name, known := methodNames.names[string(raw)]
	methodNames.RUnlock()
	if known {
		return name
	}
	name, ok := rawjson.String(raw)
	if !ok {
		return ""
	}
	methodNames.Lock()
	defer methodNames.Unlock()
	if methodNames.names == nil {
		methodNames.names = make(map[string]string, maxMethods)
	}
	if len(methodNames.names) < maxMethods && len(raw) <= maxMethodLen {
		methodNames.names[string(raw)] = name
	}
	return name
}

func (m *Message) checkID() error {
	if m.ID == nil {
		return nil
	}
	if !m.hasMethod && string(m.ID) == "null" {
		m.ID = nil
		return nil
	}
	if c := m.ID[0]; c != '"' && c != '-' && (c < '0' || c > '9') {
		m.ID = nil
		return invalidRequest(m, `member "id" must be a string or a number`)
	}
	return nil
}

func (m *Message) check() error {
	if m.Method != "" {
		if m.Params != nil && string(m.Params) == "null" {
			m.Params = nil
		}
		if rawjson.IsArray(m.Params) && m.ID != nil {
			// Valid JSON-RPC, but no MCP method accepts it.
			return &ParseError{ID: m.ID, Code: CodeInvalidParams, WantsAnswer: true, Cause: errors.New(`member "params" must be an object`)}
		}
		if m.Params != nil && !rawjson.IsObject(m.Params) {
			return invalidRequest(m, `member "params" must be an object`)
		}
		return nil
	}
	if m.Result != nil && m.Error != nil { // many libraries always send both
		if isEmptyError(m.Error) {
			m.Error = nil
		} else {
			m.Result = nil
		}
	}
	if (m.Result == nil) == (m.Error == nil) {
		return invalidRequest(m, "a message needs either a method, a result or an error")
	}
	return nil
}

// isEmptyError reports whether the error beside a result means "no error".
func isEmptyError(v []byte) bool {
	return string(v) == "null" || string(v) == "false" || string(v) == `""` || string(v) == "{}"
}

// findID returns the top-level id of an invalid frame if it precedes the error. The
// sender then gets an answer instead of a timeout.
func findID(frame []byte) []byte {
	for k, v := range rawjson.Members(frame) {
		if k.Is("id") {
			if end, err := rawjson.Scan(v, 0); err != nil || end != len(v) {
				return nil
			}
			if c := v[0]; c == '"' || c == '-' || '0' <= c && c <= '9' {
				return v
			}
			return nil
		}
	}
	return nil
}

// IDString returns id as a map key, equal for equal ids and different for "1" and 1.
func IDString(id []byte) string {
	if len(id) > 0 && id[0] == '"' && bytes.IndexByte(id, '\\') >= 0 {
		if s, ok := rawjson.String(id); ok {
			return string(rawjson.Quote(s))
		}
	}
	return string(id)
}

// RequestFrame returns a request, or a notification if id is nil, with edits of params.
// Nil params are omitted.
func RequestFrame(id []byte, method string, params []byte, edits ...rawjson.Edit) []byte {
	n := len(id) + len(method) + len(params) + 64
	for _, e := range edits {
		n += len(e.Text)
	}
	dst := append(make([]byte, 0, n), `{"jsonrpc":"2.0"`...)
	if id != nil {
		dst = append(dst, `,"id":`...)
		dst = append(dst, id...)
	}
	dst = append(dst, `,"method":`...)
	dst = rawjson.AppendString(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = rawjson.AppendEdited(dst, params, edits...)
	}
	return append(dst, "}\n"...)
}

// NotificationFrame returns a notification.
func NotificationFrame(method string, params []byte, edits ...rawjson.Edit) []byte {
	return RequestFrame(nil, method, params, edits...)
}

// ResultFrame returns a result answer with edits of result.
func ResultFrame(id, result []byte, edits ...rawjson.Edit) []byte {
	n := len(id) + len(result) + 48
	for _, e := range edits {
		n += len(e.Text)
	}
	if n >= LargeSize { // Join does not zero memory
		return bytes.Join(ResultParts(id, rawjson.SpliceParts(result, edits...)), nil)
	}
	dst := head(make([]byte, 0, n), id)
	dst = append(dst, `,"result":`...)
	dst = rawjson.AppendEdited(dst, result, edits...)
	return append(dst, "}\n"...)
}

// LargeSize is the size in bytes above which parts are cheaper than copies.
const LargeSize = 4 << 10

// ResultParts returns a result answer in parts.
func ResultParts(id []byte, result [][]byte) [][]byte {
	parts := append(make([][]byte, 0, len(result)+2), append(head(nil, id), `,"result":`...))
	return append(append(parts, result...), []byte("}\n"))
}

// ErrorFrame returns an error answer. A nil id becomes null, as required for an
// unreadable id.
func ErrorFrame(id, object []byte, edits ...rawjson.Edit) []byte {
	dst := head(make([]byte, 0, len(id)+len(object)+64), id)
	dst = append(dst, `,"error":`...)
	dst = rawjson.AppendEdited(dst, object, edits...)
	return append(dst, "}\n"...)
}

func head(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		return append(dst, "null"...)
	}
	return append(dst, id...)
}

// Reply is the answer to a call: Result or Error is set.
type Reply struct {
	Result []byte
	Error  []byte // raw error object
	// Shape lets readers skip large values; it may be nil.
	Shape *rawjson.Layout
	// Buffer is held by the reply; it may be nil.
	Buffer *Buffer
}

// Error codes of JSON-RPC 2.0 §5.1.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// Error is an error of Goblin. Errors of peers stay raw.
type Error struct {
	Code    int
	Message string
	Data    []byte // raw JSON, or nil
}

func (e *Error) Error() string { return e.Message }

// ErrorCode returns Code, for users of an interface.
func (e *Error) ErrorCode() int { return e.Code }

// ErrorData returns Data, for users of an interface.
func (e *Error) ErrorData() json.RawMessage { return e.Data }

// Errorf returns an error without data.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Object returns the error as raw JSON.
func (e *Error) Object() []byte {
	dst := append(make([]byte, 0, len(e.Message)+len(e.Data)+48), `{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = rawjson.AppendString(dst, e.Message)
	if e.Data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, '}')
}

// Frame returns an error answer to id.
func (e *Error) Frame(id []byte) []byte { return ErrorFrame(id, e.Object()) }

// ParseErrorObject decodes an error object, with defaults for invalid members.
func ParseErrorObject(raw []byte) *Error {
	e := &Error{Code: CodeInternal}
	if n, ok := rawjson.Int(rawjson.Get(raw, "code")); ok {
		e.Code = int(n)
	}
	e.Message = rawjson.GetString(raw, "message")
	e.Data = rawjson.Get(raw, "data")
	return e
}

// ErrClosed is the error of a closed connection.
var ErrClosed = errors.New("connection closed")

// CancelParams returns the params of notifications/cancelled. reason may be "".
func CancelParams(id []byte, reason string) []byte {
	params := append([]byte(`{"requestId":`), id...)
	if reason != "" {
		params = append(params, `,"reason":`...)
		params = rawjson.AppendString(params, reason)
	}
	return append(params, '}')
}

// CancelFrame returns a notifications/cancelled.
func CancelFrame(id []byte, reason string) []byte {
	return NotificationFrame("notifications/cancelled", CancelParams(id, reason))
}
