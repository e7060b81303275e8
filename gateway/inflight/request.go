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
	"context"
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

// Request is one client request in flight at a server, or at a local tool. The zero value is
// ready for Begin.
type Request struct {
	ClientRequest     *downstream.Request
	Outer             *Request // the call that the request was made for, nil for a client's own
	Call              upstream.Call
	release           func() // releases the server's concurrency slot; called once
	released          atomic.Bool
	prompted          atomic.Bool              // the server asked the user something
	missingCapability atomic.Pointer[[]string] // that the client did not declare, but was needed
	promptTime        promptTimer
	latency           *LatencyHistory // nil for none

	connection   *Connection // where it is in flight, nil before and after
	older, newer *Request    // in flight there
}

// promptTimer measures how long users took to answer questions because of a call.
type promptTimer struct {
	mu    sync.Mutex
	open  int           // unanswered questions
	since time.Time     // start of the first open question
	total time.Duration // of the earlier questions
}

// Begin prepares the call for a client request. outer is the call that it was made for, nil
// for a client's own. release frees the server's concurrency slot.
func (u *Request) Begin(x *downstream.Request, outer *Request, release func(), edits []rawjson.Edit) {
	u.ClientRequest, u.Outer, u.release = x, outer, release
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
		j.RecordNotification(registry.ToClient, x.Session(), server, "notifications/progress", name, params)
	}
}

// RecordLatency records how long the answer took.
func (u *Request) RecordLatency(d time.Duration) { u.latency.record(d) }

// WireID is the id of the call on the wire, and what HTTP said.
func (u *Request) WireID() (id int64, answer *http.Response) { return u.Call.WireID() }

// PromptedUser reports whether a user was asked because of the call.
func (u *Request) PromptedUser() bool { return u.prompted.Load() }

// ResetPrompted clears the result of PromptedUser and returns the previous one.
func (u *Request) ResetPrompted() bool { return u.prompted.Swap(false) }

// MarkPrompted records that a user is asked.
func (u *Request) MarkPrompted() { u.prompted.Store(true) }

// Release frees the concurrency slot, once.
func (u *Request) Release() {
	if !u.released.Swap(true) {
		u.release()
	}
}

// Pause stops the call's timers while a user is asked, until as many calls of Resume.
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

// Resume undoes one Pause.
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

// PromptTime returns how long users were asked so far.
func (u *Request) PromptTime() time.Duration {
	t := &u.promptTime
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open > 0 {
		return t.total + time.Since(t.since)
	}
	return t.total
}

// RequireCapability notes a capability that the client did not declare, but was needed.
func (u *Request) RequireCapability(path []string) {
	for u.Outer != nil {
		u = u.Outer
	}
	u.missingCapability.Store(&path)
}

// MissingCapability is the error for a stateless request that failed for want of a capability;
// nil for others.
func (u *Request) MissingCapability(server string, reply jsonrpc.Reply) error {
	path := u.missingCapability.Load()
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

// Acquire takes a concurrency slot of a server for a client's request, as
// [upstream.Server.Acquire] does. Clients that want progress are notified while they wait.
func Acquire(ctx context.Context, server *upstream.Server, x *downstream.Request) (release func(), err error) {
	if release = server.TryAcquire(x.Owner()); release != nil {
		return release, nil
	}
	defer downstream.NotifyWaiting(ctx, "waiting for a free slot at server "+server.Name())()
	return server.Acquire(ctx, x.Owner(), x.Method())
}
