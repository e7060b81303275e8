//go:build unix

package upstream

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/registry"
)

func TestFreePlacesAndOpenConnectionsCostNoAllocation(t *testing.T) {
	r := isolated(t, "", nil)
	shared := startFake(t, "", nil).whole()
	_ = unitConn(r, "a")
	_ = unitConn(r, "b")
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		release, _ := r.Acquire(context.Background(), "a", "ping")
		release()
		_, _ = r.Unit(context.Background(), "a")
		_, _ = r.Unit(context.Background(), "b")
		_, _ = shared.Unit(context.Background(), "b")
	}))
}

func TestNobodyWaitsForAUnitLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	cfg, _ := fakeConfig(t, "hang-later")
	cfg.Isolation, cfg.Timeout = config.PerSession, time.Second
	r := start(t, cfg, nil).whole()
	_ = unitConn(r, "a")
	_, err := r.Unit(context.Background(), "b")
	requireCode(t, err, ConnectionError, "is still starting after 1s (timeout)")

	cfg, _ = fakeConfig(t, "hang-start")
	cfg.Timeout = 50 * time.Millisecond
	for _, cfg.Isolation = range []config.Isolation{config.PerSession, config.Shared} {
		r = start(t, cfg, nil)
		_, err = r.Unit(context.Background(), "a")
		requireCode(t, err, ConnectionError, "is still starting after 50ms (timeout)")
	}
}

func isolated(t *testing.T, mode string, change func(*rig)) *rig {
	t.Helper()
	cfg, _ := fakeConfig(t, mode)
	cfg.Isolation = config.PerSession
	return start(t, cfg, change).whole()
}

func unitConn(r *rig, name string) Conn {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := r.Unit(ctx, name)
	require.NoError(r.t, err)
	return conn
}

func TestUnitsHaveConnectionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := isolated(t, "", nil)
	shared := r.up()
	a := unitConn(r, "a")
	require.Same(t, shared, a, "the first unit takes the connection of the catalog")
	require.Equal(t, "a", a.Unit())

	got := make(chan Conn, 5)
	for range cap(got) {
		go func() { got <- unitConn(r, "b") }()
	}
	b := <-got
	for range cap(got) - 1 {
		require.Same(t, b, <-got)
	}
	require.NotSame(t, a, b)
	require.Equal(t, "b", b.Unit())
	require.Len(t, r.pids(), 2, "concurrent calls open one connection")
	r.until("ready", func() bool { return len(r.h.readies()) == 3 })
	require.ElementsMatch(t, []string{"", "a", "b"}, r.h.readies(), "the unit that takes a connection is restored on it")
	require.Equal(t, 1, r.cat.setCount(registry.Tool), "only the first unit's lists are the catalog")

	r.CloseUnit("b")
	<-b.Done()
	r.until("down", func() bool { return len(r.h.downs()) == 1 })
	require.NoError(t, a.Err())

	b2 := unitConn(r, "b")
	require.NotSame(t, b, b2)
}

func TestTheFirstUnitsConnectionIsNotInherited(t *testing.T) {
	t.Parallel()
	r := isolated(t, "", nil)
	a := unitConn(r, "a")
	r.CloseUnit("a")
	<-a.Done()
	c := unitConn(r, "c")
	require.NotSame(t, a, c)
	require.Equal(t, "c", c.Unit())
	require.Zero(t, r.cat.state().Restarts, "not a restart")
	r.until("lists", func() bool { return !r.cat.state().Stale })
	require.False(t, r.cat.hidden())
}

func TestAUnitKeepsTheCatalogConnectionOverACrash(t *testing.T) {
	t.Parallel()
	r := isolated(t, "", nil)
	a := unitConn(r, "a")
	r.until("ready", func() bool { return len(r.h.readies()) == 2 })
	_, err := r.call(a, "crash")
	require.Error(t, err)
	r.until("ready again", func() bool { return len(r.h.readies()) == 3 })
	require.Equal(t, []string{"", "a", "a"}, r.h.readies(), "to restore the unit's state")
	again := unitConn(r, "a")
	require.NotSame(t, a, again)
	require.Len(t, r.pids(), 2)
}

func count(all []string, of string) (n int) {
	for _, s := range all {
		if s == of {
			n++
		}
	}
	return n
}

func TestUnitsComeBackByThemselvesUntilTheyEnd(t *testing.T) {
	t.Parallel()
	r := isolated(t, "", func(r *rig) { r.tune.settled = time.Hour })
	_ = unitConn(r, "a")
	b := unitConn(r, "b")
	for round := range 3 {
		_, err := r.call(b, "crash")
		require.Error(t, err)
		r.until("ready again", func() bool { return count(r.h.readies(), "b") == round+2 })
		require.Equal(t, round+1, count(r.h.downs(), "b"))
		again := unitConn(r, "b")
		require.NotSame(t, b, again)
		b = again
	}
	got, err := r.call(b, "echo")
	require.NoError(t, err)
	require.Contains(t, got, "args")

	require.NoError(t, r.Restart())
	<-b.Done()
	r.until("both after a restart", func() bool {
		all := r.h.readies()
		return count(all, "b") == 5 && count(all, "a") == 2
	})
	require.NotSame(t, unitConn(r, "a"), unitConn(r, "b"))

	b = unitConn(r, "b")
	r.CloseUnit("b")
	<-b.Done()
	r.until("its end", func() bool { return count(r.h.downs(), "b") == 5 })
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(t, r.units, 1)
}

func TestUnitsThatCannotBeOpenedAreTriedAgainAndSayWhy(t *testing.T) {
	t.Parallel()
	r := isolated(t, "fail-later", nil)
	_ = unitConn(r, "a")
	_, err := r.Unit(context.Background(), "b")
	requireCode(t, err, ConnectionError, "exit status 1")
	r.until("further attempts", func() bool { return len(r.pids()) >= 4 })
	r.CloseUnit("b")
	_, err = r.Unit(context.Background(), "a")
	require.NoError(t, err)
}

func TestTheHandlerKnowsAConnectionBeforeAnybodyGetsIt(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	known := map[Conn]int{}
	r := isolated(t, "", func(r *rig) {
		r.h.opened = func(s *Server, conn Conn) {
			if conn.Unit() == "b" {
				s.mu.Lock()
				taken := s.units["b"].conn
				s.mu.Unlock()
				require.Nil(t, taken)
			} else if current, err := s.Conn(); err == nil {
				require.NotSame(t, current, conn)
			}
			mu.Lock()
			defer mu.Unlock()
			known[conn]++
		}
		r.h.restore = func(_ context.Context, conn Conn) {
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, 1, known[conn], "Ready follows")
		}
	})
	is := func(conn Conn) {
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 1, known[conn])
	}
	is(r.up())
	a := unitConn(r, "a")
	is(unitConn(r, "b"))
	_, err := r.call(a, "crash")
	require.Error(t, err)
	r.until("another connection", func() bool { c, err := r.Conn(); return err == nil && c != a })
	is(unitConn(r, "a"))
}

func TestSharedServersHaveOneConnectionForAllUnits(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil)
	require.Same(t, unitConn(r, "a"), unitConn(r, "b"))
	require.Empty(t, unitConn(r, "a").Unit())
	require.NoError(t, r.up().Err())
}

func TestDisablingEndsTheConnectionsOfAllUnits(t *testing.T) {
	t.Parallel()
	r := isolated(t, "", nil)
	a, b := unitConn(r, "a"), unitConn(r, "b")
	r.SetEnabled(false)
	<-a.Done()
	<-b.Done()
	for _, name := range []string{"a", "b", "c"} {
		_, err := r.Unit(context.Background(), name)
		requireCode(t, err, ConnectionError, "disabled")
	}
	require.Len(t, r.pids(), 2)

	r.SetEnabled(true)
	r.until("connected again", func() bool { conn, err := r.Unit(context.Background(), "a"); return err == nil && conn != a })
	r.until("connected again", func() bool { conn, err := r.Unit(context.Background(), "b"); return err == nil && conn != b })
	require.NotSame(t, unitConn(r, "a"), unitConn(r, "b"))
}
