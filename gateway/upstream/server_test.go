//go:build unix

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

func TestFlakyStartRecovers(t *testing.T) {
	t.Parallel()
	var restarts atomic.Int32
	r := startFake(t, "flaky-start", func(r *rig) {
		r.opt.Hooks.Restarted = func(string) { restarts.Add(1) }
	})
	<-r.FirstList()
	require.False(t, r.Listed(), "FirstList waits for the first attempt only")
	r.until("the second attempt", r.Listed)
	require.Zero(t, restarts.Load(), "the first connection is not a restart")
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
		r.tune.retry.Failed.InitialInterval, r.tune.retry.Lost.InitialInterval = time.Hour, time.Hour
	}).whole()
	conn := r.up()
	require.NoError(t, r.Restart())
	<-conn.Done()
	r.until("another connection", func() bool { c, err := r.Conn(); return err == nil && c != conn })
	require.False(t, r.cat.hidden())
}

func TestRequestsWaitForARestartOfAServerUnderDevelopment(t *testing.T) {
	t.Parallel()
	cfg, _ := fakeConfig(t, "")
	cfg.Watch, cfg.Timeout, cfg.StartupTimeout = []string{"*.go"}, patience, patience
	r := start(t, cfg, func(r *rig) { r.tune.reconnectWait = 0 }).whole()
	for _, wait := range []func() (Conn, error){
		func() (Conn, error) { return r.Await(context.Background()) },
		func() (Conn, error) { return r.Unit(context.Background(), "a") },
	} {
		conn := r.up()
		require.NoError(t, r.Restart())
		<-conn.Done()
		_, err := wait()
		require.NoError(t, err)
	}
}

func TestEntriesStayForTheGraceTimeAndComeBackWhole(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", func(r *rig) {
		r.tune.grace = 10 * time.Millisecond
		r.tune.retry.Lost.InitialInterval = 2 * time.Second // long enough for a check
	}).whole()
	require.False(t, r.cat.hidden())
	_, err := r.call(r.up(), "crash")
	require.Error(t, err)
	r.until("stale", func() bool { return r.cat.state().Stale })
	r.until("hidden", r.cat.hidden)
	require.Len(t, r.cat.list(registry.Tool), 3, "the lists are kept")
	r.until("visible", func() bool { return !r.cat.hidden() })
	r.until("fresh", func() bool { return !r.cat.state().Stale })
}

func TestEntriesOfALostServerLeaveWhateverItsEndWas(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(r *rig){
		"its unit ended":   func(r *rig) { _ = unitConn(r, "a"); r.CloseUnit("a") },
		"it was restarted": func(r *rig) { _ = r.Restart() },
		"it crashed":       func(r *rig) { _, _ = r.call(r.up(), "crash") },
		"it was disabled":  func(r *rig) { r.SetEnabled(false); require.True(t, r.cat.hidden(), "at once") },
		"it was disabled and enabled": func(r *rig) {
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

func TestEntriesOfAPredecessorAreTakenOver(t *testing.T) {
	t.Parallel()
	replacing := func(grace time.Duration) func(r *rig) {
		return func(r *rig) {
			r.opt.Replaces, r.tune.grace = true, grace
			for _, k := range []registry.Kind{registry.Tool, registry.Prompt} {
				r.cat.SetList("files", k, [][]byte{[]byte(`{"name":"old"}`)})
			}
		}
	}
	cfg, _ := fakeConfig(t, "")
	cfg.Command = "/nowhere"
	r := start(t, cfg, replacing(10*time.Millisecond))
	r.until("hidden, because no replacement arrived", r.cat.hidden)

	r = startFake(t, "none", replacing(time.Hour)).whole()
	require.Empty(t, r.cat.list(registry.Prompt), "of a kind that is no longer supported")
	require.False(t, r.cat.hidden())
}

func TestAKindThatHangsHidesNoOther(t *testing.T) {
	t.Parallel()
	r := startFake(t, "half-later", func(r *rig) {
		r.tune.grace = 10 * time.Millisecond
		r.tune.retry.Lost.InitialInterval = 2 * time.Second // long enough for a check
	}).whole()
	_, err := r.call(r.up(), "crash")
	require.Error(t, err)
	r.until("hidden", r.cat.hidden)
	r.until("visible", func() bool { return !r.cat.hidden() })
	st := r.cat.state()
	require.True(t, st.Listed && st.Stale, "a stale list stays marked")
	r.until("fresh tools", func() bool { return r.cat.setCount(registry.Tool) == 2 })
	require.Equal(t, 1, r.cat.setCount(registry.Resource))
}

func TestLongListsMayTakeLongButNoPageMay(t *testing.T) {
	t.Parallel()
	const s = time.Second
	tests := []struct {
		name     string
		timeout  time.Duration
		pages    []time.Duration // times per page, except the first
		progress bool            // reports progress each second
		listed   int
		after    time.Duration
		failure  string
	}{
		{"each within the timeout", 30 * s, slices.Repeat([]time.Duration{29 * s}, 14), false, 15, 14 * 29 * s, ""},
		{"one beyond the timeout", 30 * s, []time.Duration{29 * s, 31 * s}, false, 2, 59 * s, "no answer to tools/list within 30s (timeout)"},
		{"one beyond the bound of a page, which no timeout makes longer", time.Hour, []time.Duration{59 * s, 61 * s}, false, 2, 119 * s, "no answer in time"},
		{"nor does progress", 30 * s, []time.Duration{59 * s, 61 * s}, true, 2, 119 * s, "no answer in time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := scripted(t, func(b *web) { b.noGET = true })
				b.on = map[string]func(http.ResponseWriter, *http.Request, jsonrpc.Message){
					"tools/list": func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
						cursor := rawjson.GetString(m.Params, "cursor")
						page, _ := strconv.Atoi(cursor)
						next := ""
						if page < len(tt.pages) {
							next = fmt.Sprintf(`,"nextCursor":"%d"`, page+1)
						}
						each := time.Duration(0)
						if tt.progress {
							each = s
						}
						late(w, r, m, append([]time.Duration{0}, tt.pages...)[page], each, fmt.Sprintf(`{"tools":[{"name":"a%d"}]%s}`, page, next))
					},
				}
				since := time.Now()
				r, _ := startStill(t, b, func(r *rig) { r.cfg.Timeout = tt.timeout })
				<-r.FirstList()
				require.Equal(t, tt.after, time.Since(since))
				require.Len(t, r.cat.list(registry.Tool), tt.listed, "the part that arrived")
				require.Equal(t, tt.failure != "", r.cat.logged("tools/list failed: "+tt.failure))
			})
		})
	}
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
	one, err := s.Acquire(context.Background(), "a", "ping")
	require.NoError(t, err)
	_, err = s.Acquire(context.Background(), "b", "ping")
	require.NoError(t, err)
	_, err = s.Acquire(context.Background(), "a", "ping")
	requireCode(t, err, RequestTimeout, "no free slot within 10ms (timeout): 1 calls of this client and 1 of others are in flight (limits.in_flight: 2)")
	gone := errors.New("gone")
	cancelled, end := context.WithCancelCause(context.Background())
	end(gone)
	_, err = s.Acquire(cancelled, "a", "ping")
	require.ErrorIs(t, err, gone)
	one()
	_, err = s.Acquire(context.Background(), "a", "ping")
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
	patient := func(r *rig) { r.tune.emptyPages = time.Hour } // the count decides
	for name, test := range map[string]struct {
		mode     string
		change   func(*rig)
		items    int
		requests int // maximum
		report   string
	}{
		"to the end, an empty cursor is one": {"pages", nil, 6, 3, ""},
		"a cursor that comes again":          {"same-cursor", nil, 2, 2, "repeated nextCursor"},
		"new cursors without new items":      {"new-cursor", patient, maxEmptyPages + 1, maxEmptyPages + 1, "without new entries"},
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
	require.Empty(t, r.h.noted(), "list notifications do not reach the handler")
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
	g := listKinds[registry.Tool]
	g.method = "no/such"
	_, ok := ls.fetch(ctx, &g)
	require.True(t, ok)
	require.Len(t, r.cat.list(registry.Tool), 3)
	require.True(t, r.cat.logged("no/such failed"))
}
