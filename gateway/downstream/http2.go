package downstream

import (
	"context"
	"net"
	"net/http"
)

// Limits of one HTTP/2 connection.
const (
	maxHTTP2Streams = 128
	// maxHTTP2Unread limits the bytes of bodies that no handler has read.
	maxHTTP2Unread = 256 << 10
	maxHTTP2Frame  = 16 << 10
)

type connKey struct{}

// useHTTP2 lets a server accept HTTP/2 without TLS from clients that begin with it.
func useHTTP2(srv *http.Server) {
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	srv.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams:          maxHTTP2Streams,
		MaxReadFrameSize:              maxHTTP2Frame,
		MaxReceiveBufferPerConnection: maxHTTP2Unread,
		MaxReceiveBufferPerStream:     maxHTTP2Unread,
		WriteByteTimeout:              stallTimeout,
	}
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
}

// beginHTTP2 counts a request until endHTTP2. It returns false at the limit of
// connections: over HTTP/1.1, each has one request. A connection with HTTP/2 may have
// several, so it no longer counts as one.
func (l *limitListener) beginHTTP2(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.http2Requests >= cap(l.slots) {
		return false
	}
	if c, ok := ctx.Value(connKey{}).(*limitConn); ok && !c.isHTTP2 {
		c.isHTTP2 = true
		l.stateCounts[c.state]--
	}
	l.http2Requests++
	l.notifyLocked()
	return true
}

func (l *limitListener) endHTTP2() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.http2Requests--
	l.notifyLocked()
}
