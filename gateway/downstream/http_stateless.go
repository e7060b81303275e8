package downstream

import (
	"context"
	"maps"
	"net/http"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// stateless handles a message of a revision without sessions. Whoever closes
// the answer's stream cancels the request.
func (h *HTTP) stateless(w http.ResponseWriter, r *http.Request, rc *http.ResponseController, p *post, m *jsonrpc.Message) {
	switch {
	case m.IsNotification():
		// None of them says anything without a session.
		w.WriteHeader(http.StatusAccepted)
		return
	case m.IsResponse():
		refuse(w, http.StatusBadRequest, nil, "Invalid request: nothing was asked; this revision has no requests to clients")
		return
	}
	modern, fault := envelope(r.Header, m)
	if fault != nil {
		writeError(w, http.StatusBadRequest, fault.Frame(m.ID))
		return
	}
	if m.Method == "subscriptions/listen" && !p.events {
		refuse(w, http.StatusNotAcceptable, m.ID, "%s needs Accept: text/event-stream", m.Method)
		return
	}
	modern.Remote = r.RemoteAddr
	root := h.shared(h.askedBy(r))
	if root == nil {
		unavailable(w, m.ID, "No room for another session (limits.sessions)")
		return
	}
	defer h.sessions.release(root)
	// What waits is counted for each request alone: a client that does not
	// read is no reason to end the others.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	p.hub, p.modern = &hub{s: root.s, share: newShare(h.opt.Memory), feeds: make(map[*feed]struct{}), drop: cancel}, true
	defer p.hub.share.Leave()
	h.sessions.hold(root)
	if m.Method == "subscriptions/listen" {
		defer h.calm.lasts()()
	}
	x, fault := root.s.begin(m, modern, p, p.hub.share, func() { h.sessions.release(root) })
	if fault != nil {
		h.sessions.release(root)
		writeError(w, http.StatusOK, fault.Frame(m.ID))
		return
	}
	unhook := context.AfterFunc(ctx, func() { x.abandon("the client closed the stream") })
	x.serve(nil)
	p.serve(w, r, rc)
	unhook()
	x.abandon("the client stopped reading") // without effect when it was answered
}

// envelope reads and checks what a stateless request says of itself, in the
// order that tells the client most.
func envelope(head http.Header, m *jsonrpc.Message) (*Modern, *jsonrpc.Error) {
	modern, fault := readModern(rawjson.Get(m.Params, "_meta"))
	if fault != nil {
		return nil, fault
	}
	if fault := checkHeaders(head, m, modern.Version); fault != nil {
		return nil, fault
	}
	if fault := unsupported(modern.Version); fault != nil {
		return nil, fault
	}
	modern.Header = head
	return modern, nil
}

// maxAlone is how many projects and profiles stateless requests may name at a time.
const maxAlone = 256

// shared is the session of all stateless requests whose URL names that project and
// profile, or none, for which release must be called; nil when there is no room or the
// server stops.
func (h *HTTP) shared(a choices) *hub {
	h.lone.Lock()
	defer h.lone.Unlock()
	if b := h.alone[a]; b != nil && h.sessions.acquire(b.key) != nil {
		return b
	}
	delete(h.alone, a)
	if len(h.alone) >= maxAlone {
		maps.DeleteFunc(h.alone, func(_ choices, b *hub) bool { return b.s.ctx.Err() != nil })
	}
	if len(h.alone) >= maxAlone {
		return nil
	}
	b := h.open(true, a)
	if b == nil {
		return nil
	}
	if h.alone == nil {
		h.alone = make(map[choices]*hub)
	}
	h.alone[a] = b
	return b
}
