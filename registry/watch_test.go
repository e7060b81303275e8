package registry

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWatchMergesAndNeverLosesTheLast(t *testing.T) {
	r := New(Options{Servers: []string{"s"}})
	ctx, cancel := context.WithCancel(t.Context())
	all, some := r.Watch(ctx), r.Watch(ctx, Tools, Logs)
	require.Equal(t, 1, cap(all))
	for i := range 1_000_000 {
		r.feed.publish([]Changes{Tools, Prompts, Servers}[i%3])
	}
	r.feed.publish(Logs)
	require.Equal(t, Tools|Prompts|Servers|Logs, <-all)
	require.Equal(t, Tools|Logs, <-some)
	require.Empty(t, all)
	r.feed.publish(Prompts)
	require.Equal(t, Prompts, <-all)
	require.Empty(t, some)
	r.feed.publish(Tools)
	cancel()
	require.Equal(t, Tools, <-all, "unread changes are kept")
	_, open := <-all
	require.False(t, open)
	<-some
	_, open = <-some
	require.False(t, open)
	r.feed.publish(Tools)
}

func TestEventsSayWhatChanged(t *testing.T) {
	r := New(Options{Servers: []string{"s"}})
	ch := r.Watch(t.Context())
	for _, c := range []struct {
		does string
		do   func()
		want Changes
	}{
		{"list", func() { set(r, "s", Tool, "a") }, Tools | Logs},
		{"the same list", func() { set(r, "s", Tool, "a") }, 0},
		{"resources", func() { set(r, "s", Resource, "x:1") }, Resources | Logs},
		{"templates", func() { set(r, "s", Template, "x:{a}") }, Templates | Logs},
		{"prompts", func() { set(r, "s", Prompt, "a") }, Prompts | Logs},
		{"hide", func() { r.SetVisible("s", false) }, Tools | Prompts | Resources | Templates | Logs},
		{"list while hidden", func() { set(r, "s", Tool, "b") }, Logs | ListChanged},
		{"show", func() { r.SetVisible("s", true) }, Tools | Prompts | Resources | Templates | Logs},
		{"state", func() { r.SetState("s", ServerState{State: StateReady}) }, Servers | Logs},
		{"the same state", func() { r.SetState("s", ServerState{State: StateReady}) }, 0},
		{"subscription", func() { r.SetSubscription(SubscriptionState{Server: "s", URI: "x:1", Status: SubscriptionOn}) }, Subscriptions | Logs},
		{"update", func() { r.ResourceUpdated("s", "x:1") }, Subscriptions | Logs},
		{"log", func() { r.Logs().Append(LogRecord{}) }, Logs},
		{"traffic", func() { r.Traffic().Append(TrafficRecord{}) }, Traffic},
		{"local", func() { require.NoError(t, r.AddResource(ServersResource(r))) }, Locals | Resources | Logs},
		{"local tool", func() { require.NoError(t, r.AddTool(LocalTool{Definition: []byte(`{"name":"s_b"}`), Call: noCall})) }, Locals | Tools | Logs},
		{"learn", func() { r.RecordLink("s", "x:2") }, 0},
		{"add", func() { add(r, "t") }, Servers | Logs},
		{"add again", func() { add(r, "t") }, 0},
		{"remove", func() { remove(r, "s") }, Servers | Subscriptions | Tools | Prompts | Resources | Templates | Logs},
	} {
		c.do()
		var got Changes
		select {
		case got = <-ch:
		default:
		}
		require.Equal(t, c.want, got, c.does)
	}
}

func TestReadersSeeWholeSnapshots(t *testing.T) {
	servers := []string{"a", "a_b", "c", "d"}
	r := New(Options{Servers: servers, PageSize: 7})
	for _, s := range servers {
		for k := range Kind(Kinds) {
			set(r, s, k, "x:0")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	changes := r.Watch(ctx)
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				s := r.Load()
				for k := range Kind(Kinds) {
					if n := len(entryNames(k, pages(t, s, k))); n != s.Count(k) {
						t.Errorf("%d of %d entries", n, s.Count(k))
					}
				}
				for e := range s.All(Resource) {
					if got, err := r.ResolveResource(e.Listed); err == nil && (got.Server != e.Server || got.Name != e.Name) {
						t.Errorf("%s resolved to %s of %s", e.Listed, got.Name, got.Server)
					}
				}
				r.States()
				r.Subscriptions()
				r.Logs().Window(0, 10)
				r.Traffic().Window(0, 10)
			}
		})
	}
	readers.Go(func() {
		for range changes {
			r.Load()
		}
	})
	for i, s := range servers {
		writers.Go(func() {
			for n := range 60 {
				list := make([]string, n%20)
				for j := range list {
					list[j] = fmt.Sprintf("x:%d", j*n)
				}
				for k := range Kind(Kinds) {
					set(r, s, k, list...)
				}
				r.SetVisible(s, n%3 != 0)
				r.SetState(s, ServerState{State: StateReady, Restarts: n})
				r.RecordLink(s, fmt.Sprint("l:", n))
				r.ResourceUpdated(s, "x:1")
				r.Logs().Append(LogRecord{Text: s})
				r.Traffic().Append(TrafficRecord{Request: []byte(s)})
				switch name := fmt.Sprintf("a_x%d", n%5); i {
				case 0:
					_ = r.AddTool(LocalTool{Definition: []byte(`{"name":"` + name + `"}`), Call: noCall})
				case 2:
					r.SetServers(append(slices.Clone(servers), "late"), nil)
				case 3:
					r.SetServers(servers, nil)
				}
			}
			set(r, s, Tool, "x", "y")
			r.SetVisible(s, true)
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
	n := 0
	for range r.Load().Server("c", Tool) {
		n++
	}
	require.Equal(t, 2, n)
}
