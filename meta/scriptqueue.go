package meta

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Limits of concurrent scripts. Further ones wait, because each may use all its memory
// and a CPU core.
const (
	maxScripts  = 64 // of all clients
	maxOfClient = 8  // of one client
	maxOfGroup  = 48 // of a group, maybe one client with many names
)

var errQueueTimeout = errors.New("timeout in the queue")

type scriptQueue struct {
	mu       sync.Mutex
	running  map[any]int // by client, and by group
	total    int
	released chan struct{} // closed when a script ends; nil without waiters
}

// acquire waits at most patience until a client may run another script. The caller must
// call leave when it ends.
func (l *scriptQueue) acquire(ctx context.Context, client any, patience time.Duration) (leave func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errQueueTimeout)
	defer cancel()
	for {
		freed := l.tryAcquire(client)
		if freed == nil {
			return func() { l.release(client) }, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, errQueueTimeout) {
				return nil, err
			}
			return nil, fmt.Errorf("too many scripts are running (limit: %d per client, %d in total); try again later", maxOfClient, maxScripts)
		}
	}
}

// tryAcquire returns nil, or a channel that is closed when a slot may be free.
func (l *scriptQueue) tryAcquire(client any) (freed <-chan struct{}) {
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
	if l.released == nil {
		l.released = make(chan struct{})
	}
	return l.released
}

func (l *scriptQueue) release(client any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	l.decrementLocked(client)
	if in := groupOf(client); in != nil {
		l.decrementLocked(in)
	}
	if l.released != nil {
		close(l.released)
		l.released = nil
	}
}

func (l *scriptQueue) decrementLocked(who any) {
	if l.running[who]--; l.running[who] == 0 {
		delete(l.running, who)
	}
}

// clientGroup identifies a group of clients. It never equals a client.
type clientGroup struct{ id any }

func groupOf(client any) any {
	if m, ok := client.(interface{ Group() any }); ok {
		return clientGroup{m.Group()}
	}
	return nil
}
