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

// levels are the log levels that servers were told, by connection.
type levels struct {
	mu     sync.Mutex
	of     map[upstream.Conn]*level
	wishes atomic.Uint64 // how often a session set its level
}

// level is that of one connection.
type level struct {
	server  string
	conn    upstream.Conn
	turn    sync.Mutex // held while the server is told
	set     bool       // it was told a level; guarded by turn, as are the next two
	sent    downstream.Level
	wishes  uint64      // levels.wishes when it was sent; 0: not sent, or refused
	waiting atomic.Bool // somebody waits for turn, and will tell the newest
	loan    loan
}

func (t *levels) opened(server string, conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[conn] = &level{server: server, conn: conn}
}

func (t *levels) closed(conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.of[conn]; l != nil {
		l.loan.stop()
	}
	delete(t.of, conn)
}

// get is that of an open connection; nil for others.
func (t *levels) get(conn upstream.Conn) *level {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[conn]
}

func (t *levels) all() []*level {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.of))
}

// loan is the level that stateless requests asked for lately. Their servers
// know levels of connections only, so one lasts a little longer than they.
type loan struct {
	mu    sync.Mutex
	level downstream.Level
	until time.Time
	timer *time.Timer
}

// loanTime is how long a level lasts after the last request that wants it.
const loanTime = 30 * time.Second

// raise notes a request's level; it reports whether the server must be told.
// over is called when nobody wants it any more.
func (b *loan) raise(level downstream.Level, over func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	news := now.After(b.until) || level < b.level
	if news {
		b.level = level
	}
	b.until = now.Add(loanTime)
	if b.timer == nil {
		b.timer = time.AfterFunc(loanTime, over)
	} else {
		b.timer.Reset(loanTime)
	}
	return news
}

// current is the level lent, false for none.
func (b *loan) current() (downstream.Level, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.level, time.Now().Before(b.until)
}

func (b *loan) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
}

// RaiseLogLevel makes a server log as a stateless request wants it, before that
// request is sent.
func (n *Notifier) RaiseLogLevel(ctx context.Context, x *downstream.Request, conn upstream.Conn) {
	level, ok := downstream.ParseLevel(x.Modern().LogLevel)
	l := n.levels.get(conn)
	if !ok || l == nil || !conn.Info().Has("logging") {
		return
	}
	over := func() {
		if conn.Err() == nil {
			n.tellLevel(context.Background(), l)
		}
	}
	if l.loan.raise(level, over) {
		n.tellLevel(ctx, l)
	}
}

// level is the least level that sessions want; set is false when none of them
// set one.
func (n *Notifier) level() (least downstream.Level, set bool) {
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
	// levelPatience bounds how long a client waits for the backends to know
	// its level: what it calls next is then logged accordingly.
	levelPatience = time.Second
)

// SetLevel makes a session want a level, and tells it as LevelsChanged does.
func (n *Notifier) SetLevel(s *downstream.Session, level downstream.Level) {
	n.levels.wishes.Add(1) // first: who tells the level meanwhile has told it for this wish, too
	s.SetLevel(level)
	n.LevelsChanged()
}

// LevelsChanged tells every connected backend its level, each in a goroutine
// of its own, and returns when all know it or after levelPatience.
func (n *Notifier) LevelsChanged() {
	all := make(chan struct{})
	n.work.Go(func() {
		defer close(all)
		var done sync.WaitGroup
		for _, l := range n.levels.all() {
			done.Go(func() { n.tellLevel(context.Background(), l) })
		}
		done.Wait()
	})
	select {
	case <-all:
	case <-time.After(levelPatience):
	}
}

// levelFor chooses a connection's log level: its session's, or the least of all sessions'
// when they share it.
func (n *Notifier) levelFor(conn upstream.Conn) (level downstream.Level, set bool) {
	if conn.Unit() == "" || upstream.InProject(conn.Unit()) {
		return n.level()
	}
	if s := n.o.Clients.Owner(conn); s != nil {
		return s.Level(), s.Level() != downstream.LevelUnset
	}
	return downstream.LevelUnset, false
}

// tellLevel asks a backend for messages of its level and above. The level is
// determined when the backend's turn comes, so the last one told is the
// newest; one that it knows already is told again only when a session set its own.
// A backend that was told one is told the default when nobody wants it any more; one
// that never was is left alone.
func (n *Notifier) tellLevel(ctx context.Context, l *level) {
	if info := l.conn.Info(); !info.Has("logging") || info.Era == upstream.Modern {
		return // a modern one is told with each request
	}
	if l.waiting.Swap(true) {
		return
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	l.waiting.Store(false)
	level, set := n.levelFor(l.conn)
	wishes := n.levels.wishes.Load() + 1 // afterwards: those that the level is of are among them
	if lent, ok := l.loan.current(); ok {
		if !set && level == downstream.LevelUnset {
			level = downstream.LevelInfo // of the sessions that set none
		}
		level, set = min(level, lent), true
	}
	if !set {
		if !l.set {
			return
		}
		level = downstream.LevelInfo
	}
	l.set = set
	if l.sent == level && l.wishes == wishes {
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
	l.sent, l.wishes = level, wishes
}

// LogMessage delivers a log line: to the request that caused it, else to every
// session that the connection serves, each by its own level. A modern backend
// logs only for requests that ask for it, and a line of which it is not certain
// whose it is goes to the journal alone.
func (n *Notifier) LogMessage(server string, conn upstream.Conn, c *upstream.Call, params []byte) {
	level := downstream.MessageLevel(params)
	n.o.Journal.Log(server, level.Slog(), params)
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
		n.messageTo(server, causes, level, params)
	case !modern:
		n.messageToAll(server, conn, level, params)
	}
}

// messageTo delivers a log line on the stream of the newest of one client's
// requests that wants it.
func (n *Notifier) messageTo(server string, causes []*inflight.Request, level downstream.Level, params []byte) {
	for _, x := range slices.Backward(causes) {
		at := x.Exchange
		if level < at.Level() {
			continue
		}
		if mark, sent := at.Relay(server, "", "notifications/message", params); sent { // one that is answered meanwhile is none
			inflight.DelayAfterAnswers(causes, mark)
			n.o.Journal.Notification(registry.ToClient, at.Session(), server, "notifications/message", "", params)
			return
		}
	}
}

// NotifyMissed tells a client that did not read, once it does, that it missed what
// serversKey said meanwhile. It is [downstream.Options].Spared.
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

func (n *Notifier) messageToAll(server string, conn upstream.Conn, level downstream.Level, params []byte) {
	var receivers []telemetry.Receiver
	for _, to := range n.o.Clients.All() {
		mine := conn.Unit() == "" || to.UsesUnit(conn.Unit())
		if mine && to.Ready() && level >= to.Level() && n.o.Visibility.ForSession(to).HasServer(server) {
			to.Relay(server, "notifications/message", params)
			receivers = append(receivers, telemetry.Receiver{Session: to})
		}
	}
	n.o.Journal.Broadcast(server, "notifications/message", "", params, receivers)
}
