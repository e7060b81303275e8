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

// progressTokens maps Goblin's progress tokens to those of servers. Servers choose theirs
// independently, so they can collide.
type progressTokens struct {
	mu   sync.Mutex
	open map[string]progressToken
}

type progressToken struct {
	conn    upstream.Conn
	raw     []byte
	session *downstream.Session
}

// replace returns params with Goblin's own token if they have one. The caller must call
// forget when the request is done.
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

// Progress relays a client's progress to the server whose request it answers.
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
		a.o.Logger.Debug("progress lost", "err", err)
	}
}

// elicitations maps URL elicitations to the sessions that received them. It routes the
// later notification that the user is done (2025-11-25, elicitation, URL mode).
type elicitations struct {
	mu       sync.Mutex
	sessions map[elicitationKey]*downstream.Session
	order    map[string][]elicitationKey // by server, the oldest first
}

// elicitationKey is an elicitation id within its server and unit. Processes choose ids
// independently.
type elicitationKey struct{ server, unit, id string }

// Limits of stored URL elicitations, in all and per server. One answer can contain any
// number of them. Beyond its own limit a server loses its oldest; beyond the total, the
// server with the most loses its oldest.
const (
	maxElicitations       = 1024
	maxServerElicitations = 128
)

// maxElicitationID is the maximum length of a stored id, in bytes. Longer ids get no
// completion notification.
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

// CodeURLElicitation is the error code of a request that requires opening a URL first
// (2025-11-25).
const CodeURLElicitation = -32042

// RecordURLRequired stores the elicitations in such an error, so that the client is
// notified when its user is done.
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

// NotifyElicitationDone notifies the client of an elicitation that its user is done. It
// uses the stream of the call c while that is open.
func (a *Router) NotifyElicitationDone(server string, conn upstream.Conn, c *upstream.Call, params []byte) {
	id := rawjson.GetString(params, "elicitationId")
	s := a.elicitations.session(elicitationKey{server, conn.Unit(), id})
	a.o.Journal.RecordNotification(registry.ToClient, s, server, "notifications/elicitation/complete", "", params)
	if s == nil || s.Context().Err() != nil {
		a.o.Logger.Debug("completed elicitation has no open session", "server", server)
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
