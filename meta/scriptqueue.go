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
	maxOfGroup  = 48 // of all clients of a group, which may be one by many names
)

var errLine = errors.New("the line is long")

// line counts the scripts that run.
type line struct {
	mu      sync.Mutex
	running map[any]int // by client, and by group
	total   int
	freed   chan struct{} // closed when one ends; nil while nobody waits
}

// enter waits for room for a script of a client, at most for patience. leave
// gives the room back.
func (l *line) enter(ctx context.Context, client any, patience time.Duration) (leave func(), err error) {
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
func (l *line) take(client any) (freed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := groupOf(client)
	if l.total < maxScripts && l.running[client] < maxOfClient && (in == nil || l.running[in] < maxOfGroup) {
		if l.running == nil {
			l.running = map[any]int{}
		}
		l.total++
		l.running[client]++
		if in != nil {
			l.running[in]++
		}
		return nil
	}
	if l.freed == nil {
		l.freed = make(chan struct{})
	}
	return l.freed
}

func (l *line) leave(client any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	l.lessLocked(client)
	if in := groupOf(client); in != nil {
		l.lessLocked(in)
	}
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}

func (l *line) lessLocked(who any) {
	if l.running[who]--; l.running[who] == 0 {
		delete(l.running, who)
	}
}

// group is that of clients that have one. It is no client.
type group struct{ of any }

// groupOf is a client's group, nil for none.
func groupOf(client any) any {
	if m, ok := client.(interface{ Group() any }); ok {
		return group{m.Group()}
	}
	return nil
}
