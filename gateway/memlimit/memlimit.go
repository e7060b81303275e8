// Package memlimit limits the memory that clients and servers make the process hold.
//
// Each client or server is an [Owner]. Its large messages, queues and bodies are
// [Reservation]s in one [Pool]. Reservations that don't fit are refused; reserved bytes
// are never taken away.
//
// # Policy
//
// After a reservation, an owner may hold at most a third of the free bytes. A single
// owner gets up to a quarter of the pool, each of k greedy owners 1/(k+3). So a new owner
// always finds space, and a single one can use much of an idle pool. Fixed shares provide
// only one of the two.
//
// Objects of up to [FreeSize] bytes are not counted. Neither is garbage, which at most
// doubles the process unless GOMEMLIMIT is set.
//
// All methods are safe for concurrent use, also with locks held, and never block.
package memlimit

import (
	"errors"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// FreeSize is the maximum size of uncounted objects, in bytes.
const FreeSize = 64 << 10

// ErrFull is the error of a refused reservation.
var ErrFull = errors.New("memory limit for all clients and servers reached")

// Pool is the common memory. A nil Pool has no limit.
type Pool struct {
	limit int64

	mu       sync.Mutex
	reserved int64
}

// New returns a Pool of limit bytes; see [Limit].
func New(limit int64) *Pool { return &Pool{limit: limit} }

const (
	minLimit  = 16 << 20
	baseLimit = 1 << 30
	frames    = 8
)

// Limit returns the default limit in bytes: 1 GiB or eight frames, whichever is larger.
// GOMEMLIMIT lowers it to half of its value, but not below 16 MiB.
func Limit(frame int64) int64 {
	limit := max(baseLimit, frames*frame)
	if most := debug.SetMemoryLimit(-1); most < math.MaxInt64 {
		limit = max(min(limit, most/2), minLimit)
	}
	return limit
}

// IsShort reports whether more than half is reserved. Connections without progress should
// then be closed.
func (p *Pool) IsShort() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reserved > p.limit/2
}

// Owner is a client, server or separately counted request. A nil Owner has no limit.
type Owner struct {
	pool *Pool

	// Guarded by pool.mu.
	reserved int64
	released bool
}

// NewOwner returns an owner that holds nothing.
func (p *Pool) NewOwner() *Owner {
	if p == nil {
		return nil
	}
	return &Owner{pool: p}
}

// Pool returns the owner's pool, which may be nil.
func (o *Owner) Pool() *Pool {
	if o == nil {
		return nil
	}
	return o.pool
}

// CanReserve reports whether n more bytes fit now.
func (o *Owner) CanReserve(n int) bool {
	if o == nil || n <= FreeSize {
		return true
	}
	o.pool.mu.Lock()
	defer o.pool.mu.Unlock()
	return o.canReserveLocked(int64(n))
}

// canReserveLocked applies the policy of the package.
func (o *Owner) canReserveLocked(n int64) bool {
	free := o.pool.limit - o.pool.reserved - n
	return o.reserved+n <= free/3
}

// Release returns all bytes of the owner. Its reservations no longer count.
func (o *Owner) Release() {
	if o == nil {
		return
	}
	o.pool.mu.Lock()
	defer o.pool.mu.Unlock()
	o.pool.reserved -= o.reserved
	o.reserved, o.released = 0, true
}

// Reservation is an object of an owner. The zero value has no owner and no limit.
type Reservation struct {
	owner    *Owner
	reserved atomic.Int64 // changed under owner.pool.mu
}

// SetOwner sets the owner of an empty reservation.
func (r *Reservation) SetOwner(o *Owner) { r.owner = o }

// IsCounted reports whether the reservation takes part of the pool.
func (r *Reservation) IsCounted() bool { return r.reserved.Load() > 0 }

// Resize sets the size to n bytes. If that does not fit, it changes nothing and returns
// false.
func (r *Reservation) Resize(n int64) bool {
	if n <= FreeSize {
		n = 0
	}
	if r.owner == nil || n == r.reserved.Load() {
		return true
	}
	pool := r.owner.pool
	pool.mu.Lock()
	defer pool.mu.Unlock()
	more := n - r.reserved.Load()
	switch {
	case r.owner.released:
		r.reserved.Store(0)
		return true
	case more > 0 && !r.owner.canReserveLocked(more):
		return false
	}
	r.reserved.Store(n)
	r.owner.reserved += more
	pool.reserved += more
	return true
}
