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
	serverPart        = 4
)

const (
	// taskGrace is how long a task is known after its time to live is over:
	// until the server has surely deleted it, it is the server that answers.
	taskGrace = 10 * time.Minute
	// maxTaskLife bounds the time to live that servers give, and stands for
	// no bound.
	maxTaskLife = 24 * time.Hour
	// maxEarly bounds what a connection says of tasks before the gateway
	// knows of them, maxEarlyBytes how much that is.
	maxEarly      = 256
	maxEarlyBytes = 4 << 20
	// maxTaskID is how many bytes a server may name a task with.
	maxTaskID = 1 << 10
)

// Task is one task at a server.
type Task struct {
	id       string // as its owner knows it
	Server   string
	Tool     string // whose call it is, as its server names it
	Original string // as its server knows it
	Conn     upstream.Conn
	number   uint64              // counts up
	owner    *downstream.Session // nil for clients of stateless HTTP: who has the id has the task
	modern   bool
	durable  bool              // outlives the connection
	token    string            // of its progress, "" for none
	hidden   *inflight.Request // the call inside which the gateway waits for it, nil for a client's own
	news     chan struct{}

	// out is held while something of the task is delivered.
	out      sync.Mutex
	answered bool // its owner knows it; guarded by out

	// Guarded by tasks.mu.
	known   bool // what the server says of it is delivered
	expires time.Time
	settled bool                // completed, failed or cancelled
	fetched bool                // nothing more is to be had from it
	results []*inflight.Request // requests for its result under way
	changed chan struct{}       // closed when results changes
}

// taskName is a task as its server names it.
type taskName struct {
	conn     upstream.Conn
	original string
}

// births tracks the calls on a connection that may make tasks.
type births struct {
	open  int
	early []taskNotice
	next  chan struct{} // closed when one of them is over
}

// taskNotice is a notification about a task.
type taskNotice struct {
	original string
	method   string
	params   []byte
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

	mu       sync.Mutex
	last     uint64
	all      map[string]*Task
	owned    map[*downstream.Session][]*Task // in the order of their creation
	shares   map[share]int                   // how many of owned
	named    map[taskName]*Task              // those of 2025-11-25
	births   map[upstream.Conn]*births
	progress map[taskToken]func(params []byte)
}

// New makes Tasks without any.
func New(o Options) *Tasks {
	return &Tasks{
		o:        o,
		all:      make(map[string]*Task),
		owned:    make(map[*downstream.Session][]*Task),
		shares:   make(map[share]int),
		named:    make(map[taskName]*Task),
		births:   make(map[upstream.Conn]*births),
		progress: make(map[taskToken]func([]byte)),
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

// expect announces a call on conn that may make a task. done must be called
// when the task is kept, or when there is none.
func (t *Tasks) expect(conn upstream.Conn) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.births[conn]
	if b == nil {
		b = &births{next: make(chan struct{})}
		t.births[conn] = b
	}
	b.open++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		close(b.next)
		b.next = make(chan struct{})
		if b.open--; b.open == 0 {
			delete(t.births, conn)
		}
	}
}

// track makes a token for the progress of a task, which goes to report. Unlike
// those of calls it outlives its request, so nobody can guess it.
func (t *Tasks) track(own *Task, report func(params []byte)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own.token = "goblin-task-" + rand.Text()
	t.progress[taskToken{own.Conn, own.token}] = report
}

// untrack forgets the progress of a task that came to nothing.
func (t *Tasks) untrack(own *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.progress, taskToken{own.Conn, own.token})
}

// reported hands over the progress of a task of a connection.
func (t *Tasks) reported(conn upstream.Conn, params []byte) {
	token, _ := rawjson.String(rawjson.Get(params, "progressToken"))
	t.mu.Lock()
	report := t.progress[taskToken{conn, token}]
	t.mu.Unlock()
	if report != nil {
		report(params)
	}
}

// share are the tasks of one server, of sessions or of all clients of stateless HTTP.
type share struct {
	server    string
	stateless bool
}

func (own *Task) share() share { return share{own.Server, own.owner == nil} }

// room reports whether a client may have one more task of a server; the error says which
// bound leaves no room.
func (t *Tasks) room(owner *downstream.Session, server string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.roomLocked(&Task{owner: owner, Server: server}, func(*Task) {})
}

// roomLocked has drop take out what makes room for a task. What it says holds as well while
// drop takes nothing.
func (t *Tasks) roomLocked(more *Task, drop func(*Task)) error {
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
		{func() int { return len(t.owned[more.owner]) }, mine, whose, func(own *Task) bool { return own.owner == more.owner }},
		{func() int { return t.shares[more.share()] }, all / serverPart, fmt.Sprintf("of server %q for %s", more.Server, kind), func(own *Task) bool { return own.share() == more.share() }},
		{func() int { return len(t.all) }, maxTasks, "in all", func(*Task) bool { return true }},
	} {
		if b.n() < b.most {
			continue
		}
		oldest := t.overLocked(b.in)
		if oldest == nil {
			return jsonrpc.Errorf(jsonrpc.CodeInternal, "Too many tasks at a time: at most %d %s. Cancel some, or wait until some are over", b.most, b.of)
		}
		drop(oldest)
	}
	return nil
}

// overLocked is the task that can be missed most: the oldest that has expired or was
// fetched, else the oldest that is over; nil for none.
func (t *Tasks) overLocked(in func(*Task) bool) (oldest *Task) {
	now := time.Now()
	missed := func(own *Task) bool { return own.fetched || now.After(own.expires) }
	for _, own := range t.all {
		switch {
		case own.hidden != nil, !in(own), !missed(own) && !own.settled, len(own.results) > 0:
		case oldest == nil, missed(own) && !missed(oldest), missed(own) == missed(oldest) && own.number < oldest.number:
			oldest = own
		}
	}
	return oldest
}

// admit notes a task, of which its server has said state. The error says which bound leaves
// no room.
func (t *Tasks) admit(own *Task, state []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.hidden == nil {
		// No task makes room for one that is refused.
		if err := t.roomLocked(own, func(*Task) {}); err != nil {
			return err
		}
		_ = t.roomLocked(own, t.removeLocked) // as there is room
		t.shares[own.share()]++
	}
	var id [16]byte
	rand.Read(id[:]) //nolint:errcheck // never fails
	own.id = hex.EncodeToString(id[:])
	t.last++
	own.number = t.last
	own.changed = make(chan struct{})
	t.noteLocked(own, state)
	t.all[own.id] = own
	if own.hidden == nil {
		t.owned[own.owner] = append(t.owned[own.owner], own)
	}
	if !own.modern {
		t.named[taskName{own.Conn, own.Original}] = own
	}
	return nil
}

// publish lets what the server says of a task be delivered, and returns what
// it said so far.
func (t *Tasks) publish(own *Task) (early []taskNotice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own.known = true
	if b := t.births[own.Conn]; b != nil {
		b.early = slices.DeleteFunc(b.early, func(n taskNotice) bool {
			if n.original == own.Original {
				early = append(early, n)
			}
			return n.original == own.Original
		})
	}
	return early
}

// note keeps what a task's state says: whether it is over, and how long it is
// kept.
func (t *Tasks) note(own *Task, state []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteLocked(own, state)
}

func (t *Tasks) noteLocked(own *Task, state []byte) {
	status := statusOf(state)
	own.settled = own.settled || isOver(status)
	own.fetched = own.fetched || status == "cancelled" || own.modern && isOver(status)
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
	status, _ := rawjson.String(rawjson.Get(state, "status"))
	return status
}

// isOver reports whether a task in that status changes no more.
func isOver(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

// settle notes that a task's result was fetched.
func (t *Tasks) settle(own *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own.settled, own.fetched = true, true
}

// busy reports whether a client waits for a task of a connection.
func (t *Tasks) busy(conn upstream.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, own := range t.all {
		if own.Conn == conn && !own.fetched && time.Now().Before(own.expires) {
			return true
		}
	}
	return false
}

// left is how long a task is known from now on.
func (t *Tasks) left(own *Task) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(own.expires)
}

// errNotFound answers a client that asks for a task it does not know.
var errNotFound = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Task not found: it is none of this client's, has expired or made room for others, or its server has ended")

// in reports whether a task is there for a client that sees a part of the catalog: what
// its tool is not part of has no task of it either.
func (own *Task) in(seen *registry.Snapshot) bool {
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
	if own == nil || own.hidden != nil || own.owner != ownerOf(s) || own.modern != modern || !own.in(seen) {
		return nil, errNotFound
	}
	return own, nil
}

// of are the tasks of a session of 2025-11-25 after the one of the given
// number that it sees, in the order of their creation.
func (t *Tasks) of(s *downstream.Session, seen *registry.Snapshot, after uint64) []*Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	var all []*Task
	for _, own := range t.owned[s] {
		if !own.modern && own.number > after && now.Before(own.expires) && own.in(seen) {
			all = append(all, own)
		}
	}
	return all
}

// attend notes a request for a task's result.
func (t *Tasks) attend(own *Task, f *inflight.Request) (leave func()) {
	change := func(results []*inflight.Request) {
		own.results = results
		close(own.changed)
		own.changed = make(chan struct{})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	change(append(slices.Clone(own.results), f))
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		change(slices.DeleteFunc(slices.Clone(own.results), func(other *inflight.Request) bool { return other == f }))
	}
}

// attending is the newest request for a task's result, nil for none, and what
// is closed when that changes.
func (t *Tasks) attending(own *Task) (*inflight.Request, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return inflight.Newest(own.results), own.changed
}

// take finds the task that a notification is about, nil for none. While the
// answer that names the task may be on its way, the notification is kept.
func (t *Tasks) take(conn upstream.Conn, n taskNotice) (own *Task, kept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.named[taskName{conn, n.original}]; own != nil && own.known {
		return own, false
	}
	b := t.births[conn]
	if b == nil {
		return nil, false
	}
	size := len(n.params)
	for _, other := range b.early {
		size += len(other.params)
	}
	if len(b.early) < maxEarly && size <= maxEarlyBytes {
		b.early = append(b.early, n)
	}
	return nil, true
}

// ForQuestion finds the task that a question is about by the server's id for it, nil for none.
// It waits for the answer that names the task while that may be on its way.
func (t *Tasks) ForQuestion(ctx context.Context, conn upstream.Conn, original string) *Task {
	for {
		t.mu.Lock()
		own := t.named[taskName{conn, original}]
		if own != nil && !own.known {
			own = nil
		}
		var next chan struct{}
		if b := t.births[conn]; own == nil && b != nil {
			next = b.next
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
	if name := (taskName{own.Conn, own.Original}); t.named[name] == own {
		delete(t.named, name)
	}
	if own.hidden == nil {
		if t.shares[own.share()]--; t.shares[own.share()] == 0 {
			delete(t.shares, own.share())
		}
	}
	rest := slices.DeleteFunc(t.owned[own.owner], func(other *Task) bool { return other == own })
	t.owned[own.owner] = rest
	if len(rest) == 0 {
		delete(t.owned, own.owner)
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
	for _, own := range slices.Clone(t.owned[s]) {
		if !own.settled {
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

// rename puts another id in the place of a state's taskId.
func rename(state []byte, id string) []byte {
	raw := rawjson.Get(state, "taskId")
	if raw == nil {
		return state
	}
	return rawjson.Splice(state, rawjson.ReplaceEdit(state, raw, rawjson.Quote(id)))
}
