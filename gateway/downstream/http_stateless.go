package downstream

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// stateless handles a message without a session. Closing the connection cancels the
// request.
func (h *HTTP) stateless(w http.ResponseWriter, r *http.Request, rc *responseControl, p *postStream, m *jsonrpc.Message) {
	switch {
	case m.IsNotification():
		// Notifications have no effect without a session.
		w.WriteHeader(http.StatusAccepted)
		return
	case m.IsResponse():
		writeRPCError(w, http.StatusBadRequest, nil, "Invalid request: unexpected response; this revision has no requests to clients")
		return
	}
	modern, fault := envelope(r.Header, m)
	if fault != nil {
		writeError(w, http.StatusBadRequest, fault.Frame(m.ID))
		return
	}
	if m.Method == "subscriptions/listen" && !p.acceptsEvents {
		writeRPCError(w, http.StatusNotAcceptable, m.ID, "%s needs Accept: text/event-stream", m.Method)
		return
	}
	modern.Remote = r.RemoteAddr
	asked := h.parseChoices(r)
	if asked.project != "" && h.o.ResolveProject != nil {
		// Resolve first: invalid and differently spelled projects must not use up
		// maxProjects.
		folder, err := h.o.ResolveProject(asked.project)
		if err != nil {
			writeRPCError(w, http.StatusBadRequest, m.ID, "Invalid request: invalid project in the URL: %v", err)
			return
		}
		asked.project = folder
	}
	root, why := h.statelessSession(asked)
	if root == nil {
		writeUnavailable(w, m.ID, why)
		return
	}
	defer h.sessions.release(root)
	// Count unsent bytes per request, so that slow clients affect no others.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	p.session, p.modern = &httpSession{session: root.session, share: newMemoryShare(h.opt.Memory), streams: make(map[*eventStream]struct{}), closeRequest: cancel}, true
	defer p.session.share.Release()
	h.sessions.retain(root)
	if m.Method == "subscriptions/listen" {
		defer h.listener.addStream()()
	}
	x, fault := root.session.begin(m, modern, p, p.session.share, func() { h.sessions.release(root) })
	if fault != nil {
		h.sessions.release(root)
		writeError(w, http.StatusOK, fault.Frame(m.ID))
		return
	}
	unhook := context.AfterFunc(ctx, func() { x.cancelByDisconnect("the client closed the stream") })
	x.serve(nil)
	p.serve(w, r, rc)
	unhook()
	x.cancelByDisconnect("the client stopped reading") // no effect if it was answered
}

// envelope checks a stateless request; the order gives the best error.
func envelope(head http.Header, m *jsonrpc.Message) (*Modern, *jsonrpc.Error) {
	modern, fault := readModern(rawjson.Get(m.Params, "_meta"))
	if fault != nil {
		return nil, fault
	}
	if fault := checkHeaders(head, m, modern.Version); fault != nil {
		return nil, fault
	}
	if fault := unsupportedVersionError(modern.Version); fault != nil {
		return nil, fault
	}
	modern.Header = head
	return modern, nil
}

// maxProjects limits the projects of stateless requests, counted per profile.
const maxProjects = 256

// statelessSession returns the session for a URL until release, or nil and the reason.
func (h *HTTP) statelessSession(a urlChoices) (b *httpSession, why string) {
	h.statelessMu.Lock()
	defer h.statelessMu.Unlock()
	if b := h.statelessSessions[a]; b != nil && h.sessions.acquire(b.key) != nil {
		return b, ""
	}
	delete(h.statelessSessions, a)
	if a.project != "" && !h.evictProjectLocked() {
		return nil, fmt.Sprintf("Too many projects in use by requests without a session (limit %d)", maxProjects)
	}
	if b = h.openSession(true, a, ""); b == nil {
		return nil, "Goblin is shutting down"
	}
	if h.statelessSessions == nil {
		h.statelessSessions = make(map[urlChoices]*httpSession)
	}
	h.statelessSessions[a] = b
	return b, ""
}

// evictProjectLocked evicts the longest idle project at the limit. It returns false if
// all are in use.
func (h *HTTP) evictProjectLocked() bool {
	var named []*httpSession
	for a, b := range h.statelessSessions {
		if b.session.ctx.Err() != nil {
			delete(h.statelessSessions, a)
		} else if a.project != "" {
			named = append(named, b)
		}
	}
	if len(named) < maxProjects {
		return true
	}
	idle := h.sessions.evict(named)
	if idle == nil {
		return false
	}
	maps.DeleteFunc(h.statelessSessions, func(_ urlChoices, b *httpSession) bool { return b == idle })
	idle.session.Close(ErrIdle)
	return true
}
