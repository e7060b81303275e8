package registry

import (
	"slices"
	"sync"
	"time"
)

// keptLatencies is how many of a server's last answers its latency is the median of.
const keptLatencies = 32

// latencies are how long servers took for their last answers.
type latencies struct {
	mu      sync.Mutex
	servers map[string]*lastAnswers
}

type lastAnswers struct {
	took [keptLatencies]time.Duration
	n    int
}

// Answered notes how long a known server took for an answer: of the last 32 the
// median is its [ServerState.Latency]. Requests in the traffic journal count by
// themselves, those excepted that waited for the client.
func (r *Registry) Answered(server string, took time.Duration) { r.latencies.add(server, took) }

func (l *latencies) add(server string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.servers[server]; a != nil {
		a.took[a.n%keptLatencies] = took
		a.n++
	}
}

// know begins to count for a server, and forget ends that.
func (l *latencies) know(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.servers == nil {
		l.servers = make(map[string]*lastAnswers)
	}
	if l.servers[server] == nil {
		l.servers[server] = &lastAnswers{}
	}
}

func (l *latencies) forget(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.servers, server)
}

// median is 0 for a server that has not answered yet.
func (l *latencies) median(server string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.servers[server]
	if a == nil || a.n == 0 {
		return 0
	}
	took := a.took
	some := took[:min(a.n, keptLatencies)]
	slices.Sort(some)
	return some[len(some)/2]
}
