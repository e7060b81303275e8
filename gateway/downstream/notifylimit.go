package downstream

import (
	"sync"
	"time"
)

// Notifications without a key, such as log messages, are dropped while a client reads too
// slowly. Otherwise a busy server would close the client's session.
const (
	// All are dropped above 1/notifyLimitDivisor of limits.unsent, those of one server
	// above 1/serverLimitDivisor. Sending resumes below 1/resumeDivisor of both.
	notifyLimitDivisor = 4
	serverLimitDivisor = 16
	resumeDivisor      = 4
	// missedReportInterval is the minimum time between reports for a server.
	missedReportInterval = time.Second
)

// dropCounters counts dropped notifications by server.
type dropCounters struct {
	mu       sync.Mutex
	byServer map[string]*dropCounter
}

type dropCounter struct {
	dropping   bool
	dropped    uint64 // since the last report
	reportedAt time.Time
}

// dropNotification reports whether to drop a notification without a key. server is "" for
// Goblin's own.
func (s *Session) dropNotification(server string, out sender) bool {
	most := s.opt.Limits.Unsent / notifyLimitDivisor
	unsent := out.unsentBytes()
	if s.stateless { // each request is counted separately
		return unsent > most
	}
	own, mostOwn := int64(0), s.opt.Limits.Unsent/serverLimitDivisor
	if server != "" {
		own = s.sender.laneBytes(server)
	}
	unsent = max(unsent, s.sender.unsentBytes())
	drop, missed := s.drops.decide(server, unsent > most || own > mostOwn,
		unsent <= most/resumeDivisor && own <= mostOwn/resumeDivisor)
	if missed > 0 && s.opt.OnMissed != nil {
		s.opt.OnMissed(s, server, missed)
	}
	return drop
}

// decide reports whether to drop a notification. over means that too much is unsent,
// under that little is. missed is the number of earlier drops to report now.
func (t *dropCounters) decide(server string, over, under bool) (drop bool, missed uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byServer[server]
	if c == nil {
		if !over {
			return false, 0
		}
		c = new(dropCounter)
		if t.byServer == nil {
			t.byServer = make(map[string]*dropCounter)
		}
		t.byServer[server] = c
	}
	c.dropping = over || c.dropping && !under
	if c.dropping {
		c.dropped++
		return true, 0
	}
	if c.dropped > 0 && time.Since(c.reportedAt) >= missedReportInterval {
		missed, c.dropped, c.reportedAt = c.dropped, 0, time.Now()
	}
	return false, missed
}
