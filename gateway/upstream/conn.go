package upstream

import (
	"context"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// Era is the family of protocol revisions that a connection speaks.
type Era uint8

// The eras.
//
// A connection speaks one era for its life. A server that offers both is
// connected to in the legacy era, unless the config says otherwise: servers written
// against the older revisions ask their client in the middle of a call, and
// lose that when they are spoken to in the newer one. [Server.Modern] is its
// second connection, for clients of the modern era, where there is one. Servers that
// refuse the legacy era are connected to in the modern one only.
const (
	Legacy Era = iota // up to 2025-11-25: initialize, then a session
	Modern            // from 2026-07-28 on: stateless
)

// String returns "legacy" or "modern".
func (e Era) String() string {
	if e == Modern {
		return "modern"
	}
	return "legacy"
}

// Revisions that a backend may answer initialize with, newest first. The
// first one is asked for.
var revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Info is what a backend said of itself at the beginning.
type Info struct {
	Era      Era
	Protocol string // negotiated revision
	// SecondEra says that it is [Server.Modern], beside a connection of the legacy
	// era of the same unit.
	SecondEra bool
	// Versions are all revisions that the backend says it speaks. nil when it
	// was not asked (server/discover) or does not say.
	Versions     []string
	Capabilities []byte // raw object, never nil
	ServerInfo   []byte // raw object, nil if there was none
	Instructions string
}

// Has reports whether a capability was declared, for example
// Has("resources", "subscribe"): it is there and neither false nor null.
func (i Info) Has(path ...string) bool {
	v := rawjson.Path(i.Capabilities, path...)
	return v != nil && string(v) != "false" && string(v) != "null"
}

// Conn is one connection to a backend, from its handshake on. Every attempt
// makes a new one.
type Conn interface {
	// Info is what was negotiated.
	Info() Info
	// Unit is the isolation unit that the connection belongs to. It is empty
	// for the server's own one, until a first unit takes that.
	Unit() string
	// Call sends a request and blocks until its answer, the end of its
	// context, its timeout, or the connection's end. Failures are *[Error],
	// but for the cause of c.Context when that was cancelled.
	//
	// In the modern era it is the same to callers: resources/subscribe and
	// unsubscribe change what the connection listens for; what a result asks
	// for first is put to Handler.HandleRequest, while the time does not run, and the
	// call is made again with the answers; a result has neither its type nor
	// the protocol's keys of `_meta` any more.
	Call(c *Call) (jsonrpc.Reply, error)
	// CallAsync is Call without the wait: caller is told what Call would return.
	// c.Context is not looked at; Stop ends the call. Start reports false, and
	// nobody is told anything, where the call has to be made by Call: the
	// connection is not a process's, speaks the modern era, or has ended.
	CallAsync(c *Call, caller Caller) bool
	// Cancel ends a call that Start has begun, as the end of its context would,
	// with the cause given. It does nothing when the call has ended.
	Cancel(c *Call, cause error)
	// Notify queues a notification. params is a raw object or nil. Modern
	// backends take none from clients: they get nothing.
	Notify(method string, params []byte) error
	// NotifyRoots tells a backend of the legacy era that roots have changed. What it
	// asks because of that is [IsUnprompted].
	NotifyRoots() error
	// Done is closed when the connection has ended, by itself or by Close.
	Done() <-chan struct{}
	// Err says why, after Done.
	Err() error
	// Close ends the connection and returns when everything of it is gone:
	// process group, goroutines, streams. It takes some 5 s at most, provided
	// that Handler.HandleRequest heeds its context.
	Close()
}

// Handler gets what backends send by themselves. [Conn.Call] of the same
// connection may be called from Request and Ready, not from Notification.
type Handler interface {
	// HandleNotification runs on the read loop: it must not block. c is the call
	// that caused it where the transport tells (a stream of Streamable HTTP),
	// else nil. params is the raw object, or nil. list_changed, the progress of
	// open calls, and notices that a request of the backend is withdrawn do not
	// come here.
	HandleNotification(s *Server, conn Conn, c *Call, method string, params []byte)
	// HandleRequest runs in a goroutine of its own. In the modern era it is a
	// question that came as the result of c. ctx ends with the connection,
	// with the call c, or when the backend cancels the request. Pings do not
	// come here.
	HandleRequest(ctx context.Context, s *Server, conn Conn, c *Call, method string, params []byte) (result []byte, err *jsonrpc.Error)
	// ConnOpened is called once per connection, after its handshake and before
	// [Server.Conn], Await and Unit give it to anybody. It must not block.
	// What the backend sends by itself may come before it.
	ConnOpened(s *Server, conn Conn)
	// ConnReady is called after Opened, so that subscriptions and the log level
	// can be restored; and once more, after it has returned, when a unit takes
	// the server's own connection, which conn.Unit then names. It runs beside
	// the fetching of the lists and may block; ctx ends with the connection.
	ConnReady(ctx context.Context, s *Server, conn Conn)
	// ConnClosed is called once for every connection that Opened was called for,
	// when it has ended and Ready has returned. It must not block for long.
	ConnClosed(s *Server, conn Conn)
}
