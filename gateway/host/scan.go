package host

import (
	"bytes"

	"goblin/registry/rawjson"
)

// envelope is what the bridge wants to know of a frame. Slices alias it.
type envelope struct {
	id     []byte // raw; nil when absent or null
	method string // "" in an answer, and in what is no message
	answer bool   // has a result or an error
	failed bool   // has an error
}

func (e *envelope) request() bool { return e.method != "" && e.id != nil }

// scan reads a frame's top-level id and method, and stops as soon as it has
// them: large results and params behind them are not looked at. It checks
// nothing, since the host does; of a malformed frame it returns what it met.
func scan(frame []byte) (e envelope) {
	i := blank(frame, 0)
	if i >= len(frame) || frame[i] != '{' {
		return e
	}
	for i = blank(frame, i+1); i < len(frame) && frame[i] == '"'; i = blank(frame, i+1) {
		end := quoted(frame, i)
		key := rawjson.Key(frame[i:end])
		if i = blank(frame, end); i >= len(frame) || frame[i] != ':' {
			return e
		}
		i = blank(frame, i+1)
		if failed := key.Is("error"); failed || key.Is("result") {
			e.answer, e.failed = true, e.failed || failed
		}
		if e.id != nil && (e.answer || e.method != "") {
			return e
		}
		end = value(frame, i)
		switch v := frame[i:end]; {
		case key.Is("id") && string(v) != "null":
			e.id = v
		case key.Is("method"):
			e.method = methodName(v)
		}
		if i = blank(frame, end); i >= len(frame) || frame[i] != ',' {
			return e
		}
	}
	return e
}

func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// quoted returns the index after the string that starts at i.
func quoted(b []byte, i int) int {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		end := i + n
		back := end
		for back > i && b[back-1] == '\\' {
			back--
		}
		i = end + 1
		if (end-back)%2 == 0 {
			return i
		}
	}
	return len(b)
}

// value returns the index after the value that starts at i.
func value(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = quoted(b, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			for i++; i < len(b) && !ends[b[i]]; i++ {
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// ends marks the bytes that end a number or a literal.
var ends = [256]bool{',': true, ':': true, '}': true, ']': true, '{': true, '[': true, '"': true, ' ': true, '\t': true, '\r': true, '\n': true}

// Methods that the bridge knows.
const (
	initialize  = "initialize"
	initialized = "notifications/initialized"
	cancelled   = "notifications/cancelled"
	setLevel    = "logging/setLevel"
	subscribe   = "resources/subscribe"
	unsubscribe = "resources/unsubscribe"
	resChanged  = "notifications/resources/list_changed"
	toolChanged = "notifications/tools/list_changed"
	promptChgd  = "notifications/prompts/list_changed"
)

// repeatable holds the requests that change nothing, or twice the same, so
// that a client may send them again without thought.
var repeatable = map[string]bool{
	initialize: true, setLevel: true, subscribe: true, unsubscribe: true, "ping": true,
	"tools/list": true, "prompts/list": true, "prompts/get": true, "completion/complete": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true,
	"server/discover": true, "subscriptions/listen": true,
}

// names saves making a string of the method of nearly every message.
var names = func() map[string]string {
	m := make(map[string]string)
	for _, n := range []string{
		initialized, cancelled, resChanged, toolChanged, promptChgd,
		"tools/call", "notifications/progress", "notifications/message", "notifications/resources/updated",
	} {
		m[`"`+n+`"`] = n
	}
	for n := range repeatable {
		m[`"`+n+`"`] = n
	}
	return m
}()

func methodName(raw []byte) string {
	if n, ok := names[string(raw)]; ok {
		return n
	}
	n, _ := rawjson.String(raw)
	return n
}
