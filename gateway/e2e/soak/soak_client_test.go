//go:build soak

package soak

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"goblin/gateway/e2e"
)

// visitor runs a client from its connection to its end.
type visitor func(s *soak, ctx context.Context, r *rand.Rand)

// visitors are the kinds of clients. Of each kind, one client runs at a time.
var visitors = map[string]visitor{
	"bridge":           func(s *soak, ctx context.Context, r *rand.Rand) { s.bridge(ctx, r, false) },
	"stateless bridge": func(s *soak, ctx context.Context, r *rand.Rand) { s.bridge(ctx, r, true) },
	"killed bridge":    (*soak).killed,
	"stalled bridge":   (*soak).stalled,
	"session":          (*soak).session,
	"lost session":     (*soak).lostSession,
	"stateless":        (*soak).stateless,
	"stalled reader":   (*soak).stalledReader,
	"half a request":   (*soak).halfRequest,
	"shell":            (*soak).shell,
}

// work sends several concurrent requests until the visit is over.
func (s *soak) work(ctx context.Context, p *soakClient) {
	var all sync.WaitGroup
	for range 1 + p.n(6) {
		r := rand.New(rand.NewPCG(s.seed, uint64(p.n(1<<30))))
		all.Go(func() {
			for range 5 + r.IntN(40) {
				if ctx.Err() != nil {
					return
				}
				if r.IntN(25) == 0 {
					f := p.begin(s.call(s.some(r), "slow"))
					s.pause(ctx, r, 60)
					p.cancel(f)
					continue
				}
				p.do(s.usual(r))
				s.pause(ctx, r, 40)
			}
		})
	}
	all.Go(func() { s.watch(ctx, p) })
	all.Wait()
}

func (s *soak) pause(ctx context.Context, r *rand.Rand, ms int) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(r.IntN(ms)) * time.Millisecond):
	}
}

// watch subscribes to some resources and unsubscribes from some of them.
func (s *soak) watch(ctx context.Context, p *soakClient) {
	var uris []string
	for range 1 + p.n(3) {
		uris = append(uris, e2e.In(s.names[p.n(len(s.names))], fmt.Sprint("mem:///watch/", p.n(4))))
	}
	p.mu.Lock()
	for _, uri := range uris {
		p.watched[uri] = true
	}
	p.mu.Unlock()
	r := rand.New(rand.NewPCG(s.seed, uint64(p.n(1<<30))))
	if p.modern {
		f := p.begin(ask{method: "subscriptions/listen", params: e2e.Obj{"notifications": e2e.Obj{"toolsListChanged": true, "resourceSubscriptions": uris}}, any: true})
		s.pause(ctx, r, 1000)
		p.cancel(f)
		return
	}
	for _, uri := range uris {
		server, _, _ := strings.Cut(strings.TrimPrefix(uri, "mcp://"), "/")
		p.do(ask{method: "resources/subscribe", params: e2e.Obj{"uri": uri}, server: server, any: true})
	}
	s.pause(ctx, r, 500)
	for _, uri := range uris[1:] {
		server, _, _ := strings.Cut(strings.TrimPrefix(uri, "mcp://"), "/")
		p.do(ask{method: "resources/unsubscribe", params: e2e.Obj{"uri": uri}, server: server, any: true})
	}
}

// pipes starts a bridge and performs the handshake. Reading stops while the gate is held.
func (s *soak) pipes(p *soakClient) (gate *sync.Mutex, end func()) {
	s.file.RLock()
	defer s.file.RUnlock()
	cmd := exec.Command(e2e.Goblin, "stdio")
	cmd.Env, cmd.Dir = s.w.Environ(), s.w.Dir
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err == nil {
		cmd.WaitDelay = time.Second
	}
	out, err2 := cmd.StdoutPipe()
	if err != nil || err2 != nil || cmd.Start() != nil {
		s.wrong("%s: does not start", p.name)
		return nil, nil
	}
	var writing sync.Mutex
	p.send = func(frame []byte) {
		writing.Lock()
		defer writing.Unlock()
		_, _ = in.Write(append(frame, '\n')) // its exit is noticed on stdout
	}
	p.leave = func() { _ = cmd.Process.Kill() }
	gate = new(sync.Mutex)
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewReaderSize(out, 64<<10)
		for {
			gate.Lock()
			gate.Unlock() //nolint:staticcheck // it only waits
			line, err := lines.ReadBytes('\n')
			if err != nil {
				p.end("stdout was closed")
				return
			}
			p.receive(line, "")
		}
	}()
	end = func() {
		_ = in.Close()
		stuck := time.AfterFunc(e2e.Patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
		<-read
		_ = cmd.Wait()
		stuck.Stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		if code := cmd.ProcessState.ExitCode(); !p.gone && code != e2e.ExitOK {
			s.wrong("%s: exit %d: %s", p.name, code, e2e.Tail(said.String(), 5000))
		}
	}
	// After the first answer the config has been read.
	if !p.handshake() {
		end()
		return nil, nil
	}
	return gate, end
}

func (s *soak) bridge(ctx context.Context, r *rand.Rand, modern bool) {
	p := s.newClient("bridge", r)
	p.modern = modern
	if gate, end := s.pipes(p); gate != nil {
		defer end()
		s.work(ctx, p)
	}
}

// killed is killed with requests in flight and its stdout full.
func (s *soak) killed(ctx context.Context, r *rand.Rand) {
	p := s.newClient("killed bridge", r)
	gate, end := s.pipes(p)
	if gate == nil {
		return
	}
	defer end()
	if p.n(2) == 0 {
		gate.Lock()
		defer gate.Unlock() // before end, which waits for the reader
	}
	var all sync.WaitGroup
	all.Go(func() {
		for range 20 {
			p.begin(s.usual(r))
		}
	})
	time.Sleep(time.Duration(p.n(400)) * time.Millisecond)
	p.abandon()
	all.Wait()
}

// stalled reads nothing for a while, and must get everything afterwards.
func (s *soak) stalled(ctx context.Context, r *rand.Rand) {
	p := s.newClient("stalled bridge", r)
	gate, end := s.pipes(p)
	if gate == nil {
		return
	}
	defer end()
	gate.Lock()
	var all sync.WaitGroup
	for range 60 {
		a := s.call(s.names[p.n(len(s.names))], "echo", e2e.Obj{"pad": strings.Repeat("x", 100_000)})
		all.Go(func() { p.do(a) })
	}
	s.pause(ctx, r, 3000)
	gate.Unlock()
	all.Wait()
}

func (s *soak) session(ctx context.Context, r *rand.Rand) {
	p := s.newClient("session", r)
	defer p.overHTTP(context.Background(), s.base)()
	if !p.handshake() {
		return
	}
	if p.n(2) == 0 {
		hearing, stop := context.WithCancel(context.Background())
		defer stop()
		go func() {
			if resp, err := p.exchange(hearing, http.MethodGet, s.base, nil); err == nil {
				_ = p.read(resp, "")
				_ = resp.Body.Close()
			}
		}()
	}
	s.work(ctx, p)
	s.forget(p.sessions, r)
}

// forget deletes a session, which may have been evicted.
func (s *soak) forget(id string, r *rand.Rand) {
	p := s.newClient("forget", r)
	p.sessions = id
	resp, err := p.exchange(context.Background(), http.MethodDelete, s.base, nil)
	if err != nil {
		s.wrong("DELETE of a session: %v", err)
		return
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 300 && resp.StatusCode != http.StatusNotFound {
		s.wrong("DELETE of a session: HTTP status %d", resp.StatusCode)
	}
}

// lostSession disconnects with requests in flight and never deletes its session.
func (s *soak) lostSession(ctx context.Context, r *rand.Rand) {
	p := s.newClient("lost session", r)
	defer p.overHTTP(context.Background(), s.base)()
	if !p.handshake() {
		return
	}
	s.mu.Lock()
	s.left = append(s.left, p.sessions)
	s.mu.Unlock()
	for range 10 {
		p.begin(s.usual(r))
	}
	s.pause(ctx, r, 500)
	p.abandon()
}

func (s *soak) stateless(ctx context.Context, r *rand.Rand) {
	p := s.newClient("stateless", r)
	p.modern = true
	defer p.overHTTP(context.Background(), s.base)()
	s.work(ctx, p)
}

// stalledReader requests a large answer over HTTP and reads nothing.
func (s *soak) stalledReader(ctx context.Context, r *rand.Rand) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		s.wrong("stalled reader: %v", err)
		return
	}
	defer conn.Close()
	a := s.call(s.some(r), "echo", e2e.Obj{"pad": strings.Repeat("x", 1<<20)})
	body := e2e.Marshal(e2e.Obj{"jsonrpc": "2.0", "id": 1, "method": a.method, "params": e2e.Merge(e2e.Obj{"_meta": e2e.Obj{
		e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{},
	}}, []e2e.Obj{a.params})})
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"MCP-Protocol-Version: %s\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\nContent-Length: %d\r\n\r\n%s",
		conn.RemoteAddr(), e2e.ModernRevision, a.params["name"], len(body), body)
	s.pause(ctx, r, 2000)
}

func (s *soak) halfRequest(ctx context.Context, r *rand.Rand) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		s.wrong("half a request: %v", err)
		return
	}
	defer conn.Close()
	whole := "POST /mcp HTTP/1.1\r\nHost: " + conn.RemoteAddr().String() + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\""
	_, _ = conn.Write([]byte(whole[:r.IntN(len(whole))]))
	s.pause(ctx, r, 3000)
}

// shell runs commands as users do.
func (s *soak) shell(ctx context.Context, r *rand.Rand) {
	args, want, server := []string{"list", "tools", "--json"}, `"`+calm+`_echo"`, calm
	if r.IntN(2) == 0 {
		server = s.some(r)
		v := s.unique()
		args, want = []string{"call", server + "_echo", "--args", `{"v":"` + v + `"}`}, server+":echo:{\"v\":\""+v+"\"}"
	}
	s.file.RLock()
	defer s.file.RUnlock()
	cmd := exec.Command(e2e.Goblin, args...)
	cmd.Env, cmd.Dir = s.w.Environ(), s.w.Dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	stuck := time.AfterFunc(lastly, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Signal(syscall.SIGQUIT)
		}
	})
	_ = cmd.Run() // the exit code has the result
	stuck.Stop()
	code := cmd.ProcessState.ExitCode()
	switch {
	case code == e2e.ExitOK && !strings.Contains(stdout.String(), want):
		s.wrong("goblin %v: no %s in %.500s", args, want, stdout.String())
	case code != e2e.ExitOK && (server == calm || !strings.Contains(stderr.String(), server)):
		s.wrong("goblin %v: exit %d: %s", args, code, e2e.Tail(stderr.String(), 3000))
	case code != e2e.ExitOK:
		s.count(fmt.Sprint(server, " shell exit ", code))
	}
	s.pause(ctx, r, 1000)
}
