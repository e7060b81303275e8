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
	"goblin/registry/rawjson"
)

// levelTable holds the level last sent to each connection.
type levelTable struct {
	mu      sync.Mutex
	byConn  map[upstream.Conn]*connLevel
	changes atomic.Uint64 // levels set by sessions
}

type connLevel struct {
	server    string
	conn      upstream.Conn
	mu        sync.Mutex // held while a level is sent
	isSet     bool       // guarded by mu, like sent and changes
	sent      downstream.Level
	changes   uint64      // levelTable.changes when sent; 0: not accepted
	waiting   atomic.Bool // a goroutine will send the newest level
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

// get returns nil for a closed connection.
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

// statelessLevel is the lowest level of recent stateless requests. Legacy servers have
// one level per connection, so it outlasts the requests.
type statelessLevel struct {
	mu    sync.Mutex
	level downstream.Level
	until time.Time
	timer *time.Timer
}

// statelessLevelTTL is the lifetime of a level after its last request.
const statelessLevelTTL = 30 * time.Second

// raise records a request's level and reports whether to send it. over is called when it
// expires.
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

// RaiseLogLevel sets a server's level before a stateless request is sent.
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
	// levelTimeout limits a logging/setLevel request.
	levelTimeout = 5 * time.Second
	// levelWait limits a client's wait for its new level, which then applies to its next
	// call.
	levelWait = time.Second
)

// SetLevel sets a session's level and calls LevelsChanged.
func (n *Notifier) SetLevel(s *downstream.Session, level downstream.Level) {
	n.levels.changes.Add(1) // before the level, see sendLevel
	s.SetLevel(level)
	n.LevelsChanged()
}

// LevelsChanged sends each server its level. It waits for the answers, at most levelWait.
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

// levelFor returns the session's level, or the lowest of all sessions that share the
// connection.
func (n *Notifier) levelFor(conn upstream.Conn) (level downstream.Level, set bool) {
	if conn.Unit() == "" || upstream.IsProjectUnit(conn.Unit()) {
		return n.minLevel()
	}
	if s := n.o.Clients.Owner(conn); s != nil {
		return s.Level(), s.Level() != downstream.LevelUnset
	}
	return downstream.LevelUnset, false
}

// sendLevel sends a level computed under the lock, so the last one is the newest. It
// repeats an unchanged level only after a session set its own. Without any set level, it
// restores the default.
func (n *Notifier) sendLevel(ctx context.Context, l *connLevel) {
	if info := l.conn.Info(); !info.Has("logging") || info.Era == upstream.Modern {
		return // modern servers get it with each request
	}
	if l.waiting.Swap(true) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting.Store(false)
	level, set := n.levelFor(l.conn)
	wishes := n.levels.changes.Load() + 1 // after the level, which may include more changes
	if lent, ok := l.stateless.current(); ok {
		if !set && level == downstream.LevelUnset {
			level = downstream.LevelInfo // for sessions without a level
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
		n.o.Logger.Warn("log level not set", "server", l.server, "err", err)
	}
	l.sent, l.changes = level, wishes
}

// LogMessage delivers a log line to its request, otherwise to all sessions on the
// connection, by their levels. Modern servers log only for requests that ask for it;
// their lines of uncertain origin are only recorded.
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

// sendMessage uses the client's newest request that wants the level.
func (n *Notifier) sendMessage(server string, causes []*inflight.Request, level downstream.Level, params []byte) {
	for _, x := range slices.Backward(causes) {
		at := x.ClientRequest
		if level < at.Level() {
			continue
		}
		if mark, sent := at.Relay(server, "", "notifications/message", params); sent { // false if it was answered
			inflight.DelayAfterAnswers(causes, mark)
			n.o.Journal.RecordCausedNotification(at, server, "notifications/message", "", params)
			return
		}
	}
}

// NotifyMissed tells a client how many notifications it missed by reading too slowly. It
// implements [downstream.Options].OnMissed.
func (n *Notifier) NotifyMissed(s *downstream.Session, server string, count uint64) {
	n.o.Logger.Warn("notifications dropped: the client reads too slowly", "session", s.ID(), "client", s.Name(), "of", server, "count", count)
	if !s.Ready() || downstream.LevelWarning < s.Level() {
		return
	}
	text := strconv.FormatUint(count, 10) + " notifications"
	if server != "" {
		text += " of server " + server
	}
	text += " were dropped because the client reads too slowly"
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
