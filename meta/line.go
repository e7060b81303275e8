package meta

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Scripts that run at a time. More wait in line, since each may take its memory
// and keep a processor busy.
const (
	maxScripts  = 64 // of all clients
	maxOfClient = 8  // of one, so that it leaves room for others
)

var errLine = errors.New("the line is long")

// line counts the scripts that run.
type line struct {
	mu      sync.Mutex
	running map[string]int // by client
	total   int
	freed   chan struct{} // closed when one ends; nil while nobody waits
}

// enter waits for room for a script of a client, at most for patience. leave
// gives the room back.
func (l *line) enter(ctx context.Context, client string, patience time.Duration) (leave func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLine)
	defer cancel()
	for {
		freed := l.take(client)
		if freed == nil {
			return func() { l.leave(client) }, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, errLine) {
				return nil, err
			}
			return nil, fmt.Errorf("too many scripts run already (%d of one client, %d in all); try again later", maxOfClient, maxScripts)
		}
	}
}

// take takes room, or gives a channel that is closed when there may be some.
func (l *line) take(client string) (freed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total < maxScripts && l.running[client] < maxOfClient {
		if l.running == nil {
			l.running = map[string]int{}
		}
		l.total++
		l.running[client]++
		return nil
	}
	if l.freed == nil {
		l.freed = make(chan struct{})
	}
	return l.freed
}

func (l *line) leave(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.running[client]--; l.running[client] == 0 {
		delete(l.running, client)
	}
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}
