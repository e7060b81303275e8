package upstream

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/gateway/config"
)

// fill takes places for a client until it would have to wait.
func fill(s *Server, who string) (releases []func()) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		release, err := s.Acquire(ctx, who)
		if err != nil {
			return releases
		}
		releases = append(releases, release)
	}
}

func placed(t *testing.T, limit int) *Server {
	t.Helper()
	return NewServer(config.Server{Name: "s", Timeout: time.Minute}, Options{Limits: config.Limits{InFlight: limit}})
}

func TestOneClientLeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	s := placed(t, 256)
	one := fill(s, "one")
	require.Len(t, one, 192)
	two := fill(s, "two")
	require.Len(t, two, 48)
	require.Len(t, fill(s, "three"), 12)
	for _, release := range append(one, two...) {
		release()
	}
	require.Len(t, fill(s, "three"), 192-12, "what the others gave back")
}

func TestFewPlacesAreAllForOneClient(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 2, 3, 4, 10, 31} {
		require.Len(t, fill(placed(t, limit), "one"), limit)
	}
}

func TestThoseWhoWaitGetAPlaceInTurn(t *testing.T) {
	t.Parallel()
	s := placed(t, 1)
	release, err := s.Acquire(context.Background(), "first")
	require.NoError(t, err)
	got := make(chan string)
	wait := func(who string) {
		n := waiting(s)
		go func() {
			release, err := s.Acquire(context.Background(), who)
			if err == nil {
				got <- who
				release()
			}
		}()
		require.Eventually(t, func() bool { return waiting(s) == n+1 }, time.Minute, time.Millisecond)
	}
	for range 3 {
		wait("many")
	}
	wait("one")
	wait("other")
	release()
	for _, want := range []string{"many", "one", "other", "many", "many"} {
		require.Equal(t, want, <-got)
	}
}

// waiting counts those who wait for a place.
func waiting(s *Server) (n int) {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	for _, c := range s.slots.ring {
		n += c.waiting.Len()
	}
	return n
}

// Whatever happens, places are neither lost nor given twice, and nobody waits
// for one that it may have.
func TestPlacesAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{1, 2, 5, 9, 32, 33, 40}).Draw(t, "limit")
		slots := newSlots(limit)
		type wait struct {
			s    *share
			turn func() bool // has come
			give func()
		}
		var all []wait
		held := 0
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(all) == 0 || rapid.Bool().Draw(t, "take") {
				s, turn := slots.try(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "who"))
				w := wait{s, func() bool { return true }, s.release}
				if turn != nil {
					w.turn = func() bool {
						select {
						case <-turn.Value.(chan struct{}):
							return true
						default:
							return false
						}
					}
					w.give = func() { slots.leave(s, turn) }
				}
				all = append(all, w)
			} else {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				all[i].give()
				all = append(all[:i], all[i+1:]...)
			}
			held = 0
			for _, w := range all {
				if w.turn() {
					held++
				} else {
					require.False(t, slots.may(w.s), "it waits for nothing")
				}
			}
			require.Equal(t, held, slots.taken)
			require.LessOrEqual(t, held, limit)
		}
		for _, w := range all {
			w.give()
		}
		require.Zero(t, slots.taken)
		require.Empty(t, slots.shares)
		require.Empty(t, slots.ring)
	})
}
