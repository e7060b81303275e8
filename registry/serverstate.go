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

// The states.
const (
	StateDisabled   State = "disabled"
	StateConnecting State = "connecting"
	StateReady      State = "ready"
	StateRetrying   State = "retrying"
	StateNeedsLogin State = "needs login"
	StateFailed     State = "failed"
	StateStopped    State = "stopped"
	StateSleeping   State = "sleeping" // until it is used
)

// ServerState is all that is known of a server but its entries. It holds no
// secrets: no command lines, headers or environment.
type ServerState struct {
	Name            string // filled by the registry
	State           State
	Transport       string // "stdio", "http", "sse"
	Era             string
	ProtocolVersion string // negotiated revision
	ServerName      string // serverInfo.name
	ServerTitle     string // serverInfo.title
	ServerVersion   string // serverInfo.version
	Capabilities    []byte // raw JSON object as the server declared it
	Instructions    string
	Counts          [Kinds]int // entries in the last known lists, filled by the registry
	Repairs         Repairs    // of the last known lists, filled by the registry
	Listed          bool       // all its lists were fetched at least once
	Stale           bool       // lists are older than the connection
	CachedAt        time.Time  // when the lists were kept that an earlier process had; zero for lists of this one
	KeepAwakeReason string     // what keeps it from sleeping although nobody calls it
	Restarts        int
	LastError       string
	Attempts        int           // to connect that failed since it was up
	NextAttempt     time.Time     // when the next one is, while there is no connection
	Since           time.Time     // of State; when zero the registry fills it at a change
	Latency         time.Duration // median of the last answers, see [Registry.RecordLatency]; 0 before any, unless it was set
	PID             int           // of a child, else 0
	Projects        []Project     // that have a process of it; by folder
	CanLogIn        bool          // a user can log in there
	Login           *Account      // nil: nobody is logged in
}

// Project is the process of a server for one project.
type Project struct {
	Folder string `json:"folder"`
	PID    int    `json:"pid,omitempty"` // 0 while there is none, or it is remote
}

// stateTable is the table of server states. It is not part of snapshots because it changes often.
type stateTable struct {
	mu   sync.RWMutex
	rows map[string]ServerState
}

// update stores a state. It returns the state before and whether it differs.
func (t *stateTable) update(server string, s ServerState, now func() time.Time) (before ServerState, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, known := t.rows[server]
	s.Name = server
	s.Counts = [Kinds]int{}
	s.Repairs = Repairs{}
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

// SetState replaces a server's state. It builds no snapshot, except that
// entering [StateDisabled] drops the server's lists and learned links: names
// of disabled servers are owned by nobody. What is cached of the server goes
// with them, and becomes stale when it leaves [StateReady] otherwise. Unknown
// servers are ignored.
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
	}
	if s.State != before.State {
		r.logStateChange(server, before, s)
	}
	r.feed.publish(Servers)
}

// States returns the state of every server in the config's order, those added
// at run time after them.
func (r *Registry) States() []ServerState { return r.StatesIn(r.Load()) }

// StatesIn are the states of the servers in a catalog, which counts their entries.
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

// withTables returns a state with the fields that other tables supply.
func (r *Registry) withTables(t *table, s ServerState) ServerState {
	for k := range s.Counts {
		s.Counts[k] = t.runs[k].len()
	}
	s.Repairs = r.repairs.forServer(s.Name)
	s.Latency = cmp.Or(r.latencies.Median(s.Name), s.Latency)
	return s
}

// RecordLatency notes how long a known server took for an answer: of the last 32 the
// median is its [ServerState.Latency]. Requests in the traffic journal count by
// themselves, those excepted that waited for the client.
func (r *Registry) RecordLatency(server string, took time.Duration) { r.latencies.Add(server, took) }
