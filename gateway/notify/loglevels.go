package notify

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/telemetry"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// levelTable has the log level that each connection was sent.
type levelTable struct {
	mu      sync.Mutex
	byConn  map[upstream.Conn]*connLevel
	changes atomic.Uint64 // how often a session set its level
}

// connLevel is the log level of one connection.
type connLevel struct {
	server    string
	conn      upstream.Conn
	mu        sync.Mutex // held while the level is sent
	isSet     bool       // guarded by mu, as are the next two
	sent      downstream.Level
	changes   uint64      // levelTable.changes when it was sent; 0: not sent, or refused
	waiting   atomic.Bool // a goroutine waits for mu, and will send the newest level
	stateless statelessLevel
}

func (t *levelTable) opened(server string, conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byConn[conn] = &connLevel{server: server, conn: conn}
}

func (t *levelTable) closed(conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.byConn[conn]; l != nil {
		l.stateless.stop()
	}
	delete(t.byConn, conn)
}

// get is that of an open connection; nil for others.
func (t *levelTable) get(conn upstream.Conn) *connLevel {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byConn[conn]
}

func (t *levelTable) all() []*connLevel {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.byConn))
}

// statelessLevel is the level that stateless requests asked for recently. Their servers know
// levels of connections only, so it lasts a little longer than the requests.
type statelessLevel struct {
	mu    sync.Mutex
	level downstream.Level
	until time.Time
	timer *time.Timer
}

// statelessLevelTTL is how long a level lasts after the last request that wants it.
const statelessLevelTTL = 30 * time.Second

// raise records a request's level and reports whether the server must be sent it. over is
// called when the level has expired.
func (b *statelessLevel) raise(level downstream.Level, over func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	news := now.After(b.until) || level < b.level
	if news {
		b.level = level
	}
	b.until = now.Add(statelessLevelTTL)
	if b.timer == nil {
		b.timer = time.AfterFunc(statelessLevelTTL, over)
	} else {
		b.timer.Reset(statelessLevelTTL)
	}
	return news
}

// current returns the level, or false if it has expired.
func (b *statelessLevel) current() (downstream.Level, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.level, time.Now().Before(b.until)
}

func (b *statelessLevel) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
}

// RaiseLogLevel sets a server's log level as a stateless request wants it, before that request
// is sent.
func (n *Notifier) RaiseLogLevel(ctx context.Context, x *downstream.Request, conn upstream.Conn) {
	level, ok := downstream.ParseLevel(x.Modern().LogLevel)
	l := n.levels.get(conn)
	if !ok || l == nil || !conn.Info().Has("logging") {
		return
	}
	over := func() {
		if conn.Err() == nil {
			n.sendLevel(context.Background(), l)
		}
	}
	if l.stateless.raise(level, over) {
		n.sendLevel(ctx, l)
	}
}

// minLevel returns the lowest level that sessions want. set is false if no session set one.
func (n *Notifier) minLevel() (least downstream.Level, set bool) {
	least = downstream.LevelUnset
	for _, s := range n.o.Clients.All() {
		l := s.Level()
		if l == downstream.LevelUnset {
			l = downstream.LevelInfo
		} else {
			set = true
		}
		if least == downstream.LevelUnset || l < least {
			least = l
		}
	}
	return least, set
}

const (
	// levelTimeout bounds how long one backend may take to change its level.
	levelTimeout = 5 * time.Second
	// levelWait bounds how long a client waits for the backends to know
	// its level: what it calls next is then logged accordingly.
	levelWait = time.Second
)

// SetLevel sets the level of a session and sends it as LevelsChanged does.
func (n *Notifier) SetLevel(s *downstream.Session, level downstream.Level) {
	n.levels.changes.Add(1) // first: who tells the level meanwhile has told it for this wish, too
	s.SetLevel(level)
	n.LevelsChanged()
}

// LevelsChanged sends every server its level, concurrently. It returns when all have answered
// or after levelWait.
func (n *Notifier) LevelsChanged() {
	all := make(chan struct{})
	n.work.Go(func() {
		defer close(all)
		var done sync.WaitGroup
		for _, l := range n.levels.all() {
			done.Go(func() { n.sendLevel(context.Background(), l) })
		}
		done.Wait()
	})
	select {
	case <-all:
	case <-time.After(levelWait):
	}
}

// levelFor chooses a connection's log level: its session's, or the least of all sessions'
// when they share it.
func (n *Notifier) levelFor(conn upstream.Conn) (level downstream.Level, set bool) {
	if conn.Unit() == "" || upstream.IsProjectUnit(conn.Unit()) {
		return n.minLevel()
	}
	if s := n.o.Clients.Owner(conn); s != nil {
		return s.Level(), s.Level() != downstream.LevelUnset
	}
	return downstream.LevelUnset, false
}

// sendLevel sends a server its level, determined when it is the server's turn, so the last one
// sent is the newest. A level that the server has is sent again only if a session set its own.
// If no session wants one any longer, a server that has one is sent the default.
func (n *Notifier) sendLevel(ctx context.Context, l *connLevel) {
	if info := l.conn.Info(); !info.Has("logging") || info.Era == upstream.Modern {
		return // a modern one is told with each request
	}
	if l.waiting.Swap(true) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting.Store(false)
	level, set := n.levelFor(l.conn)
	wishes := n.levels.changes.Load() + 1 // afterwards: those that the level is of are among them
	if lent, ok := l.stateless.current(); ok {
		if !set && level == downstream.LevelUnset {
			level = downstream.LevelInfo // of the sessions that set none
		}
		level, set = min(level, lent), true
	}
	if !set {
		if !l.isSet {
			return
		}
		level = downstream.LevelInfo
	}
	l.isSet = set
	if l.sent == level && l.changes == wishes {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, levelTimeout)
	defer cancel()
	reply, err := l.conn.Call(&upstream.Call{
		Context: ctx, Method: "logging/setLevel", Params: rawjson.Object("level", downstream.Levels[level]),
	})
	if err == nil && reply.Error != nil {
		err = jsonrpc.ParseErrorObject(reply.Error)
	}
	if err != nil {
		wishes = 0
		n.o.Logger.Warn("Log level not set", "server", l.server, "err", err)
	}
	l.sent, l.changes = level, wishes
}

// LogMessage delivers a log line: to the request that caused it, else to every
// session that the connection serves, each by its own level. A modern backend
// logs only for requests that ask for it, and a line of which it is not certain
// whose it is goes to the journal alone.
func (n *Notifier) LogMessage(server string, conn upstream.Conn, c *upstream.Call, params []byte) {
	level := downstream.MessageLevel(params)
	n.o.Journal.RecordLog(server, level.Slog(), params)
	causes, certain := n.o.Requests.Candidates(conn, c)
	modern := conn.Info().Era == upstream.Modern
	if modern && c == nil {
		causes = slices.DeleteFunc(causes, func(x *inflight.Request) bool {
			asked, ok := downstream.ParseLevel(x.Call.LogLevel)
			return !ok || level < asked
		})
		certain = n.o.Requests.SingleClient(conn, causes)
	}
	switch {
	case certain:
		n.sendMessage(server, causes, level, params)
	case !modern:
		n.broadcastMessage(server, conn, level, params)
	}
}

// sendMessage delivers a log message on the stream of the newest of one client's requests that
// wants it.
func (n *Notifier) sendMessage(server string, causes []*inflight.Request, level downstream.Level, params []byte) {
	for _, x := range slices.Backward(causes) {
		at := x.ClientRequest
		if level < at.Level() {
			continue
		}
		if mark, sent := at.Relay(server, "", "notifications/message", params); sent { // one that is answered meanwhile is none
			inflight.DelayAfterAnswers(causes, mark)
			n.o.Journal.RecordNotification(registry.ToClient, at.Session(), server, "notifications/message", "", params)
			return
		}
	}
}

// NotifyMissed notifies a client of the notifications that it missed because it did not read.
// It implements [downstream.Options].OnMissed.
func (n *Notifier) NotifyMissed(s *downstream.Session, server string, count uint64) {
	n.o.Logger.Warn("Notifications left out: the client does not read as fast as they come", "session", s.ID(), "client", s.Name(), "of", server, "count", count)
	if !s.Ready() || downstream.LevelWarning < s.Level() {
		return
	}
	text := strconv.FormatUint(count, 10) + " notifications"
	if server != "" {
		text += " of server " + server
	}
	text += " were left out, as too much waited to be read"
	s.Notify("notifications/message", rawjson.Object("level", "warning", "logger", "goblin", "data", text))
}

func (n *Notifier) broadcastMessage(server string, conn upstream.Conn, level downstream.Level, params []byte) {
	var receivers []telemetry.Receiver
	for _, to := range n.o.Clients.All() {
		mine := conn.Unit() == "" || to.UsesUnit(conn.Unit())
		if mine && to.Ready() && level >= to.Level() && n.o.Visibility.ForSession(to).HasServer(server) {
			to.Relay(server, "notifications/message", params)
			receivers = append(receivers, telemetry.Receiver{Session: to})
		}
	}
	n.o.Journal.RecordBroadcast(server, "notifications/message", "", params, receivers)
}
