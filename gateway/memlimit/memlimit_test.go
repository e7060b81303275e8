package memlimit_test

import (
	"math"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/memlimit"
)

const unit = 1 << 20

// claim returns a reservation of a new owner.
func claim(a *memlimit.Pool) *memlimit.Reservation {
	c := &memlimit.Reservation{}
	c.SetOwner(a.NewOwner())
	return c
}

// greedy grows a reservation in small steps until it is refused, and returns its size.
func greedy(c *memlimit.Reservation) (taken int64) {
	for c.Resize(taken + memlimit.FreeSize + 1) {
		taken += memlimit.FreeSize + 1
	}
	return taken
}

func TestEachOwnerGetsAShareAndLeavesMore(t *testing.T) {
	a := memlimit.New(64 * unit)
	for _, share := range []float64{16, 12, 9, 6.75} {
		got := greedy(claim(a))
		require.InDelta(t, share*unit, got, unit)
	}
	require.True(t, a.IsShort())
	small := claim(a)
	require.True(t, small.Resize(2*unit), "new owners still get memory")
	require.False(t, claim(a).Resize(6*unit))
}

func TestOwnersThatReserveSideBySideShareAlike(t *testing.T) {
	a := memlimit.New(66 * unit)
	claims := []*memlimit.Reservation{claim(a), claim(a), claim(a)}
	for n := int64(unit); claims[0].Resize(n) && claims[1].Resize(n) && claims[2].Resize(n); n += unit {
		require.LessOrEqual(t, n, int64(11*unit))
	}
	require.True(t, a.NewOwner().CanReserve(8*unit))
}

func TestReservationsOfOneOwnerCountTogether(t *testing.T) {
	a := memlimit.New(28 * unit)
	p := a.NewOwner()
	var one, other memlimit.Reservation
	one.SetOwner(p)
	other.SetOwner(p)
	require.True(t, one.Resize(3*unit))
	require.False(t, other.Resize(5*unit))
	require.True(t, other.Resize(4*unit))
	require.True(t, one.Resize(unit))
	require.True(t, other.Resize(4*unit))
}

func TestReturnedBytesCanBeReservedAgain(t *testing.T) {
	a := memlimit.New(40 * unit)
	c := claim(a)
	for range 10 {
		require.True(t, c.Resize(10*unit))
		require.False(t, a.NewOwner().CanReserve(8*unit))
		require.True(t, c.Resize(memlimit.FreeSize), "small sizes are not counted")
		require.False(t, c.IsCounted())
		require.True(t, a.NewOwner().CanReserve(10*unit))
	}
}

func TestReleasingAnOwnerReturnsItsBytes(t *testing.T) {
	a := memlimit.New(40 * unit)
	p := a.NewOwner()
	var c memlimit.Reservation
	c.SetOwner(p)
	require.True(t, c.Resize(9*unit))
	p.Release()
	require.True(t, c.Resize(0))
	require.True(t, c.Resize(20*unit), "no longer counted")
	require.True(t, claim(a).Resize(10*unit))
}

func TestANilPoolHasNoLimit(t *testing.T) {
	var a *memlimit.Pool
	p := a.NewOwner()
	require.True(t, p.CanReserve(math.MaxInt))
	c := claim(a)
	require.True(t, c.Resize(math.MaxInt64))
	require.False(t, a.IsShort() || p.Pool().IsShort())
	p.Release()
}

func TestConcurrentReservationsAreAllReturned(t *testing.T) {
	a := memlimit.New(4 * unit)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				c := claim(a)
				c.Resize(unit / 2)
				c.Resize(unit)
				c.Resize(0)
			}
		})
	}
	all.Wait()
	require.True(t, claim(a).Resize(unit))
	require.False(t, a.IsShort())
}

func TestLimitFollowsTheLargestMessageAndTheRuntimesOwn(t *testing.T) {
	old := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(old)
	require.Equal(t, int64(1<<30), memlimit.Limit(64<<20))
	require.Equal(t, int64(2<<30), memlimit.Limit(256<<20))
	debug.SetMemoryLimit(512 << 20)
	require.Equal(t, int64(256<<20), memlimit.Limit(256<<20))
	debug.SetMemoryLimit(1)
	require.Equal(t, int64(16<<20), memlimit.Limit(256<<20))
}
