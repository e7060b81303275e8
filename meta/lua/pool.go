package lua

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ownMemory is what each run has without asking the [Pool], in bytes.
const ownMemory = 2 << 20

// Pool is memory that runs share. What a run needs beyond 2 MiB it takes from there,
// as it grows, and gives back in the end. When there is not enough, it waits for
// others to end; when all that have taken some wait, the last of them fails.
type Pool struct {
	limit int64

	mu      sync.Mutex
	taken   int64
	holders int // runs that have taken some
	waiting []*want
}

// share is what one run has taken. It is guarded by the pool's mu.
type share struct{ bytes int64 }

// want is a run that waits.
type want struct {
	of     *share
	bytes  int64 // more than it has
	answer chan error
}

// NewPool returns a Pool of so many bytes.
func NewPool(limit int64) *Pool { return &Pool{limit: limit} }

var errPool = errors.New("too many scripts need much memory at once")

// take takes n bytes more for a run. It waits until there are so many, at most until
// ctx ends, with its cause.
func (p *Pool) take(ctx context.Context, of *share, n int64) error {
	p.mu.Lock()
	w := &want{of: of, bytes: n, answer: make(chan error, 1)}
	p.waiting = append(p.waiting, w)
	p.settle()
	p.mu.Unlock()
	select {
	case err := <-w.answer:
		return err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return context.Cause(ctx)
	}
	return <-w.answer
}

// give gives n bytes of a run back.
func (p *Pool) give(of *share, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > 0 {
		p.add(of, -n)
		p.settle()
	}
}

// add changes what a run has taken. The lock is held.
func (p *Pool) add(of *share, n int64) {
	if of.bytes == 0 {
		p.holders++
	}
	p.taken += n
	if of.bytes += n; of.bytes == 0 {
		p.holders--
	}
}

// settle answers those who need wait no more. The lock is held.
func (p *Pool) settle() {
	p.waiting = slices.DeleteFunc(p.waiting, func(w *want) bool {
		if p.taken+w.bytes > p.limit {
			return false
		}
		p.add(w.of, w.bytes)
		w.answer <- nil
		return true
	})
	// Who holds something and waits may wait for one that does the same.
	stuck, last := 0, -1
	for i, w := range p.waiting {
		if w.of.bytes > 0 {
			stuck, last = stuck+1, i
		}
	}
	if stuck > 0 && stuck == p.holders {
		p.waiting[last].answer <- errPool
		p.waiting = slices.Delete(p.waiting, last, last+1)
	}
}

// borrow takes n bytes for an answer on its way to a run, without waiting; back
// gives them back.
func (b *budget) borrow(n int64) (back func(), err error) {
	p := b.limits.Pool
	if p == nil || n <= ownMemory/16 {
		return func() {}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken+n > p.limit {
		return nil, fmt.Errorf("no room for the answer: %w", errPool)
	}
	p.add(&b.share, n)
	return func() { p.give(&b.share, n) }, nil
}

// have makes sure that the run may hold need bytes; it waits for others if it has
// to. The error, if any, is set.
func (b *budget) have(need int64) {
	p := b.limits.Pool
	if p == nil {
		return
	}
	most := min(b.limits.Memory, max(2*need, need+ownMemory/2))
	switch extra := most - ownMemory - b.taken; {
	case need+ownMemory/4 > ownMemory+b.taken && extra > 0:
		err := p.take(b.ctx, &b.share, extra)
		switch {
		case errors.Is(err, errPool):
			b.err = &Error{Kind: Memory, Message: fmt.Sprintf("%v (%s for all, four times lua.memory); run it again later", errPool, bytesText(p.limit))}
			b.next = 0
		case err != nil:
			b.ended()
		default:
			b.taken += extra
		}
	case extra < -b.taken/2: // it needs much less than it did
		back := min(-extra, b.taken)
		b.taken -= back
		p.give(&b.share, back)
	}
}

// room is how much the run may hold, in bytes.
func (b *budget) room() int64 {
	if b.limits.Pool == nil {
		return b.limits.Memory
	}
	return min(ownMemory+b.taken, b.limits.Memory)
}

// leave gives back what the run has taken.
func (b *budget) leave() {
	if b.limits.Pool != nil {
		b.limits.Pool.give(&b.share, b.taken)
		b.taken = 0
	}
}
