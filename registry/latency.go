package registry

import (
	"slices"
	"sync"
	"time"
)

const latencyWindow = 32

// ServerTime returns the time that the server needed for an answer, without the wait for
// its start. measured is false for requests whose duration has other reasons: failed,
// cancelled and abandoned requests, requests that waited for the user, and requests that
// rules stopped, delayed or answered.
func (r *TrafficRecord) ServerTime() (took time.Duration, measured bool) {
	if r.Direction != ToServer || r.Status != "success" && r.Status != StatusToolError || r.UserAsked || r.UserWait > 0 || len(r.Events) > 0 {
		return 0, false
	}
	return max(r.Duration-r.StartWait, 0), true
}

// ServerLatency stores the durations of the last answers of each server.
type ServerLatency struct {
	mu      sync.Mutex
	servers map[string]*lastAnswers
	last    *lastAnswers
}

type lastAnswers struct {
	server string
	took   [latencyWindow]time.Duration
	n      int
}

// Add records the duration of an answer of a tracked server.
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

// Track starts tracking a server until Forget.
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

// Forget stops tracking a server and drops its durations.
func (l *ServerLatency) Forget(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.servers, server)
	l.last = nil
}

// Median returns the median duration, or 0 before the first answer.
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
