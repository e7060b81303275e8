package timing

import (
	"context"
	"sync"
	"sync/atomic"
)

// FetchGate tracks whether one list of a connection is current. Make one with [NewFetchGate].
// Calls wait in [FetchGate.Await] for the end of a fetch that began after the last change.
// All methods may be called from any goroutine, and only Await blocks. A nil FetchGate has no
// calls that wait for it.
type FetchGate struct {
	current atomic.Bool

	mu      sync.Mutex
	wanted  uint64            // number of the last fetch that is needed
	done    uint64            // number of the last fetch that ended
	err     error             // why that fetch failed
	digests map[string]string // of the definitions in the last list, by name
	changed chan struct{}     // closed and replaced when done changes
}

// NewFetchGate returns a FetchGate of a list that was not fetched yet.
func NewFetchGate() *FetchGate { return &FetchGate{wanted: 1, changed: make(chan struct{})} }

// Invalidate makes later calls wait for a fetch that begins from now on.
func (c *FetchGate) Invalidate() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.Store(false)
	c.wanted++
}

// IsCurrent reports whether calls need neither Await nor Digest.
func (c *FetchGate) IsCurrent() bool { return c.current.Load() }

// Compare makes IsCurrent false until the next fetch: calls need Digest.
func (c *FetchGate) Compare() { c.current.Store(false) }

// Begin returns the number of a fetch that begins now.
func (c *FetchGate) Begin() uint64 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted
}

// End records the result of a fetch: the digests of its definitions by name, or why it failed.
func (c *FetchGate) End(fetch uint64, digests map[string]string, err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(fetch, digests, err)
	c.current.Store(err == nil && c.done == c.wanted)
}

// EndCompared is End after Compare, which stays in effect: calls need Digest.
func (c *FetchGate) EndCompared(fetch uint64, digests map[string]string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(fetch, digests, err)
}

func (c *FetchGate) endLocked(fetch uint64, digests map[string]string, err error) {
	c.done, c.digests, c.err = fetch, digests, err
	close(c.changed)
	c.changed = make(chan struct{})
}

// HasWaiters reports whether calls wait for a fetch.
func (c *FetchGate) HasWaiters() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done < c.wanted
}

// Digest returns the digest of a definition in the last list, "" if the list lacks it.
func (c *FetchGate) Digest(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.digests[name]
}

// Await waits for the end of the fetch that is needed now, and returns why that failed. It
// returns nil when over is closed, and the cause of ctx when ctx ends. If the last fetch
// failed, Await calls again, which has to cause another one.
func (c *FetchGate) Await(ctx context.Context, over <-chan struct{}, again func()) error {
	if c.current.Load() {
		return nil
	}
	c.mu.Lock()
	failed := c.done == c.wanted && c.err != nil
	if failed {
		c.wanted++
	}
	needed := c.wanted
	c.mu.Unlock()
	if failed {
		again()
	}
	for {
		c.mu.Lock()
		done, err, changed := c.done, c.err, c.changed
		c.mu.Unlock()
		if done >= needed {
			return err
		}
		select {
		case <-changed:
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
