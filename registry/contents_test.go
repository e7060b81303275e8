package registry

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry/cache"
	"goblin/registry/names"
)

// asked is a successful invocation.
func asked(kind Kind, server, name string) *Invocation {
	return &Invocation{
		Kind: kind, Server: server, Name: name, Listed: server + ":" + name,
		Result: json.RawMessage(`"` + name + `"`), Success: true,
	}
}

// expanded is the read of an expanded template.
func expanded(server, template, uri string) *Invocation {
	inv := asked(Template, server, template)
	inv.Expanded = names.Scheme + server + "/" + uri
	inv.Params = json.RawMessage(`{"v":1}`)
	return inv
}

// cached returns the sorted contents of the cache. Stale ones have their reason.
func cached(r *Registry) string {
	var out []string
	for _, i := range r.Contents().All() {
		text := fmt.Sprintf("%s %s %s", i.Server, i.Kind, i.Name)
		if i.Stale {
			text += " (" + i.StaleReason + ")"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func lines(s ...string) string { return strings.Join(s, "\n") }

// library2 returns two servers with one cached entry of each kind.
func library2(t testing.TB) *Registry {
	r := catalog(t, Options{}, `
		a resource x:/1
		a resource x:/2
		a template x:/{v}
		a prompt p
		a tool t
		b resource x:/1
		b template x:/{v}
		b prompt p
		b tool t`)
	for _, s := range []string{"a", "b"} {
		r.SetState(s, ServerState{State: StateReady})
		r.Contents().Put(asked(Resource, s, "x:/1"))
		r.Contents().Put(expanded(s, "x:/{v}", "x:/1"))
		r.Contents().Put(asked(Prompt, s, "p"))
		r.Contents().Put(asked(Tool, s, "t"))
	}
	return r
}

const cachedOfB = "b prompt p\nb resource x:/1\nb template x:/{v}\nb tool t"

func TestWhatIsReturnedIsWhatIsCached(t *testing.T) {
	now := time.Unix(50, 0)
	r := catalog(t, Options{Now: func() time.Time { return now }}, "a resource x:/1")
	c := r.Contents()
	ch := r.Watch(t.Context(), Cached)
	given := asked(Resource, "a", "x:/1")
	given.Stale, given.StaleReason, given.Seq = true, "made up", 99
	kept := c.Put(given)
	require.Equal(t, Cached, <-ch)
	require.Same(t, kept, c.Last(Resource, "a", "x:/1"))
	require.Same(t, kept, c.All()[0])
	require.NotSame(t, given, kept)
	require.False(t, kept.Stale)
	require.Empty(t, kept.StaleReason)
	require.Equal(t, uint64(1), kept.Seq)
	require.Equal(t, now, kept.Time)
	given.Result[1] = '!'
	require.Equal(t, `"x:/1"`, string(kept.Result), "the bytes are copied")

	require.Nil(t, c.Last(Resource, "a", "x:/2"))
	require.Nil(t, c.Last(Resource, "b", "x:/1"))
	require.Nil(t, c.Last(Template, "a", "x:/1"))
	require.Nil(t, c.Last(Prompt, "a", "x:/1"))
	require.Nil(t, c.Last(Tool, "a", "x:/1"))
}

func TestR2_06TheLastInvocationWinsAlsoWhenItFailed(t *testing.T) {
	r := library2(t)
	c := r.Contents()
	before, _ := c.Stats()
	for _, kind := range []Kind{Resource, Template, Prompt, Tool} {
		name := map[Kind]string{Resource: "x:/1", Template: "x:/{v}", Prompt: "p", Tool: "t"}[kind]
		failed := c.Put(&Invocation{
			Kind: kind, Server: "a", Name: name, Params: json.RawMessage(`{"n":2}`),
			Error: "no", ErrorCode: -32603,
		})
		got := c.Last(kind, "a", name)
		require.Same(t, failed, got)
		require.Equal(t, `{"n":2}`, string(got.Params))
		require.Nil(t, got.Result)
		require.False(t, got.Success)
	}
	after, _ := c.Stats()
	require.Equal(t, before, after)
	require.Equal(t, []uint64{12, 11, 10, 9, 8}, []uint64{
		c.All()[0].Seq, c.All()[1].Seq, c.All()[2].Seq, c.All()[3].Seq, c.All()[4].Seq,
	}, "the newest first")

	set(r, "a", Tool)
	set(r, "a", Prompt)
	require.NotNil(t, c.Last(Tool, "a", "t"), "kept although the tool was removed")
	require.Nil(t, c.Last(Prompt, "a", "p"))
	r.SetVisible("a", false)
	require.NotNil(t, c.Last(Tool, "a", "t"))
}

func TestR2_03ListsKeepSurvivorsAndDropWhatIsGone(t *testing.T) {
	r := library2(t)
	c := r.Contents()
	c.Put(asked(Resource, "a", "x:/2"))
	c.Put(asked(Resource, "a", "y:/linked")) // never listed
	survivor := c.Last(Resource, "a", "x:/2")
	set(r, "a", Resource, "x:/2", "x:/3")
	require.Same(t, survivor, c.Last(Resource, "a", "x:/2"))
	require.Equal(t, lines("a prompt p", "a resource x:/2", "a resource y:/linked", "a template x:/{v}", "a tool t", cachedOfB), cached(r),
		"the template's copy does not depend on the list of resources")
	set(r, "a", Template, "z:/{v}")
	require.Equal(t, lines("a prompt p", "a resource x:/2", "a resource y:/linked", "a tool t", cachedOfB), cached(r))
}

func TestResourcesThatOnlyATemplateReachesGoWithIt(t *testing.T) {
	r := library2(t)
	c := r.Contents()
	c.Put(asked(Resource, "a", "x:/deep")) // never listed, but the template matches it
	c.Put(asked(Resource, "a", "x:/linked"))
	r.RecordLink("a", "x:/linked")
	set(r, "a", Resource, "x:/1", "x:/9")
	require.NotNil(t, c.Last(Resource, "a", "x:/deep"))
	set(r, "a", Template, "other:{v}")
	require.Nil(t, c.Last(Resource, "a", "x:/deep"))
	require.NotNil(t, c.Last(Resource, "a", "x:/1"), "listed")
	require.NotNil(t, c.Last(Resource, "a", "x:/linked"), "from the server")
}

func TestR2_04UpdatesReachTheDirectCopyAndTheTemplates(t *testing.T) {
	now := time.Unix(50, 0)
	for name, update := range map[string]func(r *Registry, uri string){
		"subscribed above": func(r *Registry, uri string) {
			r.SetSubscription(SubscriptionState{Server: "a", URI: "x:", Status: SubscriptionOn})
			r.ResourceUpdated("a", uri)
		},
		"subscribed": func(r *Registry, uri string) {
			r.SetSubscription(SubscriptionState{Server: "a", URI: uri, Status: SubscriptionOn})
			r.ResourceUpdated("a", uri)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := library2(t)
			r.opt.Now = func() time.Time { return now }
			c := r.Contents()
			direct, copied := c.Last(Resource, "a", "x:/1"), c.Last(Template, "a", "x:/{v}")
			require.NotSame(t, direct, copied)
			ch := r.Watch(t.Context(), Cached)
			update(r, "x:/1")
			require.Equal(t, Cached, <-ch)
			require.Equal(t, lines("a prompt p", "a resource x:/1 (updated)", "a template x:/{v} (updated)", "a tool t", cachedOfB), cached(r))
			require.False(t, direct.Stale, "returned contents stay unchanged")
			now := c.Last(Resource, "a", "x:/1")
			require.Equal(t, direct.Result, now.Result, "can still be shown")
			require.Equal(t, direct.Seq, now.Seq)
			update(r, "x:/1")
			require.Same(t, now, c.Last(Resource, "a", "x:/1"), "stale already")
			require.Empty(t, ch)
			fresh := c.Put(&Invocation{Kind: Resource, Server: "a", Name: "x:/1", Success: true, Time: time.Unix(51, 0)})
			require.False(t, fresh.Stale)
		})
	}
}

func TestUpdatesThatNobodySubscribedToAreIgnored(t *testing.T) {
	r := library2(t)
	ch := r.Watch(t.Context())
	r.ResourceUpdated("a", "x:/1")
	r.ResourceUpdated("a", "x:/7")
	r.ResourceUpdated("nobody", "x:/1")
	require.Empty(t, ch)
	require.False(t, r.Contents().Last(Resource, "a", "x:/1").Stale)
}

// An update while an answer is in flight counts as an update after it.
func TestUpdatesDuringAReadCountAsThoseAfterIt(t *testing.T) {
	for _, c := range []struct {
		subscribed, updated, read string
		stale                     bool
	}{
		{"x://h/d/f", "x://h/d/f", "x://h/d/f", true},
		{"x://h/d", "x://h/d/f", "x://h/d/f", true},
		{"x://h/d", "x://h/d/g", "x://h/d/f", false},
		{"x://h/d", "x://h/d/f", "x://h/d", true},
		{"x://h/d/g", "x://h/d/f", "x://h/d/f", false},
		{"", "x://h/d/f", "x://h/d/f", false},
	} {
		for _, during := range []bool{false, true} {
			now := time.Unix(50, 0)
			r := catalog(t, Options{Now: func() time.Time { return now }}, "a resource "+c.read)
			if c.subscribed != "" {
				r.SetSubscription(SubscriptionState{Server: "a", URI: c.subscribed, Status: SubscriptionOn})
			}
			inv := asked(Resource, "a", c.read)
			inv.Time = now
			now = time.Unix(51, 0)
			if during {
				r.ResourceUpdated("a", c.updated)
				r.DropSubscription("a", c.subscribed)
				r.Contents().Put(inv)
			} else {
				r.Contents().Put(inv)
				r.ResourceUpdated("a", c.updated)
			}
			got := r.Contents().Last(Resource, "a", c.read)
			require.Equal(t, c.stale, got.Stale, "%+v, during: %v", c, during)
		}
	}
}

func TestWhatLeavesItsListWhileItIsReadIsNotKept(t *testing.T) {
	now := time.Unix(50, 0)
	r := catalog(t, Options{Now: func() time.Time { return now }}, `
		a resource x:/1
		a resource x:/2
		a template y:/{v}
		a prompt p
		a tool t
		b resource x:/1`)
	c := r.Contents()
	put := func(sec int64, inv *Invocation) *Invocation {
		inv.Time = time.Unix(sec, 0)
		require.Equal(t, inv.Result, c.Put(inv).Result, "returned anyway")
		return c.Last(inv.Kind, inv.Server, inv.Name)
	}
	now = time.Unix(60, 0)
	set(r, "a", Resource, "x:/2")
	set(r, "a", Template)
	set(r, "a", Prompt)
	set(r, "a", Tool)
	r.RecordLink("a", "x:/1") // as its contents had that URI
	for _, gone := range []*Invocation{
		asked(Resource, "a", "x:/1"), asked(Resource, "a", "y:/deep"), asked(Prompt, "a", "p"), expanded("a", "y:/{v}", "y:/1"),
	} {
		require.Nil(t, put(59, gone), gone.Name)
	}
	for _, kept := range []*Invocation{asked(Resource, "a", "x:/2"), asked(Tool, "a", "t"), asked(Resource, "b", "x:/1")} {
		require.NotNil(t, put(59, kept), kept.Name)
	}
	require.NotNil(t, put(61, asked(Resource, "a", "x:/1")), "requested later by its link")
	set(r, "a", Resource, "x:/1", "x:/2")
	require.NotNil(t, put(61, asked(Resource, "a", "x:/1")))
}

func TestMoreMayLeaveAListThanIsRemembered(t *testing.T) {
	now := time.Unix(50, 0)
	r := New(Options{Servers: []string{"a"}, Now: func() time.Time { return now }})
	uris := make([]string, cache.MaxLastSeen+10)
	for i := range uris {
		uris[i] = fmt.Sprintf("x:/%05d", i)
	}
	set(r, "a", Resource, uris...)
	set(r, "a", Prompt, "p")
	kept := uris[len(uris)/2]
	now = time.Unix(60, 0)
	set(r, "a", Resource, kept)
	for _, uri := range []string{uris[0], uris[len(uris)-1]} {
		inv := asked(Resource, "a", uri)
		inv.Time = time.Unix(59, 0)
		r.Contents().Put(inv)
		require.Nil(t, r.Contents().Last(Resource, "a", uri))
	}
	for _, inv := range []*Invocation{asked(Resource, "a", kept), asked(Prompt, "a", "p")} {
		inv.Time = time.Unix(59, 0)
		r.Contents().Put(inv)
		require.NotNil(t, r.Contents().Last(inv.Kind, "a", inv.Name))
	}
	require.LessOrEqual(t, r.contents.recentEvents["a"].removed.Len(), cache.MaxLastSeen)
	for i := range 3 * cache.MaxLastSeen {
		r.contents.recentEvents["a"].updated.Record(uint64(i), now)
	}
	require.Equal(t, cache.MaxLastSeen, r.contents.recentEvents["a"].updated.Len())
	remove(r, "a")
	require.Empty(t, r.contents.recentEvents)
}

func TestMoreURIsMayBeUpdatedThanAreRemembered(t *testing.T) {
	now := time.Unix(50, 0)
	r := catalog(t, Options{Now: func() time.Time { return now }}, "a resource x:/1")
	r.SetSubscription(SubscriptionState{Server: "a", URI: "x:/1", Status: SubscriptionOn})
	r.SetSubscription(SubscriptionState{Server: "a", URI: "y:", Status: SubscriptionOn})
	r.ResourceUpdated("a", "x:/1")
	for i := range cache.MaxLastSeen {
		r.ResourceUpdated("a", fmt.Sprintf("y:/%d", i))
	}
	inv := asked(Resource, "a", "x:/1")
	inv.Time = time.Unix(49, 0)
	require.Equal(t, StaleUpdated, r.Contents().Put(inv).StaleReason, "its subscription reports changes")
}

func TestWhatTooManyTemplatesMayHaveReachedGoesWithThem(t *testing.T) {
	r := catalog(t, Options{}, "a resource x:/1")
	templates := make([]string, 200)
	for i := range templates {
		templates[i] = fmt.Sprintf("x:{+a}{+b}%d", i)
	}
	set(r, "a", Template, templates...)
	deep := "x:" + strings.Repeat("a/", 3000)
	r.Contents().Put(asked(Resource, "a", deep))
	r.Contents().Put(asked(Resource, "a", "x:/1"))
	set(r, "a", Template, "y:{v}")
	require.Equal(t, "a resource x:/1", cached(r), "others may have changed")
}

func TestAFlatIDThatChangesIsNoLeaving(t *testing.T) {
	now := time.Unix(50, 0)
	r := New(Options{Servers: []string{"a"}, Flat: true, Now: func() time.Time { return now }})
	set(r, "a", Resource, "x:/1")
	now = time.Unix(60, 0)
	set(r, "a", Resource, "x:/1", "x://1") // both get a suffix now
	inv := asked(Resource, "a", "x:/1")
	inv.Time = time.Unix(59, 0)
	r.Contents().Put(inv)
	require.NotNil(t, r.Contents().Last(Resource, "a", "x:/1"))
}

func TestUpdatesBelowAURICountForIt(t *testing.T) {
	for _, c := range []struct {
		watched, updated string
		counts           bool
	}{
		{"x://h/dir", "x://h/dir", true},
		{"x://h/dir", "x://h/dir/f", true},
		{"x://h/dir/", "x://h/dir/f", true},
		{"x://h/dir", "x://h/dir/", true},
		{"x://h", "x://h/dir/f", true},
		{"x://h/dir/", "x://h/dir", false},
		{"x://h/dir", "x://h/directory", false},
		{"x://h/dir/f", "x://h/dir", false},
		{"x://h/dir", "x://h/dir" + strings.Repeat("/", maxDeepURI), false},
	} {
		r := catalog(t, Options{}, "a resource "+c.watched)
		r.SetSubscription(SubscriptionState{Server: "a", URI: c.watched, Status: SubscriptionOn})
		r.Contents().Put(asked(Resource, "a", c.watched))
		r.ResourceUpdated("a", c.updated)
		row, ok := r.Subscription("a", c.watched)
		require.True(t, ok)
		require.Equal(t, c.counts, row.Updates == 1, "%.40s watched, %.40s updated: %d", c.watched, c.updated, row.Updates)
		require.Equal(t, c.counts, r.Contents().Last(Resource, "a", c.watched).Stale)
	}
}

func TestTheListedFormOfAnExpansionIsUnderstood(t *testing.T) {
	for _, c := range []struct {
		flat     bool
		expanded string
	}{
		{false, "mcp://a/x:/1"}, {false, "a_x_1"}, {false, "x:/1"}, {true, "a_x_1"}, {true, "x:/1"},
	} {
		r := catalog(t, Options{Flat: c.flat}, "a resource x:/1\na template x:/{v}")
		inv := expanded("a", "x:/{v}", "")
		inv.Expanded = c.expanded
		r.Contents().Put(inv)
		r.SetSubscription(SubscriptionState{Server: "a", URI: "x:/1", Status: SubscriptionOn})
		r.ResourceUpdated("a", "x:/1")
		require.True(t, r.Contents().Last(Template, "a", "x:/{v}").Stale, "%+v", c)
	}
}

func TestR2_09ALostConnectionMarksOnlyItsServer(t *testing.T) {
	r := library2(t)
	ch := r.Watch(t.Context(), Cached)
	r.SetState("a", ServerState{State: StateRetrying, LastError: "gone"})
	require.Equal(t, Cached, <-ch)
	require.Equal(t, lines("a prompt p (connection lost)", "a resource x:/1 (connection lost)",
		"a template x:/{v} (connection lost)", "a tool t (connection lost)", cachedOfB), cached(r))
	r.SetState("a", ServerState{State: StateConnecting})
	require.Empty(t, ch, "lost before")
	r.SetVisible("a", false) // the grace period is over
	require.Equal(t, Cached, <-ch)
	require.Equal(t, lines("a tool t (connection lost)", cachedOfB), cached(r))
}

func TestContentsGoWithTheServer(t *testing.T) {
	for name, leave := range map[string]func(r *Registry){
		"disabled": func(r *Registry) {
			r.SetVisible("a", false)
			r.SetState("a", ServerState{State: StateDisabled})
		},
		"removed": func(r *Registry) { remove(r, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			r := library2(t)
			leave(r)
			require.Equal(t, cachedOfB, cached(r))
			for _, inv := range []*Invocation{asked(Tool, "a", "t"), asked(Resource, "a", "x:/1"), asked(Tool, "nobody", "t")} {
				kept := r.Contents().Put(inv)
				require.Equal(t, inv.Result, kept.Result, "a late answer is returned")
			}
			require.Equal(t, cachedOfB, cached(r), "and not kept")
		})
	}
}

func TestAnswersThatWereOvertakenAreStale(t *testing.T) {
	now := time.Unix(50, 0)
	r := catalog(t, Options{Now: func() time.Time { return now }}, "a resource x:/1\na resource x:/2\na template x:/{v}")
	r.SetState("a", ServerState{State: StateReady})
	r.SetSubscription(SubscriptionState{Server: "a", URI: "x:/1", Status: SubscriptionOn})
	r.ResourceUpdated("a", "x:/1")
	at := func(inv *Invocation, sec int64) *Invocation {
		inv.Time = time.Unix(sec, 0)
		return r.Contents().Put(inv)
	}
	require.Equal(t, StaleUpdated, at(asked(Resource, "a", "x:/1"), 49).StaleReason)
	require.Equal(t, StaleUpdated, at(expanded("a", "x:/{v}", "x:/1"), 49).StaleReason)
	require.False(t, at(asked(Resource, "a", "x:/2"), 49).Stale)
	require.False(t, at(asked(Resource, "a", "x:/1"), 51).Stale)
	now = time.Unix(60, 0)
	r.SetState("a", ServerState{State: StateRetrying})
	require.Equal(t, StaleLost, at(asked(Resource, "a", "x:/2"), 59).StaleReason)
	require.False(t, at(asked(Resource, "a", "x:/2"), 61).Stale)
}

func TestContentsAreBoundedByUse(t *testing.T) {
	r := New(Options{Servers: []string{"a"}})
	c := r.Contents()
	result := json.RawMessage(strings.Repeat("x", 4<<20-contentOverhead-100))
	put := func(i int) {
		inv := asked(Tool, "a", fmt.Sprint("t", i))
		inv.Result = result
		require.NotNil(t, c.Put(inv))
	}
	const fit = maxContents / (4 << 20)
	for i := range fit {
		put(i)
	}
	n, held := c.Stats()
	require.Equal(t, fit, n)
	require.LessOrEqual(t, held, int64(maxContents))
	require.NotNil(t, c.Last(Tool, "a", "t0"), "used now")
	c.All() // not a use
	put(fit)
	put(fit + 1)
	n, held = c.Stats()
	require.Equal(t, fit, n)
	require.LessOrEqual(t, held, int64(maxContents))
	require.NotNil(t, c.Last(Tool, "a", "t0"))
	require.Nil(t, c.Last(Tool, "a", "t1"))
	require.Nil(t, c.Last(Tool, "a", "t2"))
	require.NotNil(t, c.Last(Tool, "a", "t3"))
	require.Equal(t, fit, c.ClearAll())
	n, held = c.Stats()
	require.Equal(t, "0 0", fmt.Sprint(n, held))
}

func TestAHugeResultIsReturnedButNotKept(t *testing.T) {
	r := library2(t)
	inv := asked(Resource, "a", "x:/1")
	inv.Result = make(json.RawMessage, maxContent)
	kept := r.Contents().Put(inv)
	require.Len(t, kept.Result, maxContent)
	require.Nil(t, r.Contents().Last(Resource, "a", "x:/1"), "the previous one is not the last one")
	_, held := r.Contents().Stats()
	require.Less(t, held, int64(maxContent))
}

func TestClear(t *testing.T) {
	r := library2(t)
	c := r.Contents()
	ch := r.Watch(t.Context(), Cached)
	require.False(t, c.Clear(Resource, "a", "x:/2"))
	require.False(t, c.Clear(Resource, "nobody", "x:/1"))
	require.Zero(t, c.ClearServer("nobody"))
	require.Empty(t, ch)
	require.True(t, c.Clear(Resource, "a", "x:/1"))
	require.Equal(t, Cached, <-ch)
	require.Equal(t, lines("a prompt p", "a template x:/{v}", "a tool t", cachedOfB), cached(r))
	require.Equal(t, 3, c.ClearServer("a"))
	require.Equal(t, Cached, <-ch)
	require.Equal(t, cachedOfB, cached(r))
	require.Equal(t, 4, c.ClearAll())
	require.Equal(t, Cached, <-ch)
	require.Zero(t, c.ClearAll())
	require.Empty(t, ch)
	n, held := c.Stats()
	require.Equal(t, "0 0", fmt.Sprint(n, held))
	require.NotNil(t, c.Put(asked(Tool, "a", "t")))
	require.Equal(t, "a tool t", cached(r))
}

// After concurrent operations, the counters match the contents.
func TestContentsUnderConcurrency(t *testing.T) {
	r := library2(t)
	c := r.Contents()
	c.max = 20_000
	var each sync.WaitGroup
	for w := range 4 {
		each.Go(func() {
			for i := range 300 {
				uri := fmt.Sprintf("x:/%d", i%7)
				c.Put(asked(Resource, "a", uri))
				c.Put(expanded("b", "x:/{v}", uri))
				c.Last(Resource, "a", uri)
				r.markContentsUpdated("a", uri, time.Now())
				r.SetSubscription(SubscriptionState{Server: "b", URI: uri, Status: SubscriptionOn})
				r.ResourceUpdated("b", uri)
				switch (i + w) % 9 {
				case 0:
					set(r, "a", Resource, uri)
				case 1:
					r.SetState("b", ServerState{State: StateRetrying})
					r.SetState("b", ServerState{State: StateReady})
				case 2:
					r.SetVisible("a", i%2 == 0)
				case 3:
					c.Clear(Resource, "a", uri)
				case 4:
					c.ClearServer("b")
				case 5:
					c.All()
					c.Stats()
				case 6:
					r.DropSubscription("b", uri)
					r.Subscriptions()
				}
			}
		})
	}
	each.Wait()
	n, held := c.Stats()
	all := c.All()
	require.Len(t, all, n)
	var want int64
	found := 0
	for _, inv := range all {
		want += inv.size()
		if c.Last(inv.Kind, inv.Server, inv.Name) == inv {
			found++
		}
	}
	require.Equal(t, want, held)
	require.Equal(t, n, found)
	uris := 0
	for _, s := range c.servers {
		for _, ns := range s.byURI {
			uris += len(ns)
		}
	}
	for _, inv := range all {
		if inv.Kind == Resource || inv.Kind == Template {
			uris--
		}
	}
	require.Zero(t, uris)
	c.ClearAll()
	for _, s := range []string{"a", "b"} {
		require.Zero(t, c.ClearServer(s))
	}
}
