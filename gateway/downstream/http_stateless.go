package downstream

import (
	"context"
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
	modern.Remote = r.RemoteAddr
	root := h.shared()
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

// shared is the session of all stateless requests, for which release must be
// called; nil when there is no room or the server stops.
func (h *HTTP) shared() *hub {
	h.lone.Lock()
	defer h.lone.Unlock()
	if h.alone != nil && h.sessions.acquire(h.alone.key) != nil {
		return h.alone
	}
	h.alone = h.open(true)
	return h.alone
}
