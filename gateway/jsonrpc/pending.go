package jsonrpc

import "sync"

// Call is one open call of a [Pending].
type Call[T any] struct {
	ID    int64
	Info  T
	reply chan outcome // capacity one: resolving never blocks
}

type outcome struct {
	reply Reply
	err   error
}

// Done delivers the outcome once; receive from it, then call Take.
func (c *Call[T]) Done() <-chan outcome { return c.reply }

// Take unpacks what Done delivered.
func (o outcome) Take() (Reply, error) { return o.reply, o.err }

// Release gives a call back for later ones, once its outcome was received or
// Remove returned it: nothing can be delivered to it any more. The caller must
// not use it afterwards.
func (p *Pending[T]) Release(c *Call[T]) {
	var none T
	c.Info = none
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < maxFree {
		p.free = append(p.free, c)
	}
}

// maxFree bounds the calls kept for reuse.
const maxFree = 64

// Pending is the table of calls that wait for an answer. The zero value is
// ready to use. Answers nobody waits for (late, doubled, alien) are reported
// as such and change nothing.
type Pending[T any] struct {
	mu    sync.Mutex
	last  int64
	calls map[int64]*Call[T]
	free  []*Call[T]
	err   error // set once closed
}

// Add opens a call under a new id. It fails after Close, with Close's error.
func (p *Pending[T]) Add(info T) (*Call[T], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
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
	return c, nil
}

// Resolve ends the call of that raw id. It reports false when there is none.
func (p *Pending[T]) Resolve(id []byte, r Reply, err error) bool {
	n, ok := IDInt(id)
	if !ok {
		return false
	}
	return p.end(n, outcome{r, err})
}

// Fail ends the call of that id with an error. It reports false when there is
// none.
func (p *Pending[T]) Fail(id int64, err error) bool { return p.end(id, outcome{err: err}) }

func (p *Pending[T]) end(id int64, o outcome) bool {
	c := p.Remove(id)
	if c == nil {
		return false
	}
	c.reply <- o
	return true
}

// Remove forgets a call, so that a late answer to it is alien. It returns nil
// when the call has ended already.
func (p *Pending[T]) Remove(id int64) *Call[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[id]
	delete(p.calls, id)
	return c
}

// Lookup finds an open call.
func (p *Pending[T]) Lookup(id int64) (info T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.calls[id]; c != nil {
		return c.Info, true
	}
	return info, false
}

// All is what the open calls carry, by their ids, as it was when All was
// called.
func (p *Pending[T]) All() map[int64]T {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[int64]T, len(p.calls))
	for id, c := range p.calls {
		all[id] = c.Info
	}
	return all
}

// Len is the number of open calls.
func (p *Pending[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// Close ends every open call with err and refuses new ones. Only the first
// Close counts.
func (p *Pending[T]) Close(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.err = err
	for id, c := range p.calls {
		c.reply <- outcome{err: err}
		delete(p.calls, id)
	}
}
