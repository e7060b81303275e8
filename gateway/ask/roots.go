package ask

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

const (
	// rootsTimeout bounds how long sessions may take to tell their roots: it is
	// programs that answer, and one that does not must not keep the others' back.
	rootsTimeout = 5 * time.Second
	// maxRoots bounds what backends get of all sessions together.
	maxRoots = 1000
	// rootsQuiet gathers notices of changed roots.
	rootsQuiet = 100 * time.Millisecond
)

// rooted reports whether a session has roots to tell: it declared them in a
// handshake. Stateless requests cannot be asked outside of a call.
func rooted(s *downstream.Session) bool {
	return s.Protocol() != "" && s.Can("roots")
}

// unitedRoots answers a backend that asks outside of any call, over a
// connection that all sessions share: with the roots of the configuration and
// of every session that has some, each URI once, the oldest session's first.
func (a *Asker) unitedRoots(ctx context.Context, q *Question) ([]byte, *jsonrpc.Error) {
	var asked []*downstream.Session
	for _, s := range a.o.Clients.All() {
		if s.Ready() && rooted(s) {
			asked = append(asked, s)
		}
	}
	if len(asked) == 0 {
		return a.configuredRoots()
	}
	ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
	defer cancel()
	told := make([][]byte, len(asked))
	var each errgroup.Group
	each.SetLimit(64)
	for i, s := range asked {
		each.Go(func() error {
			start := time.Now()
			result, fault := a.askClient(ctx, s, q)
			a.o.Journal.Question(s, q.Server, q.Method, q.Params, result, fault, start)
			told[i] = result
			return nil
		})
	}
	_ = each.Wait() // none of them returns an error

	u := a.configured()
	for _, result := range told {
		for root := range rawjson.Elements(rawjson.Get(result, "roots")) {
			u.add(root)
		}
	}
	return u.result(), nil
}

// union is a list of roots in which each URI stands once.
type union struct {
	out   []byte
	known map[string]bool
}

func (u *union) add(root []byte) {
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

func (u *union) result() []byte { return append(u.out, "]}"...) }

// rootNews are the isolation units whose backends will be told that roots have
// changed; "" stands for the connections that all sessions share.
type rootNews struct {
	mu      sync.Mutex
	pending map[string]bool
}

// RootsChanged tells the backends of a session that its roots have: those that
// it has a connection of its own to, and those that it shares with others. It
// is told in one notice with what follows at once. Modern backends ask for
// roots when they need them, and take no notices.
func (a *Asker) RootsChanged(s *downstream.Session) {
	if rooted(s) {
		a.rootsChangedFor("", s.Unit())
	}
}

// rootsChangedFor is RootsChanged for isolation units.
func (a *Asker) rootsChangedFor(units ...string) {
	n := &a.rootNews
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pending == nil {
		n.pending = make(map[string]bool)
	}
	begun := len(n.pending) > 0
	for _, unit := range units {
		n.pending[unit] = true
	}
	if !begun {
		a.work.Go(a.tellRootsChanged)
	}
}

// tellRootsChanged waits for further changes and tells of all.
func (a *Asker) tellRootsChanged() {
	time.Sleep(rootsQuiet)
	n := &a.rootNews
	n.mu.Lock()
	units := n.pending
	n.pending = nil
	n.mu.Unlock()
	const method = "notifications/roots/list_changed"
	for _, l := range a.o.Calls.Links() {
		if !units[l.Conn.Unit()] || l.Conn.Info().Era == upstream.Modern {
			continue
		}
		if err := l.Conn.Notify(method, nil); err != nil {
			a.o.Logger.Debug("Notification lost", "server", l.Server.Name(), "method", method, "err", err)
			continue
		}
		a.o.Journal.Notification(registry.ToServer, nil, l.Server.Name(), method, "", nil)
	}
}

// configuredRoots is gateway.roots, for backends that ask when no client can
// be asked.
func (a *Asker) configuredRoots() ([]byte, *jsonrpc.Error) {
	if len(*a.roots.Load()) == 0 {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no client can be asked for roots, and gateway.roots is empty")
	}
	return a.configured().result(), nil
}

// configured is the union of gateway.roots alone.
func (a *Asker) configured() *union {
	u := &union{out: []byte(`{"roots":[`), known: make(map[string]bool)}
	for _, r := range *a.roots.Load() {
		if r.Name == "" {
			u.add(rawjson.Object("uri", r.URI))
		} else {
			u.add(rawjson.Object("uri", r.URI, "name", r.Name))
		}
	}
	return u
}
