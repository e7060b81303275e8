package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"
)

const httpRelayMode = "httprelay"

// httpCalls measures Streamable HTTP with requests and results of 1 KiB. The lower bound
// for any gateway is a handler of net/http that relays to the same server.
func (l *load) httpCalls() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	h, err := l.serveAt(func(address string) *exec.Cmd {
		return exec.Command(self, append([]string{httpRelayMode, address}, l.progs.server...)...)
	})
	if err != nil {
		return err
	}
	defer h.stop()
	floor := []*target{
		{name: "relay, HTTP/1.1", tool: "echo", load: (&web{url: h.url, client: httpClient(false)}).load, pids: []int{h.pid}},
		{name: "relay, HTTP/2", tool: "echo", load: (&web{url: h.url, client: httpClient(true)}).load, pids: []int{h.pid}},
	}
	targets, end, err := l.httpTargets()
	if err != nil {
		return err
	}
	defer end()
	targets[0].judge = judgeHTTP
	targets = append(floor, targets...)
	for _, t := range targets {
		t.padding = httpSize
		if t.judge == nil {
			t.judge = judgeNothing
		}
	}
	for _, window := range []int{1, 16, 64} {
		if err := l.compare(targets, "the least server", httpSize, window); err != nil {
			return err
		}
	}
	return nil
}

// httpSize is the size of a request's argument and of a result, in bytes.
const httpSize = 1024

func judgeHTTP(r *report, m measurement) string {
	if m.cpu == 0 { // not counted by this system, or too short
		return ""
	}
	return most(r, "CPU per call", m.cpu, 60*time.Microsecond)
}

// httpTargets starts Goblin and returns it over HTTP/1.1 and unencrypted HTTP/2.
func (l *load) httpTargets() (targets []*target, end func(), err error) {
	_, h, err := l.serve(l.progs)
	if err != nil {
		return nil, nil, err
	}
	for i, name := range []string{"Goblin, HTTP/1.1", "Goblin, HTTP/2"} {
		t, err := h.target(name, "s0_echo", i == 1)
		if err != nil {
			h.stop()
			return nil, nil, err
		}
		targets = append(targets, t)
	}
	return targets, h.stop, nil
}

// serveHTTPRelay serves HTTP at the address in the first argument. It relays each body to the
// server in the others, which must answer in order.
func serveHTTPRelay() error {
	address, server := os.Args[2], os.Args[3:]
	c, err := startClient(nil, append(server, "1")...)
	if err != nil {
		return err
	}
	defer c.Close()
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	p := &pipe{in: c.in, waiting: make(chan chan []byte, 1024)}
	go p.receive(c.out)
	s := &http.Server{Handler: p, Protocols: protocols(true, true)}
	return s.Serve(l)
}

// pipe relays requests to a server that answers in order.
type pipe struct {
	mu      sync.Mutex // held while writing to in
	in      io.Writer
	waiting chan chan []byte
}

func (p *pipe) receive(out *bufio.Reader) {
	for {
		line, err := out.ReadBytes('\n')
		if err != nil {
			return
		}
		<-p.waiting <- line
	}
}

func (p *pipe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, r.ContentLength+1)
	if _, err := io.ReadFull(r.Body, body[:r.ContentLength]); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	body[r.ContentLength] = '\n'
	answer := make(chan []byte, 1)
	p.mu.Lock()
	p.waiting <- answer
	_, err := p.in.Write(body)
	p.mu.Unlock()
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(<-answer) //nolint:errcheck // the load tool notices
}

func protocols(http1, http2 bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(http1)
	p.SetUnencryptedHTTP2(http2)
	return p
}

func httpClient(http2 bool) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, Protocols: protocols(!http2, http2)}}
}
