package timing

import (
	"context"
	"sync"
	"sync/atomic"
)

// FetchGate tracks whether one list of a connection is current. Create one with
// [NewFetchGate]. Calls wait in [FetchGate.Await] for a fetch that started after the last
// change. A nil FetchGate has no waiting calls.
type FetchGate struct {
	current atomic.Bool

	mu      sync.Mutex
	wanted  uint64 // number of the last required fetch
	done    uint64 // number of the last finished fetch
	coming  bool   // the required fetch runs or will start
	err     error
	digests map[string]string // of the last list's definitions, by name
	changed chan struct{}     // closed and replaced when done changes
}

// NewFetchGate returns a FetchGate for a list that will be fetched without a request.
func NewFetchGate() *FetchGate {
	return &FetchGate{wanted: 1, coming: true, changed: make(chan struct{})}
}

// Invalidate makes later calls wait for a fetch that starts from now on. The caller can
// start it, and calls Expect then. Otherwise the next Await does.
func (c *FetchGate) Invalidate() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.Store(false)
	c.wanted++
	c.coming = false
}

// Expect records that a fetch will start.
func (c *FetchGate) Expect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.coming = true
}

// IsCurrent reports whether calls need neither Await nor Digest.
func (c *FetchGate) IsCurrent() bool { return c.current.Load() }

// Compare makes IsCurrent false until the next fetch, so that calls use Digest. Fetches
// must be requested from now on.
func (c *FetchGate) Compare() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.Store(false)
	c.coming = false
	close(c.changed)
	c.changed = make(chan struct{})
}

// Begin returns the number of a fetch that starts now.
func (c *FetchGate) Begin() uint64 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted
}

// End records the result of a fetch: digests of definitions by name, or an error.
func (c *FetchGate) End(fetch uint64, digests map[string]string, err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(fetch, digests, err)
	c.current.Store(err == nil && c.done == c.wanted)
}

// EndCompared is End without making IsCurrent true, so that calls use Digest.
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

// HasWaiters reports whether calls may wait for a fetch.
func (c *FetchGate) HasWaiters() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done < c.wanted
}

// Digest returns the digest of a definition in the last list, or "".
func (c *FetchGate) Digest(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.digests[name]
}

// Await waits for the required fetch and returns its error. It returns nil when over is
// closed, and the cause of ctx when ctx is done. If the last fetch failed or none is
// coming, Await calls again, which must start one.
func (c *FetchGate) Await(ctx context.Context, over <-chan struct{}, again func()) error {
	if c.current.Load() {
		return nil
	}
	c.mu.Lock()
	if c.done == c.wanted && c.err != nil {
		c.wanted++
		c.coming = false
	}
	needed := c.wanted
	c.mu.Unlock()
	for {
		c.mu.Lock()
		done, err, changed := c.done, c.err, c.changed
		missing := done < needed && !c.coming
		c.coming = c.coming || missing
		c.mu.Unlock()
		if done >= needed {
			return err
		}
		if missing {
			again()
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
