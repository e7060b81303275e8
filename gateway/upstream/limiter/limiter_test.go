package limiter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// fill acquires slots for a client until it would have to wait.
func fill(p *Limiter, who any) (releases []func()) {
	for {
		release := p.TryAcquire(who)
		if release == nil {
			return releases
		}
		releases = append(releases, release)
	}
}

func TestOneClientLeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	p := New(256)
	one := fill(p, "one")
	require.Len(t, one, 192)
	two := fill(p, "two")
	require.Len(t, two, 48)
	require.Len(t, fill(p, "three"), 12)
	for _, release := range append(one, two...) {
		release()
	}
	require.Len(t, fill(p, "three"), 192-12, "the slots released by others")
}

// stranger is a client of a group, with one of its names.
type stranger struct{ address, name string }

func (s stranger) Group() any { return s.address }

func TestOneClientByManyNamesLeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	p := New(256)
	require.Len(t, fill(p, stranger{"a", "one"}), 192)
	require.Len(t, fill(p, stranger{"a", "two"}), 48, "another client of the group gets some")
	_, waits := p.Acquire(stranger{"a", "three"})
	require.NotNil(t, waits)
	other := fill(p, stranger{"b", "one"})
	require.Len(t, other, 12)
	require.NotEmpty(t, fill(p, "session"))
	require.False(t, waits.has())
	for _, release := range other {
		release()
	}
	require.False(t, waits.has(), "slots used by its group do not help")
}

func TestPlacesThatAreGivenBackAreTheGroupsAgain(t *testing.T) {
	t.Parallel()
	p := New(256)
	for range 3 {
		for _, name := range []string{"one", "two"} {
			defer func() { require.Empty(t, p.groups, name) }()
			for _, release := range fill(p, stranger{"a", name}) {
				release()
			}
		}
	}
	p = New(32)
	var all []func()
	for _, name := range []string{"one", "two", "three", "four", "five"} {
		all = append(all, fill(p, stranger{"a", name})...)
	}
	require.Len(t, all, 30)
	next, wait := p.Acquire(stranger{"a", "six"})
	require.False(t, wait.has())
	all[0]()
	require.True(t, wait.has())
	next()
	for _, release := range all[1:] {
		release()
	}
	require.Empty(t, p.groups)
	require.Empty(t, p.shares)
}

func TestOneClientNeverGetsAllPlaces(t *testing.T) {
	t.Parallel()
	for limit := 2; limit <= 64; limit++ {
		p := New(limit)
		held := len(fill(p, stranger{"a", "one"})) + len(fill(p, stranger{"a", "two"})) + len(fill(p, stranger{"a", "three"}))
		require.Less(t, held, limit)
		require.GreaterOrEqual(t, held, limit/2, "it gets most of them")
		require.NotNil(t, p.TryAcquire("other"), "limit %d", limit)
	}
	require.NotNil(t, New(1).TryAcquire("one"), "the only one")
}

// has reports whether a slot was assigned.
func (w *Wait) has() bool {
	select {
	case <-w.Done():
		return true
	default:
		return false
	}
}

func TestThoseWhoWaitGetAPlaceInTurn(t *testing.T) {
	t.Parallel()
	p := New(1)
	release := p.TryAcquire("first")
	type waiter struct {
		who     string
		wait    *Wait
		release func()
	}
	var all []waiter
	for _, who := range []string{"many", "many", "many", "one", "other"} {
		release, wait := p.Acquire(who)
		require.NotNil(t, wait)
		all = append(all, waiter{who, wait, release})
	}
	for _, want := range []string{"many", "one", "other", "many", "many"} {
		release()
		var came []waiter
		rest := all[:0:0]
		for _, w := range all {
			if w.wait.has() {
				came = append(came, w)
			} else {
				rest = append(rest, w)
			}
		}
		require.Len(t, came, 1)
		require.Equal(t, want, came[0].who)
		all, release = rest, came[0].release
	}
}

// Slots are neither lost nor assigned twice, and no client waits for a free one.
func TestPlacesAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{1, 2, 5, 9, 32, 33, 40}).Draw(t, "limit")
		places := New(limit)
		type holder struct {
			wait *Wait // nil if it got a slot at once
			give func()
		}
		var all []holder
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(all) == 0 || rapid.Bool().Draw(t, "take") {
				release, wait := places.Acquire(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "who"))
				if wait != nil {
					release = func() { wait.Cancel() }
				}
				all = append(all, holder{wait, release})
			} else {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				all[i].give()
				all = append(all[:i], all[i+1:]...)
			}
			held := 0
			for _, h := range all {
				if h.wait == nil || h.wait.has() {
					held++
				} else {
					require.False(t, places.canAcquireLocked(h.wait.share), "it waits without a reason")
				}
			}
			require.Equal(t, held, places.inUse)
			require.LessOrEqual(t, held, limit)
		}
		for _, h := range all {
			h.give()
		}
		require.Zero(t, places.inUse)
		require.Empty(t, places.shares)
		require.Empty(t, places.ring)
	})
}
