package gateway

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/call"
	"goblin/gateway/downstream"
	"goblin/gateway/journal"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// logLevel orders the levels of RFC 5424 as MCP names them; levelUnset sorts
// below all, so a session that set none gets whatever servers send.
type logLevel int

const levelUnset logLevel = -1

// levelNever is above all levels, also above unknown ones.
var levelNever = logLevel(len(levelNames) + 1)

var levelNames = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// levelWarning is that of what Goblin itself says to clients.
const levelWarning logLevel = 3

func parseLevel(name string) (logLevel, bool) {
	i := slices.Index(levelNames, name)
	return logLevel(i), i >= 0
}

// wants is the level that the client asked for.
func (c *client) wants() logLevel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

func (c *client) want(l logLevel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.level = l
}

// wantsFor is the level that holds for one request: of a stateless client its
// own, and without one nothing at all.
func (c *client) wantsFor(x *downstream.Exchange) logLevel {
	m := x.Modern()
	if m == nil {
		return c.wants()
	}
	if l, ok := parseLevel(m.LogLevel); ok {
		return l
	}
	return levelNever
}

// levels are the log levels that servers were told, by connection.
type levels struct {
	mu sync.Mutex
	of map[upstream.Conn]*level
}

// level is that of one connection.
type level struct {
	server  string
	conn    upstream.Conn
	turn    sync.Mutex  // held while the server is told
	set     bool        // it was told a level; guarded by turn
	waiting atomic.Bool // somebody waits for turn, and will tell the newest
	loan    loan
}

func (t *levels) init() { t.of = make(map[upstream.Conn]*level) }

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
	level logLevel
	until time.Time
	timer *time.Timer
}

// loanTime is how long a level lasts after the last request that wants it.
const loanTime = 30 * time.Second

// raise notes a request's level; it reports whether the server must be told.
// over is called when nobody wants it any more.
func (b *loan) raise(level logLevel, over func()) bool {
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
func (b *loan) current() (logLevel, bool) {
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

// lendLevel makes a server log as a stateless request wants it, before that
// request is sent.
func (g *Gateway) lendLevel(r *request, conn upstream.Conn) {
	level, ok := parseLevel(r.Modern().LogLevel)
	l := g.levels.get(conn)
	if !ok || l == nil || !conn.Info().Has("logging") {
		return
	}
	over := func() {
		if conn.Err() == nil {
			g.tellLevel(context.Background(), l)
		}
	}
	if l.loan.raise(level, over) {
		g.tellLevel(r.Context(), l)
	}
}

func unknownLevel(name string) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: unknown level %q; known are %s", name, list(levelNames))
}

// setLevel keeps a session's level; backends get the least of all sessions'.
func (g *Gateway) setLevel(r *request) {
	name, _, err := stringMember(r.Params(), "level")
	if err != nil {
		r.fail(err)
		return
	}
	level, ok := parseLevel(name)
	if !ok {
		r.fail(unknownLevel(name))
		return
	}
	r.client.want(level)
	g.levelsChanged()
	r.reply(emptyResult)
}

// defaultLevel is what a session gets that set none, as far as others make a
// level necessary at all.
const defaultLevel logLevel = 1 // info

// level is the least level that sessions want; set is false when none of them
// set one.
func (g *Gateway) level() (least logLevel, set bool) {
	least = levelUnset
	for _, c := range g.allClients() {
		l := c.wants()
		if l == levelUnset {
			l = defaultLevel
		} else {
			set = true
		}
		if least == levelUnset || l < least {
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

// levelsChanged tells every connected backend its level, each in a goroutine
// of its own, and returns when all know it or after levelPatience.
func (g *Gateway) levelsChanged() {
	var told sync.WaitGroup
	for _, l := range g.levels.all() {
		told.Add(1)
		g.work.Go(func() {
			defer told.Done()
			g.tellLevel(context.Background(), l)
		})
	}
	all := make(chan struct{})
	g.work.Go(func() {
		told.Wait()
		close(all)
	})
	select {
	case <-all:
	case <-time.After(levelPatience):
	}
}

// levelFor is what a connection is asked for: its session's level, or the
// least of all sessions' when they share it.
func (g *Gateway) levelFor(conn upstream.Conn) (level logLevel, set bool) {
	if conn.Unit() == "" {
		return g.level()
	}
	if s := g.owner(conn); s != nil {
		if c := g.client(s); c != nil {
			return c.wants(), c.wants() != levelUnset
		}
	}
	return levelUnset, false
}

// tellLevel asks a backend for messages of its level and above. The level is
// determined when the backend's turn comes, so the last one told is the
// newest. A backend that was told one is told the default when nobody wants
// it any more; one that never was is left alone.
func (g *Gateway) tellLevel(ctx context.Context, l *level) {
	if info := l.conn.Info(); !info.Has("logging") || info.Era == upstream.Modern {
		return // a modern one is told with each request
	}
	if l.waiting.Swap(true) {
		return
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	l.waiting.Store(false)
	level, set := g.levelFor(l.conn)
	if lent, ok := l.loan.current(); ok {
		if !set && level == levelUnset {
			level = defaultLevel // of the sessions that set none
		}
		level, set = min(level, lent), true
	}
	if !set {
		if !l.set {
			return
		}
		level = defaultLevel
	}
	l.set = set
	ctx, cancel := context.WithTimeout(ctx, levelTimeout)
	defer cancel()
	reply, err := l.conn.Call(&upstream.Call{
		Context: ctx, Method: "logging/setLevel", Params: rawjson.Object("level", levelNames[level]),
	})
	if err == nil && reply.Error != nil {
		err = jsonrpc.ParseErrorObject(reply.Error)
	}
	if err != nil {
		g.log.Warn("Log level not set", "server", l.server, "err", err)
	}
}

// message delivers a log line: to the request that caused it, else to every
// session that the connection serves, each by its own level. A modern backend
// logs only for requests that ask for it, and a line of which it is not certain
// whose it is goes to the journal alone.
func (g *Gateway) message(server string, conn upstream.Conn, c *upstream.Call, params []byte) {
	level := levelOf(params)
	g.journal.Log(server, slogLevel(level), params)
	causes, certain := g.calls.Causes(conn, c)
	modern := conn.Info().Era == upstream.Modern
	if modern && c == nil {
		causes = slices.DeleteFunc(causes, func(x *call.Under) bool {
			asked, ok := parseLevel(x.Call.LogLevel)
			return !ok || level < asked
		})
		certain = g.calls.OneClients(conn, causes)
	}
	switch {
	case certain:
		g.messageTo(server, causes, level, params)
	case !modern:
		g.messageToAll(server, conn, level, params)
	}
}

// messageTo delivers a log line on the stream of the newest of one client's
// requests that wants it.
func (g *Gateway) messageTo(server string, causes []*call.Under, level logLevel, params []byte) {
	for _, x := range slices.Backward(causes) {
		at := x.Exchange
		to := g.client(at.Session())
		if to == nil || level < to.wantsFor(at) {
			continue
		}
		if mark, sent := at.Relay(server, "", "notifications/message", params); sent { // one that is answered meanwhile is none
			call.Behind(causes, mark)
			g.journal.Notification(registry.ToClient, to.session, server, "notifications/message", "", params)
			return
		}
	}
}

// Spared tells a client that did not read, once it does, that it missed what
// servers said meanwhile. It is [downstream.Options].Spared.
func (g *Gateway) Spared(s *downstream.Session, server string, n uint64) {
	g.log.Warn("Notifications left out: the client does not read as fast as they come", "session", s.ID(), "client", s.Name(), "of", server, "count", n)
	if c := g.client(s); c == nil || !s.Ready() || levelWarning < c.wants() {
		return
	}
	text := strconv.FormatUint(n, 10) + " notifications"
	if server != "" {
		text += " of server " + server
	}
	text += " were left out, as too much waited to be read"
	s.Notify("notifications/message", rawjson.Object("level", "warning", "logger", "goblin", "data", text))
}

func (g *Gateway) messageToAll(server string, conn upstream.Conn, level logLevel, params []byte) {
	var receivers []journal.Receiver
	for _, to := range g.allClients() {
		mine := conn.Unit() == "" || conn.Unit() == to.session.Unit()
		if mine && to.session.Ready() && level >= to.wants() {
			to.session.Relay(server, "notifications/message", params)
			receivers = append(receivers, journal.Receiver{Session: to.session})
		}
	}
	g.journal.Broadcast(server, "notifications/message", "", params, receivers)
}

// levelOf reads the level of notifications/message; unknown ones count as
// the highest, so that nothing is lost.
func levelOf(params []byte) logLevel {
	name, _ := rawjson.String(rawjson.Get(params, "level"))
	if l, ok := parseLevel(name); ok {
		return l
	}
	return logLevel(len(levelNames))
}
