//go:build unix

package upstream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/registry"
)

func TestCrashLoopsStartSlowerAndSlowerForEver(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]func(*backoffs) time.Duration{
		"failed starts":      func(b *backoffs) time.Duration { return b.failed.NextBackOff() },
		"lost after a start": func(b *backoffs) time.Duration { return b.lost.NextBackOff() },
	} {
		for range 50 {
			b := defaultBackoffs()
			b.reset()
			first := policy(&b)
			require.Less(t, first, 300*time.Millisecond, "%s: a flaky start recovers soon", name)
			starts, at := 2, first
			for {
				if at += policy(&b); at > 6*time.Second {
					break
				}
				starts++
			}
			require.LessOrEqual(t, starts, 15, name)
			var d time.Duration
			for range 40 {
				d = policy(&b)
				require.LessOrEqual(t, d, 36*time.Second, "it never gives up")
			}
			require.Greater(t, d, 20*time.Second, name)
		}
	}
}

func TestFlakyStartRecovers(t *testing.T) {
	t.Parallel()
	var restarts atomic.Int32
	r := startFake(t, "flaky-start", func(r *rig) {
		r.opt.Observe.Restarted = func(string) { restarts.Add(1) }
	})
	<-r.FirstList()
	require.False(t, r.Listed(), "nobody waits for more than the first attempt")
	r.until("the second attempt", r.Listed)
	require.Zero(t, restarts.Load(), "it is the first connection")
	require.Zero(t, r.cat.state().Restarts)
	require.Empty(t, r.cat.state().LastError)

	conn := r.up()
	_, err := r.call(conn, "crash")
	require.Error(t, err)
	r.until("another connection", func() bool { c, err := r.Conn(); return err == nil && c != conn })
	require.EqualValues(t, 1, restarts.Load())
	require.Equal(t, 1, r.cat.state().Restarts)
}

func TestDisabledAndBrokenConfigurationsAreNotTried(t *testing.T) {
	t.Parallel()
	cfg, log := fakeConfig(t, "all")
	cfg.Disabled = true
	r := start(t, cfg, nil)
	<-r.FirstList()
	_, err := r.Await(context.Background())
	requireCode(t, err, ConnectionError, "is disabled")
	require.Equal(t, registry.StateDisabled, r.cat.state().State)
	require.NoFileExists(t, log)
	require.EqualError(t, r.Restart(), `server "files" is disabled`)

	r.SetEnabled(true)
	r.whole()
	r.SetEnabled(false)
	r.until("disabled again", func() bool { return r.cat.state().State == registry.StateDisabled })
	_, err = r.Conn()
	requireCode(t, err, ConnectionError, "is disabled")
	require.Zero(t, r.cat.state().PID)

	cfg, log = fakeConfig(t, "all")
	cfg.Problem = "the variable KEY is not set (goblin.yaml:3)"
	r = start(t, cfg, nil)
	<-r.FirstList()
	_, err = r.Await(context.Background())
	requireCode(t, err, ConnectionError, "KEY is not set")
	require.Equal(t, registry.StateFailed, r.cat.state().State)
	require.NoFileExists(t, log)
	require.EqualError(t, r.Restart(), `server "files": the variable KEY is not set (goblin.yaml:3)`)
}

func TestRestartConnectsAtOnce(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", func(r *rig) {
		r.tune.retry.failed.InitialInterval, r.tune.retry.lost.InitialInterval = time.Hour, time.Hour
	}).whole()
	conn := r.up()
	require.NoError(t, r.Restart())
	<-conn.Done()
	r.until("another connection", func() bool { c, err := r.Conn(); return err == nil && c != conn })
	require.False(t, r.cat.hidden())
}

func TestEntriesStayForTheGraceTimeAndComeBackWhole(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", func(r *rig) {
		r.tune.grace = 10 * time.Millisecond
		r.tune.retry.lost.InitialInterval = 300 * time.Millisecond
	}).whole()
	require.False(t, r.cat.hidden())
	_, err := r.call(r.up(), "crash")
	require.Error(t, err)
	r.until("stale", func() bool { return r.cat.state().Stale })
	r.until("hidden", r.cat.hidden)
	require.Len(t, r.cat.list(registry.Tool), 3, "the lists themselves stay")
	r.until("visible", func() bool { return !r.cat.hidden() })
	r.until("fresh", func() bool { return !r.cat.state().Stale })
}

func TestEntriesOfALostServerLeaveWhateverItsEndWas(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(r *rig){
		"its unit ended":    func(r *rig) { _ = unitConn(r, "a"); r.EndUnit("a") },
		"it was restarted":  func(r *rig) { _ = r.Restart() },
		"it crashed":        func(r *rig) { _, _ = r.call(r.up(), "crash") },
		"it was turned off": func(r *rig) { r.SetEnabled(false); require.True(t, r.cat.hidden(), "at once") },
		"it was turned off and on": func(r *rig) {
			r.SetEnabled(false)
			r.SetEnabled(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := isolated(t, "fail-later", func(r *rig) { r.tune.grace = 10 * time.Millisecond })
			require.False(t, r.cat.hidden())
			lose(r)
			r.until("hidden", r.cat.hidden)
		})
	}
}

func TestAServerTurnedOnAgainMayOfferLess(t *testing.T) {
	t.Parallel()
	r := startFake(t, "fewer-later", nil).whole()
	require.Len(t, r.cat.list(registry.Prompt), 1)
	r.SetEnabled(false)
	r.until("disabled", func() bool { return r.cat.state().State == registry.StateDisabled })
	r.SetEnabled(true)
	r.whole()
	require.Empty(t, r.cat.list(registry.Prompt))
	require.False(t, r.cat.hidden())
}

func TestAKindThatHangsHidesNoOther(t *testing.T) {
	t.Parallel()
	r := startFake(t, "half-later", func(r *rig) { r.tune.grace = 10 * time.Millisecond }).whole()
	_, err := r.call(r.up(), "crash")
	require.Error(t, err)
	r.until("hidden", r.cat.hidden)
	r.until("visible", func() bool { return !r.cat.hidden() })
	st := r.cat.state()
	require.True(t, st.Listed && st.Stale, "what is not fresh stays marked")
	r.until("fresh tools", func() bool { return r.cat.setCount(registry.Tool) == 2 })
	require.Equal(t, 1, r.cat.setCount(registry.Resource))
}

func TestLongListsMayTakeLongButNoPageMay(t *testing.T) {
	t.Parallel()
	r := startFake(t, "slow-pages", func(r *rig) { r.tune.list = time.Second }).whole()
	require.Len(t, r.cat.list(registry.Tool), slowPages)

	cfg, _ := fakeConfig(t, "hang-pages")
	cfg.Timeout = time.Second
	r = start(t, cfg, nil).whole()
	require.Len(t, r.cat.list(registry.Tool), 1, "what had arrived")
	require.True(t, r.cat.logged("tools/list failed: no answer to tools/list within 1s"))

	r = startFake(t, "hang-pages", func(r *rig) { r.tune.list = time.Second }).whole()
	require.Len(t, r.cat.list(registry.Tool), 1, "no timeout is longer than the bound of a page")
}

func TestRunEndsEverything(t *testing.T) {
	t.Parallel()
	cfg, _ := fakeConfig(t, "")
	r := newRig(t, cfg, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	conn := r.up()
	pid := r.pids()[0]
	cancel()
	<-done
	require.True(t, ended(pid))
	<-conn.Done()
	_, err := r.Await(context.Background())
	requireCode(t, err, ConnectionError, "has been stopped")
	require.Equal(t, registry.StateStopped, r.cat.state().State)
	require.Equal(t, []string{""}, r.h.downs())
}

func TestAcquireBoundsRequestsInFlight(t *testing.T) {
	t.Parallel()
	cfg, _ := fakeConfig(t, "")
	cfg.Timeout = 10 * time.Millisecond
	s := NewServer(cfg, Options{Limits: config.Limits{InFlight: 2}})
	one, err := s.Acquire(context.Background())
	require.NoError(t, err)
	_, err = s.Acquire(context.Background())
	require.NoError(t, err)
	_, err = s.Acquire(context.Background())
	requireCode(t, err, RequestTimeout, "2 requests are under way (limits.in_flight)")
	gone := errors.New("gone")
	cancelled, end := context.WithCancelCause(context.Background())
	end(gone)
	_, err = s.Acquire(cancelled)
	require.ErrorIs(t, err, gone)
	one()
	_, err = s.Acquire(context.Background())
	require.NoError(t, err)
}

func TestFreePlacesAndOpenConnectionsCostNoAllocation(t *testing.T) {
	r := isolated(t, "", nil)
	shared := startFake(t, "", nil).whole()
	_ = unitConn(r, "a")
	_ = unitConn(r, "b")
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		release, _ := r.Acquire(context.Background())
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
	require.Len(t, r.pids(), 2, "one flight opens a unit's connection")
	r.until("ready", func() bool { return len(r.h.readies()) == 3 })
	require.ElementsMatch(t, []string{"", "a", "b"}, r.h.readies(), "the unit that takes a connection is restored on it")
	require.Equal(t, 1, r.cat.setCount(registry.Tool), "only the first unit's lists are the catalog")

	r.EndUnit("b")
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
	r.EndUnit("a")
	<-a.Done()
	c := unitConn(r, "c")
	require.NotSame(t, a, c)
	require.Equal(t, "c", c.Unit())
	require.Zero(t, r.cat.state().Restarts, "that is no restart")
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
	require.Equal(t, []string{"", "a", "a"}, r.h.readies(), "so that what belongs to the unit can be restored")
	again := unitConn(r, "a")
	require.NotSame(t, a, again)
	require.Len(t, r.pids(), 2)
}

// count is how many are of a value.
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
	r.EndUnit("b")
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
	r.EndUnit("b")
	_, err = r.Unit(context.Background(), "a")
	require.NoError(t, err)
}

func TestRestoringDelaysNeitherListsNorIsItCut(t *testing.T) {
	t.Parallel()
	release, ended := make(chan struct{}), make(chan error, 1)
	cfg, _ := fakeConfig(t, "")
	r := newRig(t, cfg, func(r *rig) {
		r.h.restore = func(ctx context.Context, _ Conn) {
			if _, cut := ctx.Deadline(); cut {
				ended <- errors.New("there is a deadline")
				return
			}
			<-ctx.Done()
			<-release
			if len(r.h.downs()) > 0 {
				ended <- errors.New("it is down already")
				return
			}
			ended <- nil
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	r.whole()
	cancel()
	close(release)
	require.NoError(t, <-ended)
	<-done
	require.Equal(t, []string{""}, r.h.downs())
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
			require.Equal(t, 1, known[conn], "Ready comes after")
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

func TestListsAreFetchedOnlyWhereDeclared(t *testing.T) {
	t.Parallel()
	r := startFake(t, "none", nil).whole()
	require.NotContains(t, r.received(), "/list\"")

	r = startFake(t, "all", nil).whole()
	require.Len(t, r.cat.list(registry.Tool), 3)
	require.Equal(t, []string{`{"name":"p","vendor":1.0}`}, r.cat.list(registry.Prompt), "items are raw")
	require.Len(t, r.cat.list(registry.Resource), 1)
	require.Equal(t, []string{}, r.cat.list(registry.Template), "a server without templates has none")
	require.False(t, r.cat.logged("templates/list failed"))
}

func TestOneKindThatFailsCostsOnlyItself(t *testing.T) {
	t.Parallel()
	r := startFake(t, "lie", nil).whole()
	require.Len(t, r.cat.list(registry.Tool), 3)
	require.Nil(t, r.cat.list(registry.Resource))
	require.True(t, r.cat.logged("resources/list failed: no (code -32603)"))
	require.Equal(t, registry.StateReady, r.cat.state().State)
}

func TestPagesAreFollowedWithinBounds(t *testing.T) {
	t.Parallel()
	limits := func(pages, entries int) func(*rig) {
		return func(r *rig) { r.opt.Limits.Pages, r.opt.Limits.Entries = pages, entries }
	}
	for name, test := range map[string]struct {
		mode     string
		change   func(*rig)
		items    int
		requests int // at most
		report   string
	}{
		"to the end, an empty cursor is one": {"pages", nil, 6, 3, ""},
		"a cursor that comes again":          {"same-cursor", nil, 2, 2, "came before"},
		"new cursors without new items":      {"new-cursor", nil, maxBarren + 1, maxBarren + 1, "nothing new"},
		"pages":                              {"new-items", limits(10, 1000), 10, 10, "limits.pages"},
		"entries":                            {"new-items", limits(1000, 10), 10, 11, "limits.entries"},
		"what arrived before an error":       {"die-on-second-page", nil, 1, 2, "tools/list failed"},
		"no array":                           {"no-array", nil, -1, 1, `no array "tools"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startFake(t, test.mode, test.change).whole()
			if test.items < 0 {
				require.Nil(t, r.cat.list(registry.Tool))
			} else {
				require.Len(t, r.cat.list(registry.Tool), test.items)
			}
			require.LessOrEqual(t, strings.Count(r.received(), `"tools/list"`), test.requests)
			if test.report != "" {
				require.True(t, r.cat.logged(test.report))
			}
		})
	}
}

func TestFiltersMatchOriginalNames(t *testing.T) {
	t.Parallel()
	cfg, _ := fakeConfig(t, "all")
	cfg.Tools = config.Filter{Allow: []string{"e*", "d*"}, Deny: []string{"delete_*"}}
	cfg.Resources = config.Filter{Deny: []string{"x:*"}}
	r := start(t, cfg, nil).whole()
	require.Equal(t, []string{`{"name":"echo","x":1.50}`}, r.cat.list(registry.Tool))
	require.Empty(t, r.cat.list(registry.Resource))
}

func TestStormOfNoticesCausesFewFetches(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil).whole()
	got, err := r.call(r.up(), "storm")
	require.NoError(t, err)
	require.Equal(t, `{"ok":1}`, got)
	r.until("another fetch", func() bool { return r.cat.setCount(registry.Tool) > 1 })
	require.Less(t, r.cat.setCount(registry.Tool), 50)
	require.Zero(t, r.cat.setCount(registry.Prompt))
	require.Empty(t, r.h.noted(), "notices do not go to the handler")
}

func TestNoticesOfKindsThatAreOffAreIgnored(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", func(r *rig) { r.opt.ListChanged.Tools = false }).whole()
	_, err := r.call(r.up(), "storm")
	require.NoError(t, err)
	require.Len(t, r.lists.Load().wake[registry.Tool], 0)
	require.Equal(t, 1, strings.Count(r.received(), `"tools/list"`))
}

func TestAFailedFetchKeepsWhatWasListed(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil).whole()
	ls := r.lists.Load()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := listings[registry.Tool]
	g.method = "no/such"
	require.True(t, ls.fetch(ctx, &g))
	require.Len(t, r.cat.list(registry.Tool), 3)
	require.True(t, r.cat.logged("no/such failed"))
}
