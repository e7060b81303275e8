package registry

import "time"

// State is what a server's supervisor is doing.
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
	Listed          bool       // all its lists were fetched at least once
	Stale           bool       // lists are older than the connection
	Restarts        int
	LastError       string
	Since           time.Time // of State; when zero the registry fills it at a change
	Latency         time.Duration
	PID             int // of a child, else 0
}

// SetState replaces a server's state. It builds no snapshot, except that
// entering [StateDisabled] drops the server's lists and learned links: names
// of disabled servers are owned by nobody.
func (r *Registry) SetState(server string, s ServerState) {}

// States returns the state of every server in the config's order.
func (r *Registry) States() []ServerState { return nil }

// State returns the state of one server.
func (r *Registry) State(server string) (ServerState, bool) { return ServerState{}, false }
