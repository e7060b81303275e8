package serverreq

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

const (
	// rootsTimeout limits the wait for sessions' roots. No user is involved, and one slow
	// client must not delay others.
	rootsTimeout = 5 * time.Second
	// maxRoots is the maximum number of merged roots that a server gets.
	maxRoots = 1000
	// rootsDelay is the time in which changes of roots are merged into one notification.
	rootsDelay = 100 * time.Millisecond
)

func declaresRoots(s *downstream.Session) bool {
	return s.Protocol() != "" && s.HasCapability("roots")
}

// sharesRoots reports whether servers may get a session's roots outside of its calls.
// Servers treat roots as folders that they may open, so an anonymous client's roots apply
// to its own calls only. Stateless clients can't be asked outside of a call.
func sharesRoots(s *downstream.Session) bool { return declaresRoots(s) && !s.Anonymous() }

// mergedRoots answers roots/list outside of any call, on a connection that sessions
// share. It merges the config's roots (if all clients share the connection) and every
// session's, oldest first, without duplicate URIs.
func (a *Router) mergedRoots(ctx context.Context, q *Request) ([]byte, *jsonrpc.Error) {
	var asked []*downstream.Session
	for _, s := range a.o.Clients.Using(q.Conn) {
		if s.Ready() && sharesRoots(s) {
			asked = append(asked, s)
		}
	}
	if len(asked) == 0 {
		return a.configuredRoots(q.Conn)
	}
	ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
	defer cancel()
	results := make([][]byte, len(asked))
	inflight.ForEachLimit(64, asked, func(i int, s *downstream.Session) {
		start := time.Now()
		result, fault := a.askClient(ctx, s, q)
		a.o.Journal.RecordServerRequest(nil, s, q.Server, q.Method, q.Params, result, fault, start, jsonrpc.RelayedIDsOf(ctx))
		results[i] = result
	})

	u := &rootsUnion{out: []byte(`{"roots":[`), known: make(map[string]bool)}
	if q.Conn.Unit() == "" {
		u = a.configRoots()
	}
	for _, result := range results {
		for root := range rawjson.Elements(rawjson.Get(result, "roots")) {
			u.add(root)
		}
	}
	return u.result(), nil
}

type rootsUnion struct {
	out   []byte
	known map[string]bool
}

func (u *rootsUnion) add(root []byte) {
	uri, ok := rawjson.String(rawjson.Get(root, "uri"))
	if !ok || u.known[uri] || len(u.known) >= maxRoots {
		return
	}
	if len(u.known) > 0 {
		u.out = append(u.out, ',')
	}
	u.known[uri] = true
	u.out = append(u.out, root...)
}

func (u *rootsUnion) result() []byte { return append(u.out, "]}"...) }

// rootChanges tracks which servers received which roots, and changes since.
type rootChanges struct {
	mu sync.Mutex
	// given maps connections to the sessions whose roots they received. stale holds
	// connections whose roots changed since.
	given map[upstream.Conn]map[*downstream.Session]bool
	stale map[upstream.Conn]bool
	// changed holds the sessions whose roots changed. config is set if gateway.roots
	// changed, scheduled if a goroutine will notify servers.
	changed           map[*downstream.Session]bool
	config, scheduled bool
}

func (n *rootChanges) recordGiven(conn upstream.Conn, s *downstream.Session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-conn.Done():
		return // Disconnected may have run already
	default:
	}
	if n.given == nil {
		n.given = make(map[upstream.Conn]map[*downstream.Session]bool)
	}
	if n.given[conn] == nil {
		n.given[conn] = make(map[*downstream.Session]bool)
	}
	n.given[conn][s] = true
}

// Disconnected removes a closed connection.
func (a *Router) Disconnected(conn upstream.Conn) {
	a.rootChanges.mu.Lock()
	defer a.rootChanges.mu.Unlock()
	delete(a.rootChanges.given, conn)
	delete(a.rootChanges.stale, conn)
}

// RootsChanged notifies servers that a session's roots changed: servers that received
// them, and servers that get the roots of all their clients. Changes within rootsDelay
// are merged. Modern servers request roots when they need them and get no notification.
func (a *Router) RootsChanged(s *downstream.Session) {
	if declaresRoots(s) {
		a.notifyRoots(func(n *rootChanges) {
			if n.changed == nil {
				n.changed = make(map[*downstream.Session]bool)
				n.stale = make(map[upstream.Conn]bool)
			}
			if sharesRoots(s) {
				n.changed[s] = true
			}
			for conn, sessions := range n.given {
				if sessions[s] { // roots received later are not stale
					n.stale[conn] = true
					delete(n.given, conn)
				}
			}
		})
	}
}

func (a *Router) notifyRoots(change func(*rootChanges)) {
	n := &a.rootChanges
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
	if !n.scheduled {
		n.scheduled = true
		a.work.Go(a.sendRootsChanged)
	}
}

// sendRootsChanged waits rootsDelay for further changes and notifies all affected
// servers.
func (a *Router) sendRootsChanged() {
	time.Sleep(rootsDelay)
	n := &a.rootChanges
	n.mu.Lock()
	news := rootChanges{stale: n.stale, changed: n.changed, config: n.config}
	n.stale = nil
	n.changed = nil
	n.config = false
	n.scheduled = false
	n.mu.Unlock()
	for _, l := range a.o.Calls.Connections() {
		if l.Conn.Info().Era == upstream.Modern || !news.affects(l) {
			continue
		}
		if err := l.Conn.NotifyRoots(); err != nil {
			a.o.Logger.Debug("server not notified of changed roots", "server", l.Server.Name(), "err", err)
			continue
		}
		a.o.Journal.RecordNotification(registry.ToServer, nil, l.Server.Name(), "notifications/roots/list_changed", "", nil)
	}
}

// affects reports whether a connection received changed roots, or would receive them if
// it asked outside of a call.
func (n *rootChanges) affects(l *inflight.Connection) bool {
	cfg := l.Server.Config()
	source := cfg.RootsSource()
	if source == config.NoRoots {
		return false
	}
	affected := n.config || n.stale[l.Conn]
	for s := range n.changed {
		affected = affected || source == config.ClientRoots && (l.Conn.Unit() == "" || s.UsesUnit(l.Conn.Unit()))
	}
	return affected
}

// configuredRoots returns gateway.roots, for servers that ask when no client can be
// asked. A server of a project gets the project's folder.
func (a *Router) configuredRoots(conn upstream.Conn) ([]byte, *jsonrpc.Error) {
	if folder := conn.Unit(); upstream.IsProjectUnit(folder) {
		uri := url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(folder), "/")}
		u := &rootsUnion{out: []byte(`{"roots":[`), known: make(map[string]bool)}
		u.add(rawjson.Object("uri", uri.String()))
		return u.result(), nil
	}
	if len(*a.roots.Load()) == 0 {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no client can provide roots, and gateway.roots is empty")
	}
	return a.configRoots().result(), nil
}

func (a *Router) configRoots() *rootsUnion {
	u := &rootsUnion{out: []byte(`{"roots":[`), known: make(map[string]bool)}
	for _, r := range *a.roots.Load() {
		if r.Name == "" {
			u.add(rawjson.Object("uri", r.URI))
		} else {
			u.add(rawjson.Object("uri", r.URI, "name", r.Name))
		}
	}
	return u
}
