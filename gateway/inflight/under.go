// Package inflight tracks the client requests that servers have not answered yet.
//
// A [Table] knows the open connections and what is under way on each, so that what
// a server asks or says in between is traced to the client that caused it. An
// [Request] is one such request: its place in the server's limit, its progress, and the
// time that people take to answer questions because of it. A [Rewriter] turns the
// URIs of an answer into those that clients see.
//
// Nothing here chooses a server or a connection, or knows what a method means.
// Causes may be asked for on read loops; only Do waits, for the server's answer.
package inflight

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/telemetry"
	"goblin/gateway/upstream"
	"goblin/gateway/upstream/wire"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Request is one client request under way at a server, or at a local tool. Its zero value
// is made ready by Begin.
type Request struct {
	Exchange *downstream.Request
	Outer    *Request // of the call that the request was made for, nil for a client's own
	Call     upstream.Call
	release  func() // gives the backend's limiter slot back; once
	landed   atomic.Bool
	asked    atomic.Bool              // the backend asked the client something meanwhile
	lacking  atomic.Pointer[[]string] // a capability that the client did not declare, but was needed
	thinking thinking
	habit    *LatencyHistory // nil for none

	link         *Link    // where it is under way, nil before and after
	older, newer *Request // under way there
}

// thinking is the time that people took to answer questions because of a call.
type thinking struct {
	mu     sync.Mutex
	open   int           // questions that people think about now
	since  time.Time     // of the first of them
	before time.Duration // for those before
}

// Begin makes the call that an exchange is passed on by. outer is the call that it was
// made for, nil for a client's own; release gives back its place in the server's
// limit.
func (u *Request) Begin(x *downstream.Request, outer *Request, release func(), edits []rawjson.Edit) {
	u.Exchange, u.Outer, u.release = x, outer, release
	u.Call.Cause = u
	u.Call.Method = x.Method()
	u.Call.Params = x.Params()
	u.Call.Edits = edits
}

// AttachProgressToken gives the call a token of its own for its progress, which extends its time, and
// relays that to a client that has asked for it, in meta, the `_meta` of the params, with
// the client's token. What is quick by habit, which may be nil, gets a token only
// if its client has asked.
func (u *Request) AttachProgressToken(j *telemetry.Journal, server, name string, meta []byte, habit *LatencyHistory) {
	x := u.Exchange
	u.habit = habit
	var theirs []byte
	u.Call.Token, theirs = wire.FindToken(x.Params(), meta)
	if theirs == nil || u.Outer != nil || len(theirs) > downstream.MaxToken {
		if theirs == nil && habit.quick() {
			u.Call.Token = wire.KeepToken
		}
		return
	}
	u.Call.Progress = func(params []byte) {
		params = DropTaskID(params)
		theirs, own := x.ProgressToken(theirs), rawjson.Get(params, "progressToken")
		if own == nil || theirs == nil || len(theirs) > downstream.MaxToken {
			return
		}
		x.Relay(server, "progress:"+string(theirs), "notifications/progress", params, rawjson.ReplaceEdit(params, own, theirs))
		j.Notification(registry.ToClient, x.Session(), server, "notifications/progress", name, params)
	}
}

// RecordLatency notes how long the answer has taken, for the habit of what was called.
func (u *Request) RecordLatency(d time.Duration) { u.habit.note(d) }

// WireID is the id of the call on the wire, and what HTTP said.
func (u *Request) WireID() (id int64, answer *http.Response) { return u.Call.WireID() }

// PromptedUser reports whether people were asked because of the call.
func (u *Request) PromptedUser() bool { return u.asked.Load() }

// ResetPrompted makes Asked begin anew, and returns what it was.
func (u *Request) ResetPrompted() bool { return u.asked.Swap(false) }

// MarkPrompted notes that people are asked.
func (u *Request) MarkPrompted() { u.asked.Store(true) }

// Release gives the slot back, unless that was done already.
func (u *Request) Release() {
	if !u.landed.Swap(true) {
		u.release()
	}
}

// Pause stops the clocks that run for the call until as many calls of Resume:
// people are asked.
func (u *Request) Pause() {
	u.Call.Pause()
	for ; u != nil; u = u.Outer {
		u.asked.Store(true)
		t := &u.thinking
		t.mu.Lock()
		if t.open++; t.open == 1 {
			t.since = time.Now()
		}
		t.mu.Unlock()
	}
}

// Resume undoes one Pause.
func (u *Request) Resume() {
	u.Call.Resume()
	for ; u != nil; u = u.Outer {
		t := &u.thinking
		t.mu.Lock()
		if t.open--; t.open == 0 {
			t.before += time.Since(t.since)
		}
		t.mu.Unlock()
	}
}

// PromptTime is how long people have been asked so far.
func (u *Request) PromptTime() time.Duration {
	t := &u.thinking
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open > 0 {
		return t.before + time.Since(t.since)
	}
	return t.before
}

// RequireCapability notes a capability that the client did not declare, but was needed.
func (u *Request) RequireCapability(path []string) {
	for u.Outer != nil {
		u = u.Outer
	}
	u.lacking.Store(&path)
}

// MissingCapability is the error for a stateless request that failed for want of a capability;
// nil for others.
func (u *Request) MissingCapability(server string, reply jsonrpc.Reply) error {
	path := u.lacking.Load()
	if path == nil || reply.Error == nil && string(rawjson.Get(reply.Result, "isError")) != "true" {
		return nil
	}
	return MissingCapability(server, *path)
}

// MissingCapability is the error for a request that cannot be served without
// what its client did not declare (2026-07-28, SEP-2575).
func MissingCapability(server string, path []string) *jsonrpc.Error {
	need := []byte("{}")
	for _, name := range slices.Backward(path) {
		need = rawjson.SetMember([]byte("{}"), name, need)
	}
	e := jsonrpc.Errorf(downstream.CodeMissingCapability, "Server '%s' needs a capability that the client did not declare: %s", server, path[len(path)-1])
	e.Data = rawjson.SetMember([]byte("{}"), "requiredCapabilities", need)
	return e
}
