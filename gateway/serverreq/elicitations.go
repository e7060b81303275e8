package serverreq

import (
	"crypto/rand"
	"maps"
	"slices"
	"sync"

	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// progressTokens maps Goblin's progress tokens to those of servers, which choose theirs
// independently.
type progressTokens struct {
	mu   sync.Mutex
	open map[string]progressToken
}

// progressToken is a server's token, and the session that was asked.
type progressToken struct {
	conn    upstream.Conn
	raw     []byte
	session *downstream.Session
}

// replace returns params with a token of ours, if they have one, and what
// forgets it.
func (t *progressTokens) replace(conn upstream.Conn, s *downstream.Session, params []byte) (replaced []byte, forget func()) {
	raw := rawjson.Path(params, "_meta", "progressToken")
	if raw == nil {
		return params, func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[string]progressToken)
	}
	own := "goblin-" + rand.Text()
	t.open[own] = progressToken{conn, raw, s}
	return rawjson.Splice(params, rawjson.ReplaceEdit(params, raw, rawjson.Quote(own))), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, own)
	}
}

// Progress passes a client's progress on to the backend that asked.
func (a *Router) Progress(s *downstream.Session, params []byte) {
	raw := rawjson.Get(params, "progressToken")
	own, _ := rawjson.String(raw)
	a.tokens.mu.Lock()
	to, known := a.tokens.open[own]
	a.tokens.mu.Unlock()
	known = known && to.session == s
	server := ""
	if known {
		server = a.o.Calls.Server(to.conn)
	}
	a.o.Journal.RecordNotification(registry.ToServer, s, server, "notifications/progress", "", params)
	if !known {
		return
	}
	err := to.conn.Notify("notifications/progress", rawjson.Splice(params, rawjson.ReplaceEdit(params, raw, to.raw)))
	if err != nil {
		a.o.Logger.Debug("Progress lost", "err", err)
	}
}

// elicitations remembers which session was asked to open a URL, for the
// notice that follows when the user is done there (2025-11-25, elicitation,
// URL mode).
type elicitations struct {
	mu       sync.Mutex
	sessions map[elicitationKey]*downstream.Session
	order    map[string][]elicitationKey // of each server, the oldest first
}

// elicitationKey is the id that a server chose. Processes of units choose theirs
// independently.
type elicitationKey struct{ server, unit, id string }

// Bounds of how many open URL elicitations are remembered. One answer can name any number
// of them: a server that has more than its share loses its own oldest, and when there are
// too many of all, the server that has most does.
const (
	maxElicitations       = 1024
	maxServerElicitations = 128
)

// maxElicitationID is how many bytes such an id may have to be remembered: of one
// that has more, the client does not hear when its user is done.
const maxElicitationID = 1 << 10

func (e *elicitations) add(key elicitationKey, s *downstream.Session) {
	if len(key.id) > maxElicitationID {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions == nil {
		e.sessions = make(map[elicitationKey]*downstream.Session)
		e.order = make(map[string][]elicitationKey)
	}
	if _, known := e.sessions[key]; !known {
		e.order[key.server] = append(e.order[key.server], key)
	}
	e.sessions[key] = s
	most := key.server
	if len(e.order[most]) <= maxServerElicitations {
		if len(e.sessions) <= maxElicitations {
			return
		}
		for server, keys := range e.order {
			if len(keys) > len(e.order[most]) {
				most = server
			}
		}
	}
	delete(e.sessions, e.order[most][0])
	e.order[most] = e.order[most][1:]
}

// forget drops what an ended session was asked.
func (e *elicitations) forget(s *downstream.Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for server, keys := range e.order {
		keys = slices.DeleteFunc(keys, func(key elicitationKey) bool { return e.sessions[key] == s })
		if e.order[server] = keys; len(keys) == 0 {
			delete(e.order, server)
		}
	}
	maps.DeleteFunc(e.sessions, func(_ elicitationKey, of *downstream.Session) bool { return of == s })
}

func (e *elicitations) session(key elicitationKey) *downstream.Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[key]
}

// CodeURLElicitation is the error of a request that needs a URL to be opened
// first (2025-11-25).
const CodeURLElicitation = -32042

// RecordURLRequired notes what an error of that code asks of the client,
// so that it hears when its user is done.
func (a *Router) RecordURLRequired(s *downstream.Session, server, unit string, object []byte) {
	if code, _ := rawjson.Int(rawjson.Get(object, "code")); code != CodeURLElicitation {
		return
	}
	for e := range rawjson.Elements(rawjson.Path(object, "data", "elicitations")) {
		if id, ok := rawjson.String(rawjson.Get(e, "elicitationId")); ok {
			a.elicitations.add(elicitationKey{server, unit, id}, s)
		}
	}
}

// NotifyElicitationDone tells the client that was asked that its user is done: on the stream
// of the call c that needed it, as long as that is open.
func (a *Router) NotifyElicitationDone(server string, conn upstream.Conn, c *upstream.Call, params []byte) {
	id := rawjson.GetString(params, "elicitationId")
	s := a.elicitations.session(elicitationKey{server, conn.Unit(), id})
	a.o.Journal.RecordNotification(registry.ToClient, s, server, "notifications/elicitation/complete", "", params)
	if s == nil || s.Context().Err() != nil {
		a.o.Logger.Debug("Completed elicitation of nobody", "server", server)
		return
	}
	if c != nil {
		x, ok := c.Cause.(*inflight.Request)
		if ok && x.ClientRequest.Session() == s && x.ClientRequest.Context().Err() == nil {
			x.ClientRequest.NotifyLatest("elicited:"+id, "notifications/elicitation/complete", params)
			return
		}
	}
	s.NotifyLatest("elicited:"+id, "notifications/elicitation/complete", params)
}
