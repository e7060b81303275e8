package registry

import (
	"slices"
	"sync"
	"time"
)

// latencyWindow is the number of recent answers from which a latency is computed.
const latencyWindow = 32

// ServerLatency are how long servers took for their last answers.
type ServerLatency struct {
	mu      sync.Mutex
	servers map[string]*lastAnswers
	last    *lastAnswers // of the server that answered last, or nil
}

type lastAnswers struct {
	server string
	took   [latencyWindow]time.Duration
	n      int
}

// Add notes how long a known server took.
func (l *ServerLatency) Add(server string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil || l.last.server != server {
		l.last = l.servers[server]
	}
	if a := l.last; a != nil {
		a.took[a.n%latencyWindow] = took
		a.n++
	}
}

// Track begins to count for a server, and Forget ends that.
func (l *ServerLatency) Track(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.servers == nil {
		l.servers = make(map[string]*lastAnswers)
	}
	if l.servers[server] == nil {
		l.servers[server] = &lastAnswers{server: server}
	}
}

// Forget ends counting for a server, and drops what it took.
func (l *ServerLatency) Forget(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.servers, server)
	l.last = nil
}

// Median is 0 for a server that has not answered yet.
func (l *ServerLatency) Median(server string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.servers[server]
	if a == nil || a.n == 0 {
		return 0
	}
	took := a.took
	some := took[:min(a.n, latencyWindow)]
	slices.Sort(some)
	return some[len(some)/2]
}
