// Package memlimit bounds what all clients and servers together make this process
// hold, so that many of them cannot do what the limits keep a single one from
// doing.
//
// It owns the rule: an [Account] has a bound, and each [Party], a client or server,
// may hold a third of what it leaves. So one alone gets a quarter of the bound, n
// that take all they can get 1/(n+3) each, and there is room for the next party.
// What there is no room for is refused, and its owner tells the client;
// nothing is taken away from parties that hold something already. A [Claim] is what one
// thing takes: an unfinished message, a queue, a body.
//
// Things of up to [Free] bytes are not counted. Counted are messages, not what Go
// needs besides: garbage that is not yet collected is as much again at worst, unless
// GOMEMLIMIT is set.
//
// It knows nothing of messages. All methods may be called from any goroutine, with
// any locks held, and never block.
package memlimit

import (
	"errors"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Free is how large a thing may be, in bytes, without being counted.
const Free = 64 << 10

// ErrFull is why something was refused.
var ErrFull = errors.New("too many bytes are held for all clients and servers together")

// Account is the bound of all parties. A nil Account bounds nothing.
type Account struct {
	limit int64

	mu   sync.Mutex
	held int64
}

// New returns an Account of so many bytes; see [Limit].
func New(limit int64) *Account { return &Account{limit: limit} }

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

// Short reports whether more than half of the bound is taken: then it is time to
// give up what makes no progress.
func (a *Account) Short() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held > a.limit/2
}

// Party is a client or server, or a request that counts for itself. A nil Party may
// hold anything.
type Party struct {
	of *Account

	// Guarded by of.mu.
	held int64
	left bool
}

// Party returns a new one.
func (a *Account) Party() *Party {
	if a == nil {
		return nil
	}
	return &Party{of: a}
}

// Account returns what the party shares with all others; nil for a nil Party.
func (p *Party) Account() *Account {
	if p == nil {
		return nil
	}
	return p.of
}

// Room reports whether the party may hold n bytes more just now.
func (p *Party) Room(n int) bool {
	if p == nil || n <= Free {
		return true
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.roomLocked(int64(n))
}

func (p *Party) roomLocked(n int64) bool { return p.held+n <= (p.of.limit-p.of.held-n)/3 }

// Leave gives back all that the party holds. Its claims count nothing any more.
func (p *Party) Leave() {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.held -= p.held
	p.held, p.left = 0, true
}

// Claim counts the bytes of one thing that a party holds. The zero Claim counts nothing.
type Claim struct {
	of   *Party
	held atomic.Int64 // changed under of.of.mu
}

// Of makes the claim, which is zero, the party's.
func (c *Claim) Of(p *Party) { c.of = p }

// Counts reports whether the thing takes anything that is counted.
func (c *Claim) Counts() bool { return c.held.Load() > 0 }

// Resize makes n bytes what the thing takes. It reports false, and changes nothing,
// when there is no room for as much.
func (c *Claim) Resize(n int64) bool {
	if n <= Free {
		n = 0
	}
	if c.of == nil || n == c.held.Load() {
		return true
	}
	a := c.of.of
	a.mu.Lock()
	defer a.mu.Unlock()
	more := n - c.held.Load()
	switch {
	case c.of.left:
		c.held.Store(0)
		return true
	case more > 0 && !c.of.roomLocked(more):
		return false
	}
	c.held.Store(n)
	c.of.held += more
	a.held += more
	return true
}
