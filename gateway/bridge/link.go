package bridge

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/mcpclient"
	"goblin/registry/rawjson"
)

type link struct {
	gen     int
	conn    net.Conn
	out     *jsonrpc.SendQueue
	replays map[string]replay // the bridge's own requests by raw id
	ready   chan error        // capacity 1: result of the repeated initialize
	done    chan struct{}     // closed after both directions finished
	since   time.Time
	ctx     context.Context // ends with the bridge or abort
	cancel  context.CancelFunc
}

func (b *bridge) connected(conn net.Conn) *link {
	b.mu.Lock()
	b.gen++
	l := &link{
		gen: b.gen, conn: conn, out: jsonrpc.NewStream(conn), replays: make(map[string]replay),
		ready: make(chan error, 1), done: make(chan struct{}), since: time.Now(),
	}
	b.mu.Unlock()
	l.ctx, l.cancel = context.WithCancel(b.hard)
	var wg sync.WaitGroup
	wg.Go(func() {
		if l.out.Run() == nil {
			if c, ok := conn.(interface{ CloseWrite() error }); ok {
				_ = c.CloseWrite()
			}
			return
		}
		// The daemon died, but its last data may be unread.
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	})
	wg.Go(func() {
		b.readDaemon(l)
		l.out.Close(jsonrpc.ErrClosed)
		_ = conn.SetWriteDeadline(time.Now())
	})
	var looks sync.WaitGroup
	if b.o.Alive != nil {
		looks.Go(func() {
			if err := mcpclient.WatchLiveness(l.ctx, b.busy, b.o.Alive); err != nil {
				b.log.Warn("daemon hangs; disconnecting", "err", err)
				conn.Close()
			}
		})
	}
	go func() {
		wg.Wait()
		conn.Close()
		l.cancel()
		looks.Wait()
		close(l.done)
	}()
	return l
}

func (b *bridge) busy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open) > 0
}

func (l *link) abort() {
	l.cancel()
	l.out.Close(jsonrpc.ErrClosed)
	l.conn.Close()
	<-l.done
}

func (b *bridge) readDaemon(l *link) {
	// The daemon has its own limit, and renaming may lengthen a message.
	r := jsonrpc.NewReader(l.conn, 4*b.o.Frame)
	var burst jsonrpc.WriteBatch
	defer burst.Flush()
	for {
		if !r.Ready() {
			burst.Flush()
		}
		frame, err := r.Read()
		if err != nil {
			var long *jsonrpc.TooLongError
			if !errors.As(err, &long) {
				return
			}
			b.lostAnswer(long)
			continue
		}
		if r.Truncated() {
			b.log.Warn("last message of the daemon is incomplete", "bytes", len(frame))
			return // its request fails with the other open ones
		}
		e := scan(frame)
		most := int64(maxUnsent)
		if !e.answer && !e.request() {
			most = maxChatter
		}
		if frame = b.fromDaemon(l, e, frame); frame != nil {
			burst.Send(b.out, append(frame, '\n'))
		}
		for b.out.UnsentBytes() > most {
			burst.Flush()
			// The connection's buffer fills, which slows down the daemon.
			if !pause(l.ctx, 2*time.Millisecond) {
				return
			}
		}
	}
}

// fromDaemon returns the frame for the client, or nil.
func (b *bridge) fromDaemon(l *link, e envelope, frame []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case rawjson.IsArray(frame): // responses to a batch
		for e := range messages(e, frame) {
			if e.answer {
				b.answeredLocked(e)
			}
		}
	case e.answer:
		if b.own(e.id) {
			b.replayedLocked(l, e, frame)
			return nil
		}
		b.answeredLocked(e)
	case e.request():
		return b.toClientLocked(l, e, frame)
	case e.method == cancelled:
		return b.cancelClientLocked(l, frame)
	case e.method == resChanged:
		b.retryLocked(l)
	}
	return frame
}

// own reports whether the raw id belongs to a repeated request.
func (b *bridge) own(id []byte) bool { return b.begins(id, ":r") }

func (b *bridge) begins(id []byte, mark string) bool {
	n := 1 + len(b.ns)
	return len(id) > n+len(mark) && id[0] == '"' && string(id[1:n]) == b.ns && string(id[n:n+len(mark)]) == mark
}

// Each daemon numbers its requests from the start, and the client may still handle one of
// a dead daemon. Only requests of the first daemon therefore keep their ids. Later ones
// get the text <namespace>:q<generation>:<raw id>, which identifies the daemon.

func (b *bridge) alias(gen int, id []byte) []byte {
	return rawjson.Quote(b.ns + ":q" + strconv.Itoa(gen) + ":" + string(id))
}

func (b *bridge) toClientLocked(l *link, e envelope, frame []byte) []byte {
	id := e.id
	if l.gen > 0 {
		id = b.alias(l.gen, id)
		frame = rawjson.Splice(frame, rawjson.ReplaceEdit(frame, e.id, id))
	}
	if len(b.questions) < maxQuestions {
		b.questions[string(id)] = struct{}{}
	}
	return frame
}

func (b *bridge) cancelClientLocked(l *link, frame []byte) []byte {
	id := rawjson.Path(frame, "params", "requestId")
	if id == nil {
		return frame
	}
	if l.gen > 0 {
		alias := b.alias(l.gen, id)
		frame, id = rawjson.Splice(frame, rawjson.ReplaceEdit(frame, id, alias)), alias
	}
	delete(b.questions, string(id))
	return frame
}

// toDaemonLocked returns a client's response with the id that the daemon used, or nil if
// that daemon is dead.
func (b *bridge) toDaemonLocked(l *link, e envelope, frame []byte) []byte {
	delete(b.questions, string(e.id))
	if l == nil {
		return nil
	}
	if !b.begins(e.id, ":q") {
		if l.gen > 0 && e.id != nil {
			return nil
		}
		return frame
	}
	text, _ := rawjson.String(e.id)
	gen, id, ok := strings.Cut(text[len(b.ns)+2:], ":")
	if !ok || gen != strconv.Itoa(l.gen) {
		return nil
	}
	return rawjson.Splice(frame, rawjson.ReplaceEdit(frame, e.id, []byte(id)))
}

// batchToDaemonLocked applies toDaemonLocked to the responses in a batch. It returns nil
// if no message remains.
func (b *bridge) batchToDaemonLocked(l *link, frame []byte) []byte {
	var left [][]byte
	answers := false
	for _, m := range batch(frame) {
		if e := scan(m); e.answer {
			answers = true
			m = b.toDaemonLocked(l, e, m)
		}
		if m != nil {
			left = append(left, m)
		}
	}
	switch {
	case !answers:
		return frame
	case left == nil:
		return nil
	}
	return append(append([]byte("["), bytes.Join(left, []byte(","))...), ']')
}

// lostAnswer answers for a daemon's message over the limit.
func (b *bridge) lostAnswer(long *jsonrpc.TooLongError) {
	b.log.Warn("dropped a message of the daemon", "err", long)
	id := long.ID()
	if !long.IsResponse() || id == nil || b.own(id) {
		return
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the response was dropped: " + long.Error(), Data: []byte(`{"code":"BAD_REPLY","server":"goblin"}`)}
	b.mu.Lock()
	defer b.mu.Unlock()
	c, _ := b.forgetLocked(id)
	b.out.Send(b.failureLocked(id, c.method, e))
}
