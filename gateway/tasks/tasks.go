// Package tasks follows tool calls that servers run as tasks, in both protocol eras.
//
// It owns whose a task is and how long it is known, under an id of ours that nobody can
// guess, and delivers what servers say of tasks, and ask because of them. It must not
// know how a tool is found, nor answer requests itself. Notified is called on read
// loops and does not wait; what passes a request on waits for the server.
package tasks

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/extensions"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/serverreq"
	"goblin/gateway/servers"
	"goblin/gateway/telemetry"
	"goblin/gateway/upstream"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Tasks are calls that are answered at once and go on at the server. There
// are two kinds, which have little but the name in common: those of revision
// 2025-11-25, which a client asks for, and those of the extension
// io.modelcontextprotocol/tasks (SEP-2663), which a server of 2026-07-28 makes
// of a call when it likes. Each is served within its own era; in the other, the
// gateway waits for a tool that runs as a task only (see calls.go).

// extension names the extension in capabilities.
const extension = extensions.Tasks

// Bounds of the tasks that are known: in all, of one session, of all clients of stateless
// HTTP together, and of one server, a part of those in all and of stateless HTTP. Tasks
// that are over make room for others.
const (
	maxTasks          = 8192
	maxSessionTasks   = 1024
	maxStatelessTasks = maxTasks / 2
	serverDivisor     = 4
)

const (
	// taskGrace is how long a task is kept after its time to live, until the server has
	// surely deleted it.
	taskGrace = 10 * time.Minute
	// maxTaskLife bounds the time to live that servers give, and stands for
	// no bound.
	maxTaskLife = 24 * time.Hour
	// maxQueued bounds what a connection says of tasks before the gateway
	// knows of them, maxEarlyBytes how much that is.
	maxQueued      = 256
	maxQueuedBytes = 4 << 20
	// maxTaskID is how many bytes a server may name a task with.
	maxTaskID = 1 << 10
)

// Task is one task at a server.
type Task struct {
	id            string // as its owner knows it
	Server        string
	Tool          string // whose call it is, as its server names it
	ServerTaskID  string // as its server knows it
	Conn          upstream.Conn
	number        uint64              // counts up
	owner         *downstream.Session // nil for clients of stateless HTTP: who has the id has the task
	modern        bool
	durable       bool              // outlives the connection
	token         string            // of its progress, "" for none
	gatewayCall   *inflight.Request // the call inside which the gateway waits for it, nil for a client's own
	statusChanged chan struct{}

	// held while something of the task is delivered
	deliverMu sync.Mutex
	answered  bool // its owner knows it; guarded by deliverMu

	// Guarded by Tasks.mu.
	published      bool // its notifications are delivered
	expires        time.Time
	final          bool                // completed, failed or cancelled
	fetched        bool                // its result needs no further request
	waiters        []*inflight.Request // requests for its result in flight
	waitersChanged chan struct{}       // closed when waiters changes
}

// serverTaskKey identifies a task as its server names it.
type serverTaskKey struct {
	conn upstream.Conn
	id   string
}

// pendingCalls tracks the calls on a connection that may create tasks.
type pendingCalls struct {
	count    int
	queued   []taskNotice
	callDone chan struct{} // closed when a call is done
}

// taskNotice is a notification about a task.
type taskNotice struct {
	taskID string
	method string
	params []byte
}

// Options configure Tasks.
type Options struct {
	Registry *registry.Registry
	Journal  *telemetry.Journal
	Logger   *slog.Logger
	Servers  *servers.Manager
	Calls    *inflight.Table
	Ask      *serverreq.Router
	Views    *view.Views
}

// Tasks are those that clients or the gateway wait for.
type Tasks struct {
	o    Options
	work sync.WaitGroup // goroutines that outlive the request that caused them

	mu           sync.Mutex
	last         uint64
	all          map[string]*Task
	byOwner      map[*downstream.Session][]*Task // in the order of their creation
	counts       map[ownerGroup]int              // of byOwner
	byServerKey  map[serverTaskKey]*Task         // those of 2025-11-25
	pendingCalls map[upstream.Conn]*pendingCalls
	progress     map[taskToken]func(params []byte)
}

// New makes Tasks without any.
func New(o Options) *Tasks {
	return &Tasks{
		o:            o,
		all:          make(map[string]*Task),
		byOwner:      make(map[*downstream.Session][]*Task),
		counts:       make(map[ownerGroup]int),
		byServerKey:  make(map[serverTaskKey]*Task),
		pendingCalls: make(map[upstream.Conn]*pendingCalls),
		progress:     make(map[taskToken]func([]byte)),
	}
}

// Wait waits for what goes on after the requests.
func (t *Tasks) Wait() { t.work.Wait() }

var empty = []byte("{}")

// taskToken is the token of a task's progress. It counts on the connection of the
// task only: other servers' notifications are none of it.
type taskToken struct {
	conn  upstream.Conn
	token string
}

// ownerOf is whose a request's tasks are.
func ownerOf(s *downstream.Session) *downstream.Session {
	if s.Stateless() {
		return nil
	}
	return s
}

// addPendingCall registers a call on conn that may create a task. done must be called when the
// task is added, or when there is none.
func (t *Tasks) addPendingCall(conn upstream.Conn) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.pendingCalls[conn]
	if b == nil {
		b = &pendingCalls{callDone: make(chan struct{})}
		t.pendingCalls[conn] = b
	}
	b.count++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		close(b.callDone)
		b.callDone = make(chan struct{})
		if b.count--; b.count == 0 {
			delete(t.pendingCalls, conn)
		}
	}
}

// addProgress creates the token for the progress of a task, which goes to report. It outlives
// the request, so it must not be guessable.
func (t *Tasks) addProgress(own *Task, report func(params []byte)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own.token = "goblin-task-" + rand.Text()
	t.progress[taskToken{own.Conn, own.token}] = report
}

// removeProgress removes the progress token of a task that was not created.
func (t *Tasks) removeProgress(own *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.progress, taskToken{own.Conn, own.token})
}

// handleProgress passes on the progress of a task of a connection.
func (t *Tasks) handleProgress(conn upstream.Conn, params []byte) {
	token := rawjson.GetString(params, "progressToken")
	t.mu.Lock()
	report := t.progress[taskToken{conn, token}]
	t.mu.Unlock()
	if report != nil {
		report(params)
	}
}

// ownerGroup counts the tasks of one server, of sessions or of all clients of stateless HTTP.
type ownerGroup struct {
	server    string
	stateless bool
}

func (own *Task) ownerGroup() ownerGroup { return ownerGroup{own.Server, own.owner == nil} }

// checkRoom returns an error that names the limit if a client may not have one more task of a
// server.
func (t *Tasks) checkRoom(owner *downstream.Session, server string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.makeRoomLocked(&Task{owner: owner, Server: server}, func(*Task) {})
}

// makeRoomLocked calls drop for each task that must go for one more. The error names the limit
// if none may go.
func (t *Tasks) makeRoomLocked(more *Task, drop func(*Task)) error {
	mine, whose := maxSessionTasks, "of this session"
	all, kind := maxTasks, "sessions"
	if more.owner == nil {
		mine, whose = maxStatelessTasks, "of all clients without a session"
		all, kind = maxStatelessTasks, "clients without a session"
	}
	for _, b := range []struct {
		n    func() int
		most int
		of   string
		in   func(*Task) bool
	}{
		{func() int { return len(t.byOwner[more.owner]) }, mine, whose, func(own *Task) bool { return own.owner == more.owner }},
		{func() int { return t.counts[more.ownerGroup()] }, all / serverDivisor, fmt.Sprintf("of server %q for %s", more.Server, kind), func(own *Task) bool { return own.ownerGroup() == more.ownerGroup() }},
		{func() int { return len(t.all) }, maxTasks, "in all", func(*Task) bool { return true }},
	} {
		if b.n() < b.most {
			continue
		}
		oldest := t.evictCandidateLocked(b.in)
		if oldest == nil {
			return jsonrpc.Errorf(jsonrpc.CodeInternal, "Too many tasks at a time: at most %d %s. Cancel some, or wait until some are over", b.most, b.of)
		}
		drop(oldest)
	}
	return nil
}

// evictCandidateLocked returns the oldest task that has expired or was fetched, otherwise the
// oldest final one, or nil.
func (t *Tasks) evictCandidateLocked(in func(*Task) bool) (oldest *Task) {
	now := time.Now()
	missed := func(own *Task) bool { return own.fetched || now.After(own.expires) }
	for _, own := range t.all {
		switch {
		case own.gatewayCall != nil, !in(own), !missed(own) && !own.final, len(own.waiters) > 0:
		case oldest == nil, missed(own) && !missed(oldest), missed(own) == missed(oldest) && own.number < oldest.number:
			oldest = own
		}
	}
	return oldest
}

// add adds a task in the state that its server reported. The error names the limit that
// refuses it.
func (t *Tasks) add(own *Task, state []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.gatewayCall == nil {
		// No task makes room for one that is refused.
		if err := t.makeRoomLocked(own, func(*Task) {}); err != nil {
			return err
		}
		_ = t.makeRoomLocked(own, t.removeLocked) // as there is room
		t.counts[own.ownerGroup()]++
	}
	var id [16]byte
	rand.Read(id[:]) //nolint:errcheck // never fails
	own.id = hex.EncodeToString(id[:])
	t.last++
	own.number = t.last
	own.waitersChanged = make(chan struct{})
	t.updateStateLocked(own, state)
	t.all[own.id] = own
	if own.gatewayCall == nil {
		t.byOwner[own.owner] = append(t.byOwner[own.owner], own)
	}
	if !own.modern {
		t.byServerKey[serverTaskKey{own.Conn, own.ServerTaskID}] = own
	}
	return nil
}

// publish lets notifications of a task be delivered, and returns the earlier ones.
func (t *Tasks) publish(own *Task) (early []taskNotice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own.published = true
	if b := t.pendingCalls[own.Conn]; b != nil {
		b.queued = slices.DeleteFunc(b.queued, func(n taskNotice) bool {
			if n.taskID == own.ServerTaskID {
				early = append(early, n)
			}
			return n.taskID == own.ServerTaskID
		})
	}
	return early
}

// updateState records the status and time to live in a task's state.
func (t *Tasks) updateState(own *Task, state []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.updateStateLocked(own, state)
}

func (t *Tasks) updateStateLocked(own *Task, state []byte) {
	status := statusOf(state)
	own.final = own.final || isFinal(status)
	own.fetched = own.fetched || status == "cancelled" || own.modern && isFinal(status)
	member := "ttl"
	if own.modern {
		member = "ttlMs"
	}
	life := maxTaskLife
	if ms, ok := rawjson.Int(rawjson.Get(state, member)); ok && ms >= 0 && ms < maxTaskLife.Milliseconds() {
		life = time.Duration(ms) * time.Millisecond
	}
	own.expires = time.Now().Add(life + taskGrace)
}

func statusOf(state []byte) string {
	status := rawjson.GetString(state, "status")
	return status
}

// isFinal reports whether a status is final.
func isFinal(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

// markFetched records that a task's result was fetched.
func (t *Tasks) markFetched(own *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own.final, own.fetched = true, true
}

// hasOpen reports whether a client waits for a task of a connection.
func (t *Tasks) hasOpen(conn upstream.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, own := range t.all {
		if own.Conn == conn && !own.fetched && time.Now().Before(own.expires) {
			return true
		}
	}
	return false
}

// timeToLive returns how long a task is still kept.
func (t *Tasks) timeToLive(own *Task) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(own.expires)
}

// errNotFound answers a client that asks for a task it does not know.
var errNotFound = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Task not found: it is none of this client's, has expired or made room for others, or its server has ended")

// isVisible reports whether a client with that catalog sees the task's tool, and so the task.
func (own *Task) isVisible(seen *registry.Snapshot) bool {
	return seen.HasServer(own.Server) && seen.IsVisible(own.Server, registry.Tool, own.Tool)
}

// Find is the task that a client means by an id, of the kind that stateless requests
// are about if modern is set, in what it sees by now.
func (t *Tasks) Find(s *downstream.Session, seen *registry.Snapshot, modern bool, id string) (*Task, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.all[id]
	if own != nil && time.Now().After(own.expires) {
		t.removeLocked(own)
		own = nil
	}
	if own == nil || own.gatewayCall != nil || own.owner != ownerOf(s) || own.modern != modern || !own.isVisible(seen) {
		return nil, errNotFound
	}
	return own, nil
}

// listOwned returns the visible tasks of a 2025-11-25 session after the given number, in the
// order of their creation.
func (t *Tasks) listOwned(s *downstream.Session, seen *registry.Snapshot, after uint64) []*Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	var all []*Task
	for _, own := range t.byOwner[s] {
		if !own.modern && own.number > after && now.Before(own.expires) && own.isVisible(seen) {
			all = append(all, own)
		}
	}
	return all
}

// addWaiter registers a request for a task's result.
func (t *Tasks) addWaiter(own *Task, f *inflight.Request) (leave func()) {
	change := func(results []*inflight.Request) {
		own.waiters = results
		close(own.waitersChanged)
		own.waitersChanged = make(chan struct{})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	change(append(slices.Clone(own.waiters), f))
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		change(slices.DeleteFunc(slices.Clone(own.waiters), func(other *inflight.Request) bool { return other == f }))
	}
}

// newestWaiter returns the newest request for a task's result, or nil, and a channel that is
// closed when that changes.
func (t *Tasks) newestWaiter(own *Task) (*inflight.Request, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return inflight.Newest(own.waiters), own.waitersChanged
}

// matchTask returns the task of a notification, or nil. If a call may still create the task,
// it queues the notification.
func (t *Tasks) matchTask(conn upstream.Conn, n taskNotice) (own *Task, kept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.byServerKey[serverTaskKey{conn, n.taskID}]; own != nil && own.published {
		return own, false
	}
	b := t.pendingCalls[conn]
	if b == nil {
		return nil, false
	}
	size := len(n.params)
	for _, other := range b.queued {
		size += len(other.params)
	}
	if len(b.queued) < maxQueued && size <= maxQueuedBytes {
		b.queued = append(b.queued, n)
	}
	return nil, true
}

// ForRequest returns the task of a server's request by the server's task id, or nil. If a call
// may still create the task, it waits for the answer.
func (t *Tasks) ForRequest(ctx context.Context, conn upstream.Conn, original string) *Task {
	for {
		t.mu.Lock()
		own := t.byServerKey[serverTaskKey{conn, original}]
		if own != nil && !own.published {
			own = nil
		}
		var next chan struct{}
		if b := t.pendingCalls[conn]; own == nil && b != nil {
			next = b.callDone
		}
		t.mu.Unlock()
		if next == nil {
			return own
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil
		}
	}
}

func (t *Tasks) remove(own *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeLocked(own)
}

func (t *Tasks) removeLocked(own *Task) {
	if t.all[own.id] != own {
		return
	}
	delete(t.all, own.id)
	delete(t.progress, taskToken{own.Conn, own.token})
	if name := (serverTaskKey{own.Conn, own.ServerTaskID}); t.byServerKey[name] == own {
		delete(t.byServerKey, name)
	}
	if own.gatewayCall == nil {
		if t.counts[own.ownerGroup()]--; t.counts[own.ownerGroup()] == 0 {
			delete(t.counts, own.ownerGroup())
		}
	}
	rest := slices.DeleteFunc(t.byOwner[own.owner], func(other *Task) bool { return other == own })
	t.byOwner[own.owner] = rest
	if len(rest) == 0 {
		delete(t.byOwner, own.owner)
	}
}

// Drop forgets the tasks that ended with a connection.
func (t *Tasks) Drop(conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, own := range t.all {
		if own.Conn == conn && !own.durable {
			t.removeLocked(own)
		}
	}
}

// Release forgets the tasks of a session that has ended, and cancels those that go on.
func (t *Tasks) Release(s *downstream.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, own := range slices.Clone(t.byOwner[s]) {
		if !own.final {
			t.cancel(own)
		}
		t.removeLocked(own)
	}
}

// durable reports whether a server's tasks of an era outlive the connection: a
// process takes them with it, and so does a session.
func (t *Tasks) durable(server string, conn upstream.Conn) bool {
	b := t.o.Servers.Get(server)
	return conn.Info().Era == upstream.Modern && b != nil && b.Config().Type != config.Stdio
}

// offersTasks reports whether a connection's server runs tools as tasks of
// 2025-11-25.
func offersTasks(conn upstream.Conn) bool {
	info := conn.Info()
	return info.Era == upstream.Legacy && info.Has("tasks", "requests", "tools", "call")
}

// replaceID replaces the taskId of a state.
func replaceID(state []byte, id string) []byte {
	raw := rawjson.Get(state, "taskId")
	if raw == nil {
		return state
	}
	return rawjson.Splice(state, rawjson.ReplaceEdit(state, raw, rawjson.Quote(id)))
}
