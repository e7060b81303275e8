package jsonrpc

import (
	"sync"
	"sync/atomic"

	"goblin/registry/rawjson"
)

// Call is an open call of a [Pending].
type Call[T any] struct {
	ID    int64
	Info  T
	reply chan outcome // capacity one: resolving never blocks
	async bool         // the outcome goes to Pending.OnDone instead
}

type outcome struct {
	reply Reply
	err   error
}

// Done delivers the outcome once. Call Take on it.
func (c *Call[T]) Done() <-chan outcome { return c.reply }

// Take returns the reply or error.
func (o outcome) Take() (Reply, error) { return o.reply, o.err }

// Release returns a call to the pool. Its outcome must have been received, or Remove have
// returned it.
func (p *Pending[T]) Release(c *Call[T]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.releaseLocked(c)
}

func (p *Pending[T]) releaseLocked(c *Call[T]) {
	var none T
	c.Info, c.async = none, false
	if len(p.free) < maxFree {
		p.free = append(p.free, c)
	}
}

const maxFree = 64

// Pending is the table of calls that wait for an answer. Its zero value is ready to use.
// Late, duplicate and unknown answers have no effect.
type Pending[T any] struct {
	// OnDone receives the outcomes of AddAsync calls, without a lock, in the goroutine
	// that finishes them. Set it before the first call.
	OnDone func(info T, id int64, reply Reply, err error)

	mu    sync.Mutex
	last  int64
	calls map[int64]*Call[T]
	free  []*Call[T]
	err   error        // set once closed
	open  atomic.Int64 // len(calls)
}

// Add opens a call, or returns the error of Close.
func (p *Pending[T]) Add(info T) (*Call[T], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addLocked(info)
}

// AddAsync opens a call whose outcome goes to OnDone, once.
func (p *Pending[T]) AddAsync(info T) (id int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.addLocked(info)
	if err != nil {
		return 0, err
	}
	c.async = true
	return c.ID, nil
}

// RemoveAsync removes an AddAsync call without OnDone. ok is false if it has finished.
func (p *Pending[T]) RemoveAsync(id int64) (info T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[id]
	if c == nil || !c.async {
		return info, false
	}
	info = c.Info
	delete(p.calls, id)
	p.open.Store(int64(len(p.calls)))
	p.releaseLocked(c)
	return info, true
}

func (p *Pending[T]) addLocked(info T) (*Call[T], error) {
	if p.err != nil {
		return nil, p.err
	}
	var c *Call[T]
	if last := len(p.free) - 1; last >= 0 {
		c, p.free = p.free[last], p.free[:last]
	} else {
		c = &Call[T]{reply: make(chan outcome, 1)}
	}
	c.Info = info
	if p.calls == nil {
		p.calls = make(map[int64]*Call[T])
	}
	p.last++
	c.ID = p.last
	p.calls[c.ID] = c
	p.open.Store(int64(len(p.calls)))
	return c, nil
}

// Resolve finishes a call and reports whether it was open.
func (p *Pending[T]) Resolve(id []byte, r Reply, err error) bool {
	n, ok := rawjson.Int(id)
	if !ok {
		return false
	}
	return p.finish(n, outcome{r, err})
}

// Fail finishes a call with an error and reports whether it was open.
func (p *Pending[T]) Fail(id int64, err error) bool { return p.finish(id, outcome{err: err}) }

func (p *Pending[T]) finish(id int64, o outcome) bool {
	p.mu.Lock()
	c := p.calls[id]
	if c == nil {
		p.mu.Unlock()
		return false
	}
	delete(p.calls, id)
	p.open.Store(int64(len(p.calls)))
	if !c.async {
		p.mu.Unlock()
		c.reply <- o
		return true
	}
	info := c.Info
	p.releaseLocked(c)
	p.mu.Unlock()
	p.OnDone(info, id, o.reply, o.err)
	return true
}

// Remove removes a call, or returns nil if it has finished.
func (p *Pending[T]) Remove(id int64) *Call[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[id]
	delete(p.calls, id)
	p.open.Store(int64(len(p.calls)))
	return c
}

// Lookup returns the value of an open call.
func (p *Pending[T]) Lookup(id int64) (info T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.calls[id]; c != nil {
		return c.Info, true
	}
	return info, false
}

// All returns a copy of the open calls' values by id.
func (p *Pending[T]) All() map[int64]T {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[int64]T, len(p.calls))
	for id, c := range p.calls {
		all[id] = c.Info
	}
	return all
}

// Len returns the number of open calls.
func (p *Pending[T]) Len() int { return int(p.open.Load()) }

// Close fails all open and later calls with the first err.
func (p *Pending[T]) Close(err error) {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return
	}
	p.err = err
	var then []*Call[T]
	for id, c := range p.calls {
		if c.async {
			then = append(then, c)
		} else {
			c.reply <- outcome{err: err}
		}
		delete(p.calls, id)
	}
	p.open.Store(0)
	p.mu.Unlock()
	for _, c := range then {
		p.OnDone(c.Info, c.ID, Reply{}, err)
	}
}
