package registry

import (
	"bytes"
	"cmp"
	"reflect"
	"sync"
	"time"
)

// State is the phase of a server's supervisor.
type State string

// Values of [State].
const (
	StateDisabled   State = "disabled"
	StateConnecting State = "connecting"
	StateReady      State = "ready"
	StateRetrying   State = "retrying"
	StateNeedsLogin State = "needs login"
	StateFailed     State = "failed"
	StateStopped    State = "stopped"
	StateSleeping   State = "sleeping" // idle until its next use
)

// Label returns the state as users see it. JSON output contains the value itself.
func (s State) Label() string {
	if s == StateSleeping {
		return "idle"
	}
	return string(s)
}

// ServerState describes a server without its entries. It contains no secrets: no command
// lines, headers or environment.
type ServerState struct {
	Name            string // set by the registry
	State           State
	Transport       string // "stdio", "http", "sse"
	Era             string
	ProtocolVersion string // negotiated revision
	ServerName      string // serverInfo.name
	ServerTitle     string // serverInfo.title
	ServerVersion   string // serverInfo.version
	Capabilities    []byte // raw JSON object as the server declared it
	Instructions    string
	Counts          [Kinds]int // in the last known lists; set by the registry
	Repairs         Repairs    // of the last known lists; set by the registry
	Build           *Build     // nil unless its files are watched; set by the registry
	Listed          bool       // all lists were fetched at least once
	Stale           bool       // lists are older than the connection
	CachedAt        time.Time  // of lists from an earlier process
	KeepAwakeReason string     // why an unused server stays up
	Restarts        int
	LastError       string
	Attempts        int           // failed ones since it was last connected
	NextAttempt     time.Time     // while disconnected
	Since           time.Time     // of State; set by the registry if zero
	Latency         time.Duration // see [Registry.RecordLatency]; settable before
	PID             int           // of the process, or 0
	Projects        []Project     // with a process of this server; by folder
	CanLogIn        bool
	Login           *Account // nil if not logged in
}

// Project is the process of a server for one project.
type Project struct {
	Folder string `json:"folder"`
	PID    int    `json:"pid,omitempty"` // 0 if not running or remote
}

type stateTable struct {
	mu   sync.RWMutex
	rows map[string]ServerState
}

func (t *stateTable) update(server string, s ServerState, now func() time.Time) (before ServerState, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, known := t.rows[server]
	s.Name = server
	s.Counts = [Kinds]int{}
	s.Repairs = Repairs{}
	s.Build = nil
	s.Capabilities = bytes.Clone(s.Capabilities)
	if s.Since.IsZero() {
		s.Since = old.Since
		if s.State != old.State || old.Since.IsZero() {
			s.Since = now()
		}
	}
	if known && reflect.DeepEqual(old, s) {
		return old, false
	}
	if t.rows == nil {
		t.rows = map[string]ServerState{}
	}
	t.rows[server] = s
	return old, true
}

func (t *stateTable) drop(server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, server)
}

func (t *stateTable) get(server string) (ServerState, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s, ok := t.rows[server]
	return s, ok
}

// SetState replaces a server's state. It builds no snapshot, except that entering
// [StateDisabled] drops the server's lists, learned links and cached contents. Leaving
// [StateReady] for any state but idle marks cached contents as stale. Unknown servers are
// ignored.
func (r *Registry) SetState(server string, s ServerState) {
	if t := r.Load().table(server); t == nil || t.rule == nil {
		return
	}
	before, changed := r.states.update(server, s, r.opt.Now)
	if !changed {
		return
	}
	if s.State == StateDisabled && before.State != StateDisabled {
		r.changeTable(server, func(t *table) {
			t.runs = [Kinds]*run{}
			t.links.Clear()
		})
		r.repairs.drop(server)
		r.restartHistory(server)
	}
	if s.Listed && !s.Stale {
		r.ListsComplete(server)
	}
	if s.State != before.State {
		r.logStateChange(server, before, s)
	}
	r.feed.publish(Servers)
}

// States returns the state of every server in the config's order.
func (r *Registry) States() []ServerState { return r.StatesIn(r.Load()) }

// StatesIn returns the states of the servers in a catalog, with the numbers of entries
// there.
func (r *Registry) StatesIn(s *Snapshot) []ServerState {
	out := make([]ServerState, 0, len(s.tables))
	for _, t := range s.tables[1:] {
		if row, ok := r.states.get(t.name); ok {
			out = append(out, r.withTables(t, row))
		}
	}
	return out
}

// State returns the state of one server.
func (r *Registry) State(server string) (ServerState, bool) {
	row, ok := r.states.get(server)
	t := r.Load().table(server)
	if !ok || t == nil {
		return ServerState{}, false
	}
	return r.withTables(t, row), true
}

func (r *Registry) withTables(t *table, s ServerState) ServerState {
	for k := range s.Counts {
		s.Counts[k] = t.runs[k].len()
	}
	s.Repairs = r.repairs.forServer(s.Name)
	s.Build = r.builds.get(s.Name)
	s.Latency = cmp.Or(r.latencies.Median(s.Name), s.Latency)
	return s
}

// RecordLatency records the duration of an answer. [ServerState.Latency] is the median of
// the last 32. Requests in the traffic journal count by themselves, see
// [TrafficRecord.ServerTime].
func (r *Registry) RecordLatency(server string, took time.Duration) { r.latencies.Add(server, took) }
