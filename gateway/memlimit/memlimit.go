// Package memlimit bounds the memory that clients and servers make the process hold.
//
// Each client or server is an [Owner]. Its large messages, queues and bodies are
// [Reservation]s in one [Pool]. A reservation that does not fit is refused, and the
// caller reports that to the client. Bytes that are held already are never taken away.
//
// # Policy
//
// An owner may reserve n more bytes if it then holds at most a third of what is still
// free. So a single owner gets a quarter of the pool, and k owners that take all they
// can get 1/(k+3) of it each. The rule has two purposes. A new owner always finds room,
// however many others are greedy. A single owner can use a large part of an idle pool.
// Fixed shares have one of the two only: four owners use up quarters, and small
// shares refuse a large message although the pool is empty.
//
// Objects of up to [FreeSize] bytes are not counted. Neither is garbage, which at worst
// doubles the memory of the process, unless GOMEMLIMIT is set.
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

// FreeSize is the largest object that is not counted, in bytes.
const FreeSize = 64 << 10

// ErrFull is the reason for a refused reservation.
var ErrFull = errors.New("too many bytes are held for all clients and servers together")

// Pool is the memory that all owners share. A nil Pool has no limit.
type Pool struct {
	limit int64

	mu   sync.Mutex
	held int64
}

// New returns a Pool of limit bytes; see [Limit].
func New(limit int64) *Pool { return &Pool{limit: limit} }

const (
	minLimit  = 16 << 20
	baseLimit = 1 << 30
	// frames is the number of largest messages that fit at least.
	frames = 8
)

// Limit returns the default limit in bytes for messages of up to frame bytes. It is
// 1 GiB or the size of eight such messages, whichever is larger. GOMEMLIMIT lowers it
// to half of its value, but not below 16 MiB.
func Limit(frame int64) int64 {
	limit := max(baseLimit, frames*frame)
	if most := debug.SetMemoryLimit(-1); most < math.MaxInt64 {
		limit = max(min(limit, most/2), minLimit)
	}
	return limit
}

// IsShort reports whether more than half of the pool is taken. Connections that make no
// progress should be closed then.
func (p *Pool) IsShort() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held > p.limit/2
}

// Owner is a client, a server, or a request that is counted by itself. A nil Owner has
// no limit.
type Owner struct {
	pool *Pool

	// Guarded by pool.mu.
	held     int64
	released bool
}

// NewOwner returns an owner that holds nothing.
func (p *Pool) NewOwner() *Owner {
	if p == nil {
		return nil
	}
	return &Owner{pool: p}
}

// Pool returns the pool of the owner; nil for a nil Owner.
func (o *Owner) Pool() *Pool {
	if o == nil {
		return nil
	}
	return o.pool
}

// CanReserve reports whether n more bytes would fit at the moment.
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
	free := o.pool.limit - o.pool.held - n
	return o.held+n <= free/3
}

// Release returns all bytes of the owner to the pool. Its reservations count nothing from
// then on.
func (o *Owner) Release() {
	if o == nil {
		return
	}
	o.pool.mu.Lock()
	defer o.pool.mu.Unlock()
	o.pool.held -= o.held
	o.held, o.released = 0, true
}

// Reservation is the size of one object of an owner. The zero Reservation has no owner
// and no limit.
type Reservation struct {
	owner *Owner
	held  atomic.Int64 // changed under owner.pool.mu
}

// SetOwner sets the owner of a reservation that holds nothing yet.
func (r *Reservation) SetOwner(o *Owner) { r.owner = o }

// IsCounted reports whether the reservation takes a part of the pool.
func (r *Reservation) IsCounted() bool { return r.held.Load() > 0 }

// Resize sets the size to n bytes. It reports false and changes nothing if that does not
// fit.
func (r *Reservation) Resize(n int64) bool {
	if n <= FreeSize {
		n = 0
	}
	if r.owner == nil || n == r.held.Load() {
		return true
	}
	pool := r.owner.pool
	pool.mu.Lock()
	defer pool.mu.Unlock()
	more := n - r.held.Load()
	switch {
	case r.owner.released:
		r.held.Store(0)
		return true
	case more > 0 && !r.owner.canReserveLocked(more):
		return false
	}
	r.held.Store(n)
	r.owner.held += more
	pool.held += more
	return true
}
