// Package memory bounds what all clients and servers together make this process
// hold, so that many of them cannot do what the limits keep a single one from
// doing.
//
// It owns the rule: an [Account] knows who holds something ([Holder]) and has
// one bound for them all. Whoever makes the process hold a large thing says how
// much it grows; when as much has grown as there was room, the Account asks
// everybody what is held now. If that is over the bound, those who hold most give
// something up, the largest first, until it is not. Who holds no more than an equal
// share of the bound gives up nothing, so the small never notice the large. What a
// Holder gives up, and whom it tells, is its own: a frame that is not whole yet,
// requests in flight, or a client that does not read.
//
// Nothing is asked of traffic that is small: things up to [Free] bytes need not be
// told. They are counted when somebody looks.
//
// Counted are messages, not what Go needs besides: garbage that is not yet
// collected is as much again at worst, unless GOMEMLIMIT is set.
//
// All methods may be called from any goroutine and never block. Holders are asked
// by a goroutine of the Account, which Close waits for.
package memory

import (
	"cmp"
	"errors"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// Free is how large a thing may be, in bytes, that its holder need not tell of.
const Free = 64 << 10

// ErrFull is why something was given up.
var ErrFull = errors.New("too many bytes are held for all clients and servers together, and most of them for this one")

// Holder is who holds something for one client or server.
type Holder interface {
	// Held is how many bytes that is now. What was given up does not count, even
	// if it is not gone yet.
	Held() int64
	// Shed gives up need bytes, or more if they hang together, and returns how
	// many. It must not block. It may be called after the Holder has left.
	Shed(need int64) int64
}

// Account is the bound of all holders. A nil Account bounds nothing.
type Account struct {
	limit int64
	room  atomic.Int64 // what may grow before the next look
	work  sync.WaitGroup

	mu      sync.Mutex
	holders map[Holder]struct{}
	looking bool
	closed  bool
}

// New returns an Account of so many bytes; see [Limit].
func New(limit int64) *Account {
	a := &Account{limit: limit, holders: make(map[Holder]struct{})}
	a.room.Store(limit)
	return a
}

const (
	minLimit  = 16 << 20
	baseLimit = 1 << 30
	// frames is how many of the largest messages fit at least.
	frames = 8
)

// Limit is the bound by default, in bytes: 1 GiB, or eight of the largest
// messages if that is more, but at most half of what GOMEMLIMIT allows, or 16 MiB
// if that is less.
func Limit(frame int64) int64 {
	limit := max(baseLimit, frames*frame)
	if most := debug.SetMemoryLimit(-1); most < math.MaxInt64 {
		limit = max(min(limit, most/2), minLimit)
	}
	return limit
}

// Close waits until nobody is asked any more. Later growth is not looked at.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.work.Wait()
}

// Join makes h one of those who are asked. Who has joined already stays.
func (a *Account) Join(h Holder) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.holders[h] = struct{}{}
}

// Leave undoes Join.
func (a *Account) Leave(h Holder) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.holders, h)
}

// Grow says that n bytes more are held. It may be called with locks held that
// Holders need.
func (a *Account) Grow(n int64) {
	if a == nil || a.room.Add(-n) > 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.looking || a.closed {
		return
	}
	a.looking = true
	a.work.Go(a.look)
}

// share of the bound that may grow before the next look, however little room
// there is: looking is not free.
const share = 16

// look makes room until what is held is within the bound.
func (a *Account) look() {
	for {
		before := a.room.Load()
		held := a.relieve()
		// What has grown meanwhile may have been counted or not.
		a.room.Add(max(a.limit-held, a.limit/share) - before)
		a.mu.Lock()
		// Asked with the lock held, as who grows does: either sees the other.
		a.looking = a.room.Load() <= 0 && !a.closed
		again := a.looking
		a.mu.Unlock()
		if !again {
			return
		}
	}
}

// amount is what one holder holds.
type amount struct {
	Holder
	bytes int64
}

// relieve asks everybody, and the largest to give up what is over the bound. It
// returns what is held then.
func (a *Account) relieve() int64 {
	a.mu.Lock()
	all := make([]amount, 0, len(a.holders))
	for h := range a.holders {
		all = append(all, amount{Holder: h})
	}
	a.mu.Unlock()
	held, many := int64(0), int64(0)
	for i := range all {
		if all[i].bytes = all[i].Held(); all[i].bytes > 0 {
			held += all[i].bytes
			many++
		}
	}
	if held <= a.limit {
		return held
	}
	slices.SortFunc(all, func(x, y amount) int { return cmp.Compare(y.bytes, x.bytes) })
	for _, h := range all {
		if held <= a.limit || h.bytes <= a.limit/many {
			break
		}
		held -= h.Shed(held - a.limit)
	}
	return held
}
