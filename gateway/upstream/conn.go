package upstream

import (
	"context"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// Era is the family of protocol revisions that a connection uses.
type Era uint8

// The eras. A connection never changes its era. If a server offers both, the legacy one
// is preferred unless the config says otherwise: servers built for older revisions send
// requests during a call, which the modern era forbids.
const (
	Legacy Era = iota // up to 2025-11-25: initialize and a session
	Modern            // from 2026-07-28: stateless
)

func (e Era) String() string {
	if e == Modern {
		return "modern"
	}
	return "legacy"
}

// revisions lists the supported legacy revisions, newest first. initialize requests the
// first.
var revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Info holds the declarations of a server from its handshake.
type Info struct {
	Era      Era
	Protocol string // negotiated revision
	// SecondEra is set for a [Server.Modern] connection beside a legacy one.
	SecondEra bool
	// Versions are the revisions from server/discover, or nil.
	Versions     []string
	Capabilities []byte // raw object, never nil
	ServerInfo   []byte // raw object or nil
	Instructions string
}

// Has reports whether a capability was declared and is neither false nor null, for
// example Has("resources", "subscribe").
func (i Info) Has(path ...string) bool {
	v := rawjson.Path(i.Capabilities, path...)
	return v != nil && string(v) != "false" && string(v) != "null"
}

// Conn is one connection to a server after its handshake. Reconnecting creates a new
// Conn.
type Conn interface {
	// Info returns the result of the handshake.
	Info() Info
	// Unit returns the isolation unit of the connection. It is "" for the server's own
	// connection until the first unit adopts it.
	Unit() string
	// Call sends a request and blocks until its answer, timeout, cancellation, or the end
	// of the connection. Errors are *[Error], except the cause of a cancelled c.Context.
	//
	// The modern era looks the same to callers. resources/subscribe and unsubscribe
	// change what the connection listens for. Required input is requested from
	// Handler.HandleRequest with the timer paused, and the call is repeated with the
	// answers. Results lose their type and the protocol's `_meta` keys.
	Call(c *Call) (jsonrpc.Reply, error)
	// CallAsync is Call without waiting; caller receives the result. It ignores
	// c.Context; use Cancel. It returns false without calling caller if Call must be
	// used: the connection has no process, is modern, or has closed.
	CallAsync(c *Call, caller Caller) bool
	// Cancel cancels a call of CallAsync with the given cause. It does nothing if the call
	// has finished.
	Cancel(c *Call, cause error)
	// Notify queues a notification. params is a raw object or nil. Modern servers accept
	// no notifications, so for them it does nothing.
	Notify(method string, params []byte) error
	// NotifyRoots notifies a legacy server of changed roots. Requests that this causes
	// are [IsUnprompted].
	NotifyRoots() error
	// Done is closed when the connection has closed.
	Done() <-chan struct{}
	// Err returns the reason after Done is closed, otherwise nil or the loss of the
	// session.
	Err() error
	// Close closes the connection and waits for its processes, goroutines and streams. That
	// takes about 5 s at most if Handler.HandleRequest obeys its context.
	Close()
}

// Handler receives what servers send outside of answers. HandleRequest and ConnReady may
// use [Conn.Call] of the same connection, HandleNotification must not.
type Handler interface {
	// HandleNotification runs on the read loop and must not block. c is the causing call
	// if the transport identifies it (Streamable HTTP), otherwise nil. params is a raw
	// object or nil. list_changed, progress of open calls, and cancellations of the
	// server's requests are handled elsewhere.
	HandleNotification(s *Server, conn Conn, c *Call, method string, params []byte)
	// HandleRequest runs on its own goroutine. In the modern era the request is input
	// that the result of c requires. ctx is cancelled with the connection, with c, or by
	// the server. Pings are handled elsewhere.
	HandleRequest(ctx context.Context, s *Server, conn Conn, c *Call, method string, params []byte) (result []byte, err *jsonrpc.Error)
	// ConnOpened is called once per connection after its handshake, before the connection
	// is available to others. It must not block. Messages from the server may arrive
	// earlier.
	ConnOpened(s *Server, conn Conn)
	// ConnReady is called after ConnOpened to restore subscriptions and the log level. It
	// is called again after it returned when a unit adopts the server's own connection.
	// It may block; ctx is cancelled with the connection. Lists are fetched concurrently.
	ConnReady(ctx context.Context, s *Server, conn Conn)
	// ConnClosed is called once for each opened connection after it closed and ConnReady
	// returned. It must not block for long.
	ConnClosed(s *Server, conn Conn)
}
