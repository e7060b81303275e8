// Package tasks tracks tool calls that servers run as tasks, in both protocol eras.
//
// It maps each task to its owner under a random id, and routes the server's notifications
// and requests about it. It must not know how tools are found and does not answer
// requests itself. [Tasks.HandleNotification] runs on read loops and doesn't block.
// Methods that pass requests on wait for the server.
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

// A task is a call that is answered at once and continues at the server. There are two
// unrelated kinds. In revision 2025-11-25 the client asks for a task. With the extension
// io.modelcontextprotocol/tasks (SEP-2663) a 2026-07-28 server may turn any call into a
// task. Each kind is served within its own era. In the other era, the gateway waits for
// tools that run only as tasks (see calls.go).

const extension = extensions.Tasks

// Limits of the number of tasks: total, per session, for all stateless HTTP clients, and
// per server. The limit per server is a fraction of the total or of the stateless limit.
// Finished tasks are evicted first.
const (
	maxTasks          = 8192
	maxSessionTasks   = 1024
	maxStatelessTasks = maxTasks / 2
	serverDivisor     = 4
)

const (
	// taskGrace is the time that a task is kept after its time to live. By then the
	// server has deleted it.
	taskGrace = 10 * time.Minute
	// maxTaskLife is the maximum time to live that a server can set, and the default.
	maxTaskLife = 24 * time.Hour
	// maxQueued and maxQueuedBytes limit the queued notifications per connection about
	// tasks that may still be created.
	maxQueued      = 256
	maxQueuedBytes = 4 << 20
	// maxTaskID is the maximum length of a server's task id, in bytes.
	maxTaskID = 1 << 10
)

// Task is one task at a server.
type Task struct {
	id            string // the owner's id for it
	Server        string
	Tool          string // the server's name of the tool
	ServerTaskID  string // the server's id for it
	Conn          upstream.Conn
	number        uint64
	cause         uint64              // number of the call that created it
	owner         *downstream.Session // nil for stateless HTTP: the id grants access
	modern        bool
	durable       bool // outlives the connection
	token         string
	gatewayCall   *inflight.Request // waiting call of the gateway; nil for a client's task
	statusChanged chan struct{}

	// Held while a notification of the task is delivered.
	deliverMu sync.Mutex
	answered  bool // the owner has the id; guarded by deliverMu

	// Guarded by Tasks.mu.
	published      bool // notifications are delivered
	expires        time.Time
	final          bool                // completed, failed or cancelled
	fetched        bool                // the result needs no further request
	waiters        []*inflight.Request // requests for the result in flight
	waitersChanged chan struct{}       // closed when waiters changes
}

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

type taskNotice struct {
	taskID string
	method string
	params []byte
}

// Options configures Tasks.
type Options struct {
	Registry *registry.Registry
	Journal  *telemetry.Journal
	Logger   *slog.Logger
	Servers  *servers.Manager
	Calls    *inflight.Table
	Ask      *serverreq.Router
	Views    *view.Views
}

// Tasks tracks the tasks of clients and of the gateway.
type Tasks struct {
	o    Options
	work sync.WaitGroup // goroutines that outlive their request

	mu           sync.Mutex
	last         uint64
	all          map[string]*Task
	byOwner      map[*downstream.Session][]*Task // in order of creation
	counts       map[ownerGroup]int
	byServerKey  map[serverTaskKey]*Task // of 2025-11-25
	pendingCalls map[upstream.Conn]*pendingCalls
	progress     map[taskToken]func(params []byte)
}

// New returns empty Tasks.
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

// Wait waits for background goroutines.
func (t *Tasks) Wait() { t.work.Wait() }

var empty = []byte("{}")

type taskToken struct {
	conn  upstream.Conn
	token string
}

func ownerOf(s *downstream.Session) *downstream.Session {
	if s.Stateless() {
		return nil
	}
	return s
}

// addPendingCall registers a call on conn that may create a task. The caller must call
// done once the task is added or the call created none.
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

// The token outlives the request, so it must not be guessable.
func (t *Tasks) addProgress(own *Task, report func(params []byte)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own.token = "goblin-task-" + rand.Text()
	t.progress[taskToken{own.Conn, own.token}] = report
}

func (t *Tasks) removeProgress(own *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.progress, taskToken{own.Conn, own.token})
}

func (t *Tasks) handleProgress(conn upstream.Conn, params []byte) {
	token := rawjson.GetString(params, "progressToken")
	t.mu.Lock()
	report := t.progress[taskToken{conn, token}]
	t.mu.Unlock()
	if report != nil {
		report(params)
	}
}

// ownerGroup counts sessions and stateless HTTP apart.
type ownerGroup struct {
	server    string
	stateless bool
}

func (own *Task) ownerGroup() ownerGroup { return ownerGroup{own.Server, own.owner == nil} }

func (t *Tasks) checkRoom(owner *downstream.Session, server string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.makeRoomLocked(&Task{owner: owner, Server: server}, func(*Task) {})
}

// makeRoomLocked calls drop for each task to evict. The error names the limit if none can
// be.
func (t *Tasks) makeRoomLocked(more *Task, drop func(*Task)) error {
	ownerLimit, ownerScope := maxSessionTasks, "per session"
	all, kind := maxTasks, "sessions"
	if more.owner == nil {
		ownerLimit, ownerScope = maxStatelessTasks, "for all clients without a session"
		all, kind = maxStatelessTasks, "clients without a session"
	}
	for _, b := range []struct {
		n    func() int
		most int
		of   string
		in   func(*Task) bool
	}{
		{func() int { return len(t.byOwner[more.owner]) }, ownerLimit, ownerScope, func(own *Task) bool { return own.owner == more.owner }},
		{func() int { return t.counts[more.ownerGroup()] }, all / serverDivisor, fmt.Sprintf("at server %q for %s", more.Server, kind), func(own *Task) bool { return own.ownerGroup() == more.ownerGroup() }},
		{func() int { return len(t.all) }, maxTasks, "in total", func(*Task) bool { return true }},
	} {
		if b.n() < b.most {
			continue
		}
		oldest := t.evictCandidateLocked(b.in)
		if oldest == nil {
			return jsonrpc.Errorf(jsonrpc.CodeInternal, "Too many tasks: at most %d %s; cancel some or wait", b.most, b.of)
		}
		drop(oldest)
	}
	return nil
}

// evictCandidateLocked returns the oldest expired or fetched task, otherwise the oldest
// final one, or nil.
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

// add fails with the name of the exceeded limit.
func (t *Tasks) add(own *Task, state []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.gatewayCall == nil {
		// Evict nothing if the new task is refused.
		if err := t.makeRoomLocked(own, func(*Task) {}); err != nil {
			return err
		}
		_ = t.makeRoomLocked(own, t.removeLocked) // checked above
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

// publish enables delivery of a task's notifications and returns the queued ones.
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

func isFinal(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

func (t *Tasks) markFetched(own *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own.final, own.fetched = true, true
}

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

func (t *Tasks) timeToLive(own *Task) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(own.expires)
}

var errNotFound = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Task not found: unknown to this client, expired, evicted, or lost with its server")

func (own *Task) isVisible(seen *registry.Snapshot) bool {
	return seen.HasServer(own.Server) && seen.IsVisible(own.Server, registry.Tool, own.Tool)
}

// Find returns a task by its id if the client owns it and sees its tool. modern selects
// the tasks of stateless requests.
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

// listOwned returns the visible tasks of a 2025-11-25 session after the given number, in
// order of creation.
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

// leave must be called when the request finishes.
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

// newestWaiter may return nil. The channel closes when it changes.
func (t *Tasks) newestWaiter(own *Task) (*inflight.Request, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return inflight.Newest(own.waiters), own.waitersChanged
}

// matchTask returns the task of a notification, or nil. If a call may still create the
// task, it queues the notification and returns queued.
func (t *Tasks) matchTask(conn upstream.Conn, n taskNotice) (own *Task, queued bool) {
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

// ForRequest returns the task of a server's request by the server's task id, or nil. If a
// call may still create the task, it waits for the answer.
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

// Drop removes the tasks that ended with a connection.
func (t *Tasks) Drop(conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, own := range t.all {
		if own.Conn == conn && !own.durable {
			t.removeLocked(own)
		}
	}
}

// Release removes the tasks of a closed session and cancels the unfinished ones.
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

// durable reports whether a server's tasks outlive the connection. Those of a process or
// a legacy session don't.
func (t *Tasks) durable(server string, conn upstream.Conn) bool {
	b := t.o.Servers.Get(server)
	return conn.Info().Era == upstream.Modern && b != nil && b.Config().Type != config.Stdio
}

func offersTasks(conn upstream.Conn) bool {
	info := conn.Info()
	return info.Era == upstream.Legacy && info.Has("tasks", "requests", "tools", "call")
}

func replaceID(state []byte, id string) []byte {
	raw := rawjson.Get(state, "taskId")
	if raw == nil {
		return state
	}
	return rawjson.Splice(state, rawjson.ReplaceEdit(state, raw, rawjson.Quote(id)))
}
