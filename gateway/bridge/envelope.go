package bridge

import (
	"bytes"
	"iter"

	"goblin/registry/rawjson"
)

// envelope contains the parts of a frame that the bridge uses. Its slices alias the
// frame.
type envelope struct {
	id     []byte // raw; nil if absent or null
	method string // "" for responses and malformed frames
	answer bool   // has a result or an error
	failed bool   // has an error
}

func (e *envelope) request() bool { return e.method != "" && e.id != nil }

// scan stops at the id and method, before any large params. It does not validate, since
// the daemon does. For a malformed frame it returns what it found.
func scan(frame []byte) (e envelope) {
	for key, value := range rawjson.Members(frame) {
		switch {
		case key.Is("id") && string(value) != "null":
			e.id = value
		case key.Is("method"):
			e.method, _ = rawjson.String(value)
		case key.Is("result"):
			e.answer = true
		case key.Is("error"):
			e.answer, e.failed = true, true
		}
		if e.request() {
			break
		}
	}
	return e
}

// maxBatch is the maximum number of messages in a batch that a daemon accepts.
const maxBatch = 1000

// messages returns the messages of a frame: the frame itself with envelope e, or the
// items of a batch (revision 2025-03-26). It returns none for a batch that the daemon
// refuses.
func messages(e envelope, frame []byte) iter.Seq2[envelope, []byte] {
	return func(yield func(envelope, []byte) bool) {
		if !rawjson.IsArray(frame) {
			yield(e, frame)
			return
		}
		all := batch(frame)
		for _, m := range all {
			if !yield(scan(m), append(bytes.Clone(m), '\n')) {
				return
			}
		}
	}
}

// batch returns the messages of an array, or nil if the daemon refuses it.
func batch(frame []byte) (all [][]byte) {
	if rawjson.Valid(bytes.TrimSpace(frame)) != nil {
		return nil
	}
	for m := range rawjson.Elements(frame) {
		if all = append(all, m); len(all) > maxBatch {
			return nil
		}
	}
	return all
}

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

// repeatable lists requests that a client may safely repeat.
var repeatable = map[string]bool{
	initialize: true, setLevel: true, subscribe: true, unsubscribe: true, "ping": true,
	"tools/list": true, "prompts/list": true, "prompts/get": true, "completion/complete": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true,
	"server/discover": true, "subscriptions/listen": true,
}
