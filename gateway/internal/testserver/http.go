package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

type sessions struct {
	mu   sync.Mutex
	open map[string]*session
}

type session struct {
	id      string
	streams map[*poster]bool
	queue   [][]byte // sent without an open stream
}

func newSessions() *sessions { return &sessions{open: map[string]*session{}} }

func (ss *sessions) add() *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.addLocked()
}

func (ss *sessions) addLocked() *session {
	v := &session{id: rand.Text(), streams: map[*poster]bool{}}
	ss.open[v.id] = v
	return v
}

// addLegacy creates a session for a 2024-11-05 stream. The endpoint event is sent before
// everything else, and later POSTs are answered on the stream.
func (ss *sessions) addLegacy(p *poster) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	v := ss.addLocked()
	v.streams[p] = true
	p.event("endpoint", []byte("/messages?session="+v.id))
	return v
}

func (ss *sessions) find(id string) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.open[id]
}

func (ss *sessions) forget() {
	ss.hangup()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	clear(ss.open)
}

func (ss *sessions) remove(id string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.open, id)
}

func (ss *sessions) hangup() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, v := range ss.open {
		for p := range v.streams {
			p.end()
		}
		clear(v.streams) // later messages wait for the next stream
	}
}

// send sends a frame on one stream of each session, or on its next one.
func (ss *sessions) send(frame []byte) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, v := range ss.open {
		sent := false
		for p := range v.streams {
			p.send(frame)
			sent = true
			break
		}
		if !sent {
			v.queue = append(v.queue, frame)
		}
	}
}

// attach returns false if the session was forgotten.
func (ss *sessions) attach(v *session, p *poster) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.open[v.id] != v {
		return false
	}
	v.streams[p] = true
	for _, frame := range v.queue {
		p.send(frame)
	}
	v.queue = nil
	return true
}

func (ss *sessions) detach(v *session, p *poster) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(v.streams, p)
}

// poster is one HTTP response: JSON if the answer comes first, otherwise an event stream.
type poster struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	sse  bool
	over bool
	done chan struct{}
}

func newPoster(w http.ResponseWriter) *poster { return &poster{w: w, done: make(chan struct{})} }

func (p *poster) send(frame []byte) { p.event("message", frame) }

func (p *poster) event(name string, frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(name, frame)
}

func (p *poster) write(name string, frame []byte) {
	if p.over {
		return
	}
	p.stream()
	fmt.Fprintf(p.w, "event: %s\ndata: %s\n\n", name, frame)
	p.w.(http.Flusher).Flush()
}

func (p *poster) raw(text []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return net.ErrClosed
	}
	p.stream()
	_, err := p.w.Write(text)
	p.w.(http.Flusher).Flush()
	return err
}

func (p *poster) stream() {
	if !p.sse {
		p.sse = true
		p.w.Header().Set("Content-Type", "text/event-stream")
		p.w.WriteHeader(http.StatusOK)
	}
}

func (p *poster) answer(frame []byte, sse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
		return
	case p.sse || sse:
		p.write("message", frame)
	default:
		p.w.Header().Set("Content-Type", "application/json")
		_, _ = p.w.Write(frame)
	}
	p.over = true
	close(p.done)
}

func (p *poster) status(a *action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.over = true
	for k, v := range a.Headers {
		p.w.Header().Set(k, v)
	}
	p.w.WriteHeader(a.Code)
	_, _ = io.WriteString(p.w, a.Text)
	close(p.done)
}

func (p *poster) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.over = true
		close(p.done)
	}
}

// serveHTTP serves until the process exits. It sends its address to the test as the event
// "http".
func (s *server) serveHTTP(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", s.mcp)
	mux.HandleFunc("GET /sse", s.legacyStream)
	mux.HandleFunc("POST /messages", s.legacyPost)
	s.tell(event{Ev: "http", Name: ln.Addr().String()})
	return http.Serve(ln, mux)
}

func headers(r *http.Request) map[string]string {
	out := map[string]string{}
	for k, v := range r.Header {
		out[strings.ToLower(k)] = strings.Join(v, ", ")
	}
	return out
}

func (s *server) mcp(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	p := newPoster(w)
	from := origin{send: p.send, raw: p.raw, status: p.status, session: id, http: r.Method, headers: headers(r)}
	from.answer = func(frame []byte) { p.answer(frame, s.SSE) }
	if r.Method != http.MethodPost {
		s.tell(event{Ev: "recv", HTTP: r.Method, Session: id, Headers: from.headers})
	}
	for _, a := range s.actions("http", r.Method) {
		if s.due(a) && a.Do == "status" {
			s.tell(event{Ev: "refused", HTTP: r.Method, Headers: from.headers})
			p.status(a)
			return
		}
	}
	if s.Era == "modern" && r.Method != http.MethodPost {
		http.Error(w, "not in this revision", http.StatusMethodNotAllowed)
		return
	}
	v := s.sessions.find(id)
	switch {
	case v == nil && id != "":
		s.tell(event{Ev: "refused", HTTP: r.Method, Headers: from.headers})
		http.Error(w, "no such session", http.StatusNotFound)
	case r.Method == http.MethodPost:
		s.post(w, r, p, from)
	case r.Method == http.MethodDelete && v != nil:
		s.sessions.remove(id)
	case r.Method == http.MethodGet && v != nil && !s.NoStream:
		s.stream(w, r, p, v)
	default:
		http.Error(w, "not here", http.StatusMethodNotAllowed)
	}
}

func (s *server) post(w http.ResponseWriter, r *http.Request, p *poster, from origin) {
	body, err := io.ReadAll(r.Body)
	var m message
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case s.isModern(m.Params) || s.Era == "modern":
		if m.Method == "" || m.ID == nil {
			http.Error(w, "nothing but requests", http.StatusBadRequest)
			return
		}
		if s.Era != "" && !s.headersFit(p, m, from.headers) {
			s.tell(event{Ev: "refused", HTTP: r.Method, Headers: from.headers, Msg: body})
			return
		}
		from.answer = func(frame []byte) { p.modern(frame, s.SSE) }
		s.receive(body, from)
		hold(r, p)
		s.cancel(" " + string(m.ID)) // the end of the stream cancels
		return
	case m.Method == "initialize":
		if !s.Stateless {
			w.Header().Set("Mcp-Session-Id", s.sessions.add().id)
		}
	case from.session == "" && !s.Stateless:
		http.Error(w, "a session id is missing", http.StatusBadRequest)
		return
	}
	if m.Method == "" || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		s.receive(body, from)
		return
	}
	s.receive(body, from)
	hold(r, p)
}

// stream serves a GET. The client gets the headers only after the stream is registered,
// so that it misses no message and no hangup.
func (s *server) stream(w http.ResponseWriter, r *http.Request, p *poster, v *session) {
	if !s.sessions.attach(v, p) {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	defer s.sessions.detach(v, p)
	p.mu.Lock()
	p.stream()
	p.w.(http.Flusher).Flush()
	p.mu.Unlock()
	hold(r, p)
}

func hold(r *http.Request, p *poster) {
	select {
	case <-p.done:
	case <-r.Context().Done():
		p.end()
	}
}

// legacyStream is the event stream of revision 2024-11-05. Its first event is the POST
// endpoint, and all answers are sent on it.
func (s *server) legacyStream(w http.ResponseWriter, r *http.Request) {
	s.tell(event{Ev: "recv", HTTP: "SSE", Headers: headers(r)})
	p := newPoster(w)
	v := s.sessions.addLegacy(p)
	defer s.sessions.remove(v.id)
	hold(r, p)
}

func (s *server) legacyPost(w http.ResponseWriter, r *http.Request) {
	v := s.sessions.find(r.URL.Query().Get("session"))
	body, err := io.ReadAll(r.Body)
	if v == nil || err != nil {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	send := func(frame []byte) {
		s.sessions.mu.Lock()
		defer s.sessions.mu.Unlock()
		for p := range v.streams {
			p.send(frame)
		}
	}
	s.receive(body, origin{send: send, answer: send, session: v.id, http: "POST", headers: headers(r)})
}
