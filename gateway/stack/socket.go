package stack

import (
	"context"
	"io"
	"net"
	"time"

	"goblin/gateway/daemon"
	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
)

// refuseTimeout limits the wait for the request that a refusal answers.
const refuseTimeout = 5 * time.Second

// maxRefuseFrame is its maximum size, in bytes.
const maxRefuseFrame = 256 << 10

// serveSocket serves a client of the socket, or refuses it at the limit.
func (i *Stack) serveSocket(ctx context.Context, c net.Conn, r io.Reader, from daemon.Client) {
	limit := i.o.Config.Gateway.Limits.Sessions
	if i.sockets.Add(1) > int64(limit) {
		i.sockets.Add(-1)
		i.o.Logger.Warn("session refused: too many on the socket", "limits.sessions", limit)
		i.refuse(ctx, c, r)
		return
	}
	defer i.sockets.Add(-1)
	o := i.sessionOptions()
	o.Location = downstream.Location{Folder: from.Cwd}
	o.Profile = from.Profile
	if err := i.serve(ctx, o, downstream.SocketTransport, r, c, c); err != nil {
		i.o.Logger.Debug("session closed", "err", err)
	}
}

// refuse answers the client's first request with an error.
func (i *Stack) refuse(ctx context.Context, c net.Conn, r io.Reader) {
	limits := i.o.Config.Gateway.Limits
	limits.Frame = min(limits.Frame, maxRefuseFrame) // there may be many
	_ = c.SetDeadline(time.Now().Add(refuseTimeout)) // fails if it is closed
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })()
	frames := jsonrpc.NewReader(r, limits.Frame)
	for {
		frame, err := frames.Read()
		if err != nil {
			return
		}
		m, err := jsonrpc.Parse(frame)
		if err != nil || !m.IsRequest() {
			continue
		}
		e := jsonrpc.Errorf(jsonrpc.CodeInternal, "Too many sessions: at most %d (limits.sessions)", limits.Sessions)
		e.Data = []byte(`{"code":"CONNECTION_ERROR","server":"goblin"}`)
		_, _ = c.Write(jsonrpc.ToolErrorFrame(m.ID, m.Method, true, e)) // the client may have left
		return
	}
}
