package memory_test

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/memory"
)

// party holds what the test says and gives all of it up.
type party struct {
	mu    sync.Mutex
	held  int64
	asked []int64 // what it was to give up
	stays bool    // it does not
}

func (p *party) Held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

func (p *party) Shed(need int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, need)
	if p.stays {
		return 0
	}
	n := p.held
	p.held = 0
	return n
}

// grow makes the party hold n bytes more, and waits for what comes of that.
func (p *party) grow(a *memory.Account, n int64) {
	p.mu.Lock()
	p.held += n
	p.mu.Unlock()
	a.Grow(n)
	synctest.Wait()
}

func account(limit int64, parties ...*party) *memory.Account {
	a := memory.New(limit)
	for _, p := range parties {
		a.Join(p)
	}
	return a
}

func TestWhoHoldsMostGivesUpFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large, larger, small := &party{}, &party{}, &party{}
		a := account(1000, large, larger, small)
		large.grow(a, 300)
		larger.grow(a, 600)
		require.Empty(t, larger.asked, "there is room")
		small.grow(a, 150)
		require.Equal(t, []int64{50}, larger.asked)
		require.Empty(t, large.asked)
		small.grow(a, 900)
		require.Equal(t, []int64{350}, small.asked, "who was small before may be the largest now")
		require.Equal(t, int64(300), large.Held())
	})
}

func TestOthersGiveUpForWhoCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stubborn, other, small := &party{stays: true}, &party{}, &party{}
		a := account(1000, stubborn, other, small)
		stubborn.grow(a, 500)
		small.grow(a, 300)
		other.grow(a, 400)
		require.Equal(t, []int64{200}, stubborn.asked)
		require.Equal(t, []int64{200}, other.asked)
		// Nothing is left to be given up but by those who have their share: that
		// must neither reach them nor turn in circles.
		stubborn.grow(a, 500)
		require.Equal(t, int64(1000), stubborn.Held())
		require.Empty(t, small.asked)
	})
}

func TestWhatWasGivenBackIsRoomAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &party{}
		a := account(1000, p)
		for range 100 {
			p.grow(a, 400)
			p.held = 0
		}
		require.Empty(t, p.asked)
	})
}

// watched notes what was last said of it when it was asked.
type watched struct{ said, asked atomic.Int64 }

func (w *watched) Held() int64 { w.asked.Store(w.said.Load()); return 0 }

func (w *watched) Shed(int64) int64 { return 0 }

// What grows just when a look ends gets the next one.
func TestNoGrowthIsOverlooked(t *testing.T) {
	w := &watched{}
	a := memory.New(16)
	defer a.Close()
	a.Join(w)
	var others sync.WaitGroup
	defer others.Wait()
	ended := make(chan struct{})
	defer close(ended)
	others.Go(func() { // they keep the end of each look waiting
		for h := (&party{}); ; a.Leave(h) {
			select {
			case <-ended:
				return
			default:
				a.Join(h)
			}
		}
	})
	for i := range int64(5000) {
		w.said.Store(i + 1)
		a.Grow(20)
		for start := time.Now(); w.asked.Load() <= i; runtime.Gosched() {
			require.Less(t, time.Since(start), 5*time.Second, "nobody looked at growth %d", i)
		}
	}
}

func TestWhoHasLeftIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, p := &party{}, &party{}
		a := account(1000, gone, p)
		gone.grow(a, 900)
		a.Leave(gone)
		p.grow(a, 900)
		require.Empty(t, gone.asked)
		require.Empty(t, p.asked)
		a.Close()
		p.grow(a, 900)
		require.Empty(t, p.asked, "it is closed")
	})
}

func TestNoAccountBoundsNothing(t *testing.T) {
	var a *memory.Account
	a.Join(&party{})
	a.Grow(math.MaxInt64)
	a.Leave(&party{})
	a.Close()
}

func TestStockGivesUpItsLargestPieces(t *testing.T) {
	var s memory.Stock
	dropped := ""
	small := s.Add(10, func() { dropped += "small" })
	large := s.Add(10, func() { dropped += "large" })
	left := s.Add(500, nil)
	require.True(t, large.Grow(90))
	require.False(t, left.Release())
	require.Equal(t, int64(110), s.Held())
	require.Equal(t, int64(100), s.Shed(20))
	require.Equal(t, "large", dropped)
	require.True(t, large.Shed())
	require.False(t, large.Grow(1))
	require.True(t, large.Release())
	require.False(t, small.Shed())
	require.Equal(t, int64(10), s.Held())
	small.Release()
	small.Release()
	require.Zero(t, s.Held())
	require.Zero(t, s.Shed(1))
	var none *memory.Piece
	require.False(t, none.Release() || none.Shed())
}

func TestManySharesOfAnAccount(t *testing.T) {
	a := memory.New(1 << 20)
	defer a.Close()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				var s memory.Stock
				a.Join(&s)
				p := s.Add(100<<10, func() {})
				a.Grow(100 << 10)
				p.Release()
				a.Leave(&s)
			}
		})
	}
	all.Wait()
}

func TestLimitFollowsTheLargestMessageAndTheRuntimesOwn(t *testing.T) {
	old := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(old)
	require.Equal(t, int64(1<<30), memory.Limit(64<<20))
	require.Equal(t, int64(2<<30), memory.Limit(256<<20))
	debug.SetMemoryLimit(512 << 20)
	require.Equal(t, int64(256<<20), memory.Limit(256<<20))
	debug.SetMemoryLimit(1)
	require.Equal(t, int64(16<<20), memory.Limit(256<<20))
}
