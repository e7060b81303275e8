// Package inflight tracks the client requests that servers have not answered yet.
//
// A [Table] knows the open connections and the requests in flight on each. It traces
// messages from servers to the clients that caused them. A [Request] is one such request
// with its limiter slot, progress and prompt time. A [Rewriter] replaces a server's URIs
// in an answer with their listed form.
//
// This package chooses no server or connection and does not interpret methods. Read loops
// may call [Table.Candidates]; only [Table.Do] and [Acquire] block.
package inflight

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/telemetry"
	"goblin/gateway/tracing"
	"goblin/gateway/upstream"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// Request is one client request in flight at a server or a local tool. The zero value is
// ready for Begin.
type Request struct {
	ClientRequest     *downstream.Request
	Outer             *Request // the enclosing call; nil for a client's own
	Call              upstream.Call
	Trace             *tracing.Call // nil: no traces
	release           func()
	released          atomic.Bool
	prompted          atomic.Bool              // the server asked the user
	missingCapability atomic.Pointer[[]string] // needed but not declared by the client
	promptTime        promptTimer
	latency           *LatencyHistory

	connection   *Connection
	older, newer *Request // on the same connection
}

type promptTimer struct {
	mu    sync.Mutex
	open  int           // unanswered prompts
	since time.Time     // start of the first open prompt
	total time.Duration // of the earlier prompts
}

// Begin prepares the call for a client request. outer is the enclosing call, or nil.
// release frees the server's limiter slot.
func (u *Request) Begin(x *downstream.Request, outer *Request, release func(), edits []rawjson.Edit) {
	u.ClientRequest, u.Outer, u.release = x, outer, release
	u.Call.Cause = u
	u.Call.Method = x.Method()
	u.Call.Params = x.Params()
	u.Call.Edits = edits
}

// AttachProgressToken sets the call's own progress token, so that progress extends its
// timeout. If the client sent a token in meta (`_meta` of the params), progress is
// relayed to it. A quick name gets a token only if the client sent one; habit may be nil.
func (u *Request) AttachProgressToken(j *telemetry.Journal, server, name string, meta []byte, habit *LatencyHistory) {
	x := u.ClientRequest
	u.latency = habit
	var theirs []byte
	u.Call.Token, theirs = wire.FindToken(x.Params(), meta)
	if theirs == nil || u.Outer != nil || len(theirs) > downstream.MaxToken {
		if theirs == nil && habit.isQuick() {
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
		j.RecordCausedNotification(x, server, "notifications/progress", name, params)
	}
}

// RecordLatency records how long the answer took.
func (u *Request) RecordLatency(d time.Duration) { u.latency.record(d) }

// WireID returns the id of the call on the wire and its HTTP response.
func (u *Request) WireID() (id int64, answer *http.Response) { return u.Call.WireID() }

// PromptedUser reports whether the call prompted a user.
func (u *Request) PromptedUser() bool { return u.prompted.Load() }

// ResetPrompted clears PromptedUser and returns its previous value.
func (u *Request) ResetPrompted() bool { return u.prompted.Swap(false) }

// MarkPrompted records that a user is being prompted.
func (u *Request) MarkPrompted() { u.prompted.Store(true) }

// Release frees the limiter slot. Only the first call has an effect.
func (u *Request) Release() {
	if !u.released.Swap(true) {
		u.release()
	}
}

// Pause stops the timers of the call while a user is prompted. Each Pause needs one
// Resume.
func (u *Request) Pause() {
	u.Call.Pause()
	for ; u != nil; u = u.Outer {
		u.prompted.Store(true)
		t := &u.promptTime
		t.mu.Lock()
		if t.open++; t.open == 1 {
			t.since = time.Now()
		}
		t.mu.Unlock()
	}
}

// Resume ends one Pause.
func (u *Request) Resume() {
	u.Call.Resume()
	for ; u != nil; u = u.Outer {
		t := &u.promptTime
		t.mu.Lock()
		if t.open--; t.open == 0 {
			t.total += time.Since(t.since)
		}
		t.mu.Unlock()
	}
}

// PromptTime returns the total time that users were prompted so far.
func (u *Request) PromptTime() time.Duration {
	t := &u.promptTime
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open > 0 {
		return t.total + time.Since(t.since)
	}
	return t.total
}

// RequireCapability records a needed capability that the client did not declare.
func (u *Request) RequireCapability(path []string) {
	for u.Outer != nil {
		u = u.Outer
	}
	u.missingCapability.Store(&path)
}

// MissingCapability returns the error for a stateless request that failed because of a
// missing capability, or nil.
func (u *Request) MissingCapability(server string, reply jsonrpc.Reply) error {
	path := u.missingCapability.Load()
	if path == nil || reply.Error == nil && string(rawjson.Get(reply.Result, "isError")) != "true" {
		return nil
	}
	return MissingCapability(server, *path)
}

// MissingCapability returns the error for a request that needs a capability that its
// client did not declare (2026-07-28, SEP-2575).
func MissingCapability(server string, path []string) *jsonrpc.Error {
	need := []byte("{}")
	for _, name := range slices.Backward(path) {
		need = rawjson.SetMember([]byte("{}"), name, need)
	}
	e := jsonrpc.Errorf(downstream.CodeMissingCapability, "Server '%s' needs a capability that the client did not declare: %s", server, path[len(path)-1])
	e.Data = rawjson.SetMember([]byte("{}"), "requiredCapabilities", need)
	return e
}

// Acquire waits for a limiter slot like [upstream.Server.Acquire]. Clients that asked for
// progress are notified while they wait.
func Acquire(ctx context.Context, server *upstream.Server, x *downstream.Request) (release func(), err error) {
	if release = server.TryAcquire(x.Owner()); release != nil {
		return release, nil
	}
	defer downstream.NotifyWaiting(ctx, "waiting for a free slot at server "+server.Name())()
	return server.Acquire(ctx, x.Owner(), x.Method())
}
