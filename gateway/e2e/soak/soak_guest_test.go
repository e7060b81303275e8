//go:build soak

package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"goblin/gateway/e2e"
)

// lastly limits the wait for an answer. The servers' timeout is 3 s, and users answer
// within half a second.
const lastly = time.Minute

// soakClient is a client that stores only its open requests. Each answer is checked when
// it arrives.
type soakClient struct {
	s      *soak
	name   string
	modern bool
	web    bool               // over HTTP; if modern, without a session
	send   func(frame []byte) // may block
	leave  func()             // disconnects at once

	mu       sync.Mutex
	lastID   int
	open     map[string]*flight
	dropped  map[string]bool // cancelled: each may still get one answer
	watched  map[string]bool // all subscriptions ever made
	gone     bool            // messages are ignored
	aborts   map[string]context.CancelFunc
	rnd      *rand.Rand // guarded by mu
	sessions string     // HTTP session id
}

// flight is a request in flight.
type flight struct {
	ask   ask
	id    string
	begun time.Time
	done  chan reply
}

type reply struct {
	m    e2e.Message
	none string // why there is no answer
}

func (s *soak) newClient(name string, rnd *rand.Rand) *soakClient {
	own := rand.New(rand.NewPCG(s.seed, rnd.Uint64()))
	return &soakClient{s: s, name: name, rnd: own, open: map[string]*flight{}, dropped: map[string]bool{}, aborts: map[string]context.CancelFunc{}, watched: map[string]bool{}}
}

func (p *soakClient) n(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rnd.IntN(n)
}

// begin sends a request.
func (p *soakClient) begin(a ask) *flight {
	p.mu.Lock()
	p.lastID++
	f := &flight{ask: a, id: strconv.Itoa(p.lastID), begun: time.Now(), done: make(chan reply, 1)}
	p.open[f.id] = f
	params := e2e.Merge(e2e.Obj{}, []e2e.Obj{a.params})
	p.mu.Unlock()
	if p.modern {
		params["_meta"] = e2e.Obj{
			e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{"elicitation": e2e.Obj{}},
			e2e.ProtocolPrefix + "clientInfo": e2e.Obj{"name": "soak", "version": "1"},
		}
	}
	if a.token {
		own, _ := params["_meta"].(e2e.Obj)
		params["_meta"] = e2e.Merge(e2e.Obj{"progressToken": f.id}, []e2e.Obj{own})
	}
	p.s.asked.Add(1)
	p.send(e2e.Marshal(e2e.Obj{"jsonrpc": "2.0", "id": json.RawMessage(f.id), "method": a.method, "params": params}))
	return f
}

// do sends a request, waits for its answer and checks it. It reports whether
// that was a result.
func (p *soakClient) do(a ask) bool {
	f := p.begin(a)
	for {
		m, ok := p.await(f)
		if !ok {
			return false
		}
		if e2e.Str(m.Result, "resultType") != "input_required" {
			return p.s.judge(p, f, m)
		}
		again := a
		again.params = e2e.Merge(e2e.Obj{"requestState": e2e.At(m.Result, "requestState")}, []e2e.Obj{a.params})
		var asked map[string]json.RawMessage
		_ = json.Unmarshal(e2e.At(m.Result, "inputRequests"), &asked)
		replies := e2e.Obj{}
		for key := range asked {
			replies[key] = e2e.Obj{"action": "decline"}
		}
		again.params["inputResponses"] = replies
		f = p.begin(again)
	}
}

// await waits for the answer to a request.
func (p *soakClient) await(f *flight) (e2e.Message, bool) {
	timer := time.NewTimer(lastly)
	defer timer.Stop()
	select {
	case got := <-f.done:
		if got.none != "" {
			p.lost(f, got.none)
			return e2e.Message{}, false
		}
		return got.m, true
	case <-timer.C:
		p.lost(f, "nothing came")
		return e2e.Message{}, false
	}
}

func (p *soakClient) lost(f *flight, why string) {
	p.mu.Lock()
	gone := p.gone
	p.mu.Unlock()
	if !gone {
		p.s.wrong("%s: no answer to %s after %v: %s", p.name, f.ask, time.Since(f.begun).Round(time.Millisecond), why)
	}
}

// cancel cancels a request.
func (p *soakClient) cancel(f *flight) {
	p.mu.Lock()
	if p.open[f.id] != nil {
		delete(p.open, f.id)
		p.dropped[f.id] = true
	}
	abort := p.aborts[f.id]
	p.mu.Unlock()
	if p.modern && abort != nil {
		abort()
		return
	}
	p.notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(f.id)})
}

func (p *soakClient) notify(method string, params e2e.Obj) {
	p.send(e2e.Marshal(e2e.Obj{"jsonrpc": "2.0", "method": method, "params": params}))
}

// receive handles a frame. stream is the request whose response carried it, or "" if
// there is one stream for all.
func (p *soakClient) receive(frame []byte, stream string) {
	var m e2e.Message
	if err := json.Unmarshal(frame, &m); err != nil {
		p.s.wrong("%s: no JSON: %.200q", p.name, frame)
		return
	}
	switch {
	case m.Method != "" && m.ID != nil:
		go p.reply(m)
	case m.Method != "":
		p.note(m)
	default:
		p.answer(m, stream)
	}
}

func (p *soakClient) answer(m e2e.Message, stream string) {
	id := string(m.ID)
	p.mu.Lock()
	f := p.open[id]
	delete(p.open, id)
	late := p.dropped[id]
	delete(p.dropped, id)
	gone := p.gone
	p.mu.Unlock()
	switch {
	case gone, late:
	case f == nil || stream != "" && stream != id:
		p.s.wrong("%s: an answer without a request: id %s on %q: %.300s%.300s", p.name, id, stream, m.Result, m.Error)
	default:
		f.done <- reply{m: m}
	}
}

// reply answers a request from the server after a delay, like a user.
func (p *soakClient) reply(m e2e.Message) {
	time.Sleep(time.Duration(p.n(500)) * time.Millisecond)
	result := e2e.Obj{}
	if m.Method == "elicitation/create" {
		result["action"] = "decline"
	}
	p.send(e2e.Marshal(e2e.Obj{"jsonrpc": "2.0", "id": m.ID, "result": result}))
}

func (p *soakClient) note(m e2e.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone:
	case m.Method == "notifications/resources/updated":
		if uri := e2e.Str(m.Params, "uri"); !p.watched[uri] {
			p.s.wrong("%s: an update of %s, which it never subscribed to", p.name, uri)
		}
		p.s.updates.Add(1)
	case m.Method == "notifications/progress":
		if id := e2e.Str(m.Params, "progressToken"); p.open[id] == nil && !p.dropped[id] {
			p.s.wrong("%s: progress of a request that is not in flight: %s", p.name, m.Params)
		}
	}
}

// end makes all waiting requests fail.
func (p *soakClient) end(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, f := range p.open {
		delete(p.open, id)
		f.done <- reply{none: why}
	}
}

// abandon disconnects at once, with requests in flight.
func (p *soakClient) abandon() {
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	p.leave()
	p.end("it has left")
}

// handshake performs the handshake of its revision.
func (p *soakClient) handshake() bool {
	if p.modern {
		return p.do(ask{method: "server/discover", params: e2e.Obj{}, any: true})
	}
	ok := p.do(ask{method: "initialize", params: e2e.Obj{
		"protocolVersion": e2e.Revision, "capabilities": e2e.Obj{"elicitation": e2e.Obj{}}, "clientInfo": e2e.Obj{"name": "soak", "version": "1"},
	}, any: true})
	if ok {
		p.notify("notifications/initialized", e2e.Obj{})
	}
	return ok
}

// overHTTP makes the client speak Streamable HTTP.
func (p *soakClient) overHTTP(ctx context.Context, base string) (wait func()) {
	p.web = true
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	post := func(ctx context.Context, frame []byte, id string) {
		resp, err := p.exchange(ctx, http.MethodPost, base, frame)
		if err != nil {
			p.failed(id, err.Error())
			return
		}
		defer resp.Body.Close()
		if id == "" {
			return // the session may be over, and the request with it
		}
		if v := resp.Header.Get("Mcp-Session-Id"); v != "" {
			p.mu.Lock()
			p.sessions = v
			p.mu.Unlock()
		}
		err = p.read(resp, id)
		p.failed(id, fmt.Sprintf("HTTP status %d, then %v", resp.StatusCode, err))
	}
	p.send = func(frame []byte) {
		var m e2e.Message
		_ = json.Unmarshal(frame, &m)
		if m.Method == "" || m.ID == nil {
			if !p.modern {
				post(ctx, frame, "")
			}
			return
		}
		id := string(m.ID)
		mine, abort := context.WithCancel(ctx)
		p.mu.Lock()
		p.aborts[id] = abort
		p.mu.Unlock()
		all.Go(func() {
			defer abort()
			post(mine, frame, id)
		})
	}
	p.leave = cancel
	return func() {
		cancel()
		all.Wait()
	}
}

// failed fails a request whose response finished without an answer.
func (p *soakClient) failed(id, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.dropped, id)
	delete(p.aborts, id)
	if f := p.open[id]; f != nil {
		delete(p.open, id)
		f.done <- reply{none: why}
	}
}

func (p *soakClient) exchange(ctx context.Context, method, base string, frame []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, base+"/mcp", bytes.NewReader(frame))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	p.mu.Lock()
	if p.sessions != "" {
		req.Header.Set("Mcp-Session-Id", p.sessions)
		req.Header.Set("MCP-Protocol-Version", e2e.Revision)
	}
	p.mu.Unlock()
	if p.modern {
		e2e.StandardHeaders(req.Header, frame)
	}
	return p.s.http.Do(req)
}

// read handles the messages of a response.
func (p *soakClient) read(resp *http.Response, id string) error {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(resp.Body)
		if err == nil && len(bytes.TrimSpace(body)) > 0 && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
			p.receive(body, id)
		}
		return err
	}
	r := bufio.NewReaderSize(resp.Body, 32<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
			p.receive(data, id)
		}
	}
}
