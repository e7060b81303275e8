package registry

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// told returns the log records about changes after the number from.
func told(r *Registry, from uint64) (out []string) {
	for _, rec := range r.Logs().Window(from, -1) {
		if rec.Source != SourceEvent {
			continue
		}
		text := rec.Text
		if rec.Server != "" {
			text = rec.Server + ": " + text
		}
		if rec.Level != slog.LevelInfo {
			text = rec.Level.String() + " " + text
		}
		out = append(out, text)
	}
	return out
}

func TestTheJournalTellsWhatChanged(t *testing.T) {
	r := New(Options{Servers: []string{"a"}})
	c := r.Contents()
	on := SubscriptionState{Server: "a", URI: "x:/1", Status: SubscriptionOn}
	for _, step := range []struct {
		does string
		do   func()
		want []string
	}{
		{
			"first list", func() { set(r, "a", Tool, "a", "b", "c", "d", "e") },
			[]string{"a: tools: 0 → 5 (+5 -0): +a +b +c"},
		},
		{"the same list", func() { set(r, "a", Tool, "e", "d", "c", "b", "a") }, nil},
		{
			"another list", func() { set(r, "a", Tool, "a", "b", "f", "g") },
			[]string{"a: tools: 5 → 4 (+2 -3): +f +g -c -d -e"},
		},
		{"another definition", func() {
			r.SetList("a", Tool, [][]byte{item(Tool, "b"), item(Tool, "f"), item(Tool, "g"), []byte(`{"name":"a"}`)})
		}, []string{"a: tools: 4 → 4, 1 changed; a: description removed"}},
		{
			"resources", func() { set(r, "a", Resource, "x:/1", "x:/2") },
			[]string{"a: resources: 0 → 2 (+2 -0): +x:/1 +x:/2"},
		},
		{
			"a name that would fake a line", func() { set(r, "a", Prompt, "p\nq") },
			[]string{`a: prompts: 0 → 1 (+1 -0): +"p\nq"`},
		},
		{"no more", func() { set(r, "a", Prompt) }, []string{`a: prompts: 1 → 0 (+0 -1): -"p\nq"`}},
		{
			"connecting", func() { r.SetState("a", ServerState{State: StateConnecting}) },
			[]string{"a: stopped → connecting"},
		},
		{
			"ready", func() { r.SetState("a", ServerState{State: StateReady, LastError: "of old"}) },
			[]string{"a: connecting → ready"},
		},
		{"latency", func() { r.SetState("a", ServerState{State: StateReady, Latency: 1}) }, nil},
		{
			"stored", func() { c.Put(asked(Resource, "a", "x:/1")); c.Put(expanded("a", "x:/{v}", "x:/1")) },
			[]string{"a: content stored: resource x:/1, 6 B", "a: content stored: template x:/{v}, 8 B"},
		},
		{
			"replaced", func() { c.Put(&Invocation{Kind: Resource, Server: "a", Name: "x:/1", Error: "no such file"}) },
			[]string{"WARN a: content replaced: resource x:/1, failed: no such file"},
		},
		{
			"too large", func() { c.Put(&Invocation{Kind: Tool, Server: "a", Name: "t", Result: make([]byte, 17<<20)}) },
			[]string{"WARN a: content not cached: tool t is 17.0 MiB, limit 16.0 MiB"},
		},
		{
			"asked", func() { s := on; s.Status = SubscriptionRequested; r.SetSubscription(s) },
			[]string{"a: subscription asked: mcp://a/x:/1"},
		},
		{
			"on", func() { r.SetSubscription(on); r.SetSubscription(on) },
			[]string{"a: subscription on: mcp://a/x:/1"},
		},
		{"refused", func() {
			r.SetSubscription(SubscriptionState{Server: "a", URI: "x:/2", Status: SubscriptionRefused, Error: "no"})
		}, []string{"WARN a: subscription refused: mcp://a/x:/2: no"}},
		{
			"updated", func() { r.ResourceUpdated("a", "x:/1") },
			[]string{"a: updated: mcp://a/x:/1", "a: content stale: 2, updated: x:/1"},
		},
		{
			"ended", func() { r.DropSubscription("a", "x:/1"); r.DropSubscription("a", "x:/1") },
			[]string{"a: subscription ended after 1 update: mcp://a/x:/1"},
		},
		{
			"a list without it", func() { set(r, "a", Resource, "x:/2") },
			[]string{"a: resources: 2 → 1 (+0 -1): -x:/1", "a: content dropped: 1, resources no longer listed"},
		},
		{
			"idle, without a loss", func() { r.SetState("a", ServerState{State: StateSleeping}) },
			[]string{"a: ready → idle"},
		},
		{"awake", func() { r.SetState("a", ServerState{State: StateReady}) }, []string{"a: idle → ready"}},
		{
			"lost", func() { r.SetState("a", ServerState{State: StateRetrying, LastError: "broken pipe"}) },
			[]string{"WARN a: ready → retrying: broken pipe", "a: content stale: 1, connection lost"},
		},
		{"tried again in vain", func() {
			r.SetState("a", ServerState{State: StateConnecting, LastError: "broken pipe"})
			r.SetState("a", ServerState{State: StateFailed, LastError: "broken pipe"})
		}, nil},
		{"failed in another way", func() {
			r.SetState("a", ServerState{State: StateConnecting, LastError: "broken pipe"})
			r.SetState("a", ServerState{State: StateFailed, LastError: "no such file"})
		}, []string{"WARN a: connecting → failed: no such file"}},
		{"ready, and its error not forgotten", func() {
			r.SetState("a", ServerState{State: StateReady, LastError: "no such file"})
		}, []string{"a: failed → ready"}},
		{"lost by the error of before", func() {
			r.SetState("a", ServerState{State: StateFailed, LastError: "no such file"})
		}, []string{"WARN a: ready → failed: no such file"}},
		{
			"hidden", func() { r.SetVisible("a", false) },
			[]string{"a: entries hidden", "a: content dropped: 1, entries hidden"},
		},
		{"listed", func() { r.SetVisible("a", true) }, []string{"a: entries listed again"}},
		{
			"clear", func() { c.Put(asked(Tool, "a", "a")); c.Clear(Tool, "a", "a") },
			[]string{"a: content stored: tool a, 3 B", "a: content cleared: tool a"},
		},
		{
			"clear all", func() { c.Put(asked(Tool, "a", "a")); c.Put(asked(Tool, "a", "b")); c.ClearServer("a"); c.ClearAll() },
			[]string{"a: content stored: tool a, 3 B", "a: content stored: tool b, 3 B", "a: content cleared: 2"},
		},
		{
			"disabled", func() { c.Put(asked(Tool, "a", "a")); r.SetState("a", ServerState{State: StateDisabled}) },
			[]string{"a: content stored: tool a, 3 B", "a: failed → disabled", "a: content dropped: 1, disabled"},
		},
		{"added", func() { add(r, "late") }, []string{"late: server added"}},
		{
			"removed", func() { remove(r, "late"); remove(r, "a") },
			[]string{"late: server removed", "a: server removed, 1 subscription paused"},
		},
		{
			"local", func() { require.NoError(t, r.AddResource(ServersResource(r))) },
			[]string{"goblin: resources: 0 → 1 (+1 -0): +goblin://servers"},
		},
	} {
		from := r.Logs().Stats().Next
		step.do()
		require.Equal(t, step.want, told(r, from), step.does)
	}
}

func TestEvictionIsTold(t *testing.T) {
	r := New(Options{Servers: []string{"a"}})
	r.Contents().max = 3 * contentOverhead
	for i := range 4 {
		r.Contents().Put(asked(Tool, "a", fmt.Sprint(i)))
	}
	all := told(r, 0)
	require.Contains(t, all, "content evicted: 1, to stay within 1.5 KiB")
}

func TestUpdatesAreToldOnceASecondAndCounted(t *testing.T) {
	now := time.Unix(100, 0)
	r := catalog(t, Options{Now: func() time.Time { return now }}, "a resource x:/1")
	r.SetSubscription(SubscriptionState{Server: "a", URI: "x:/1", Status: SubscriptionOn})
	r.Contents().Put(asked(Resource, "a", "x:/1"))
	from := r.Logs().Stats().Next
	for range 10_000 {
		r.ResourceUpdated("a", "x:/1")
	}
	require.Len(t, told(r, from), 2, "the update, and that the content is stale")
	from = r.Logs().Stats().Next
	now = now.Add(time.Second)
	r.ResourceUpdated("a", "x:/1/below")
	require.Equal(t, []string{"a: updated 10000 times: mcp://a/x:/1"}, told(r, from))
	row, _ := r.Subscription("a", "x:/1")
	require.Equal(t, uint64(10_001), row.Updates)
}

func TestAnUpdateIsToldOfTheNearestThatIsSubscribed(t *testing.T) {
	r := catalog(t, Options{}, "a resource x:/1")
	for _, uri := range []string{"x:/1", "x:/1/2", "x:/1/2/3/4"} {
		r.SetSubscription(SubscriptionState{Server: "a", URI: uri, Status: SubscriptionOn})
	}
	from := r.Logs().Stats().Next
	r.ResourceUpdated("a", "x:/1/2/3")
	require.Equal(t, []string{"a: updated: mcp://a/x:/1/2"}, told(r, from))
	for uri, updates := range map[string]uint64{"x:/1": 1, "x:/1/2": 1, "x:/1/2/3/4": 0} {
		row, _ := r.Subscription("a", uri)
		require.Equal(t, updates, row.Updates, uri)
	}
}

func TestManyURIsDoNotFloodTheJournal(t *testing.T) {
	now := time.Unix(100, 0)
	r := catalog(t, Options{Now: func() time.Time { return now }}, "a resource x:/1")
	uri := func(i int) string { return fmt.Sprintf("x:/%d", i) }
	for i := range 1000 {
		r.SetSubscription(SubscriptionState{Server: "a", URI: uri(i), Status: SubscriptionOn})
		r.Contents().Put(asked(Resource, "a", uri(i)))
	}
	for i := range 1000 {
		r.ResourceUpdated("a", uri(i))
	}
	require.LessOrEqual(t, len(told(r, 0)), 1+3*maxEvents)
	now = now.Add(time.Second)
	from := r.Logs().Stats().Next
	r.DropSubscription("a", uri(0))
	r.Contents().Put(asked(Resource, "a", uri(0)))
	r.ResourceUpdated("a", uri(999))
	require.Equal(t, []string{
		"a: subscription ended after 1 update: mcp://a/x:/0 (950 similar records suppressed)",
		"a: content replaced: resource x:/0, 6 B (1950 similar records suppressed)",
		"a: updated 2 times: mcp://a/x:/999",
	}, told(r, from))
}

func TestSecretsAreRedactedBeforeNamesAreCut(t *testing.T) {
	const secret = "sk-0123456789-0123456789"
	r := New(Options{Servers: []string{"a"}, Redact: func(s string) string { return strings.ReplaceAll(s, secret, "[hidden]") }})
	uri := "x:/" + strings.Repeat("d", maxShort-10) + secret
	set(r, "a", Resource, uri)
	r.SetSubscription(SubscriptionState{Server: "a", URI: uri, Status: SubscriptionRefused, Error: secret})
	r.SetState("a", ServerState{State: StateFailed, LastError: secret})
	inv := asked(Resource, "a", uri)
	inv.Success, inv.Error = false, strings.Repeat("e", maxField-5)+secret
	r.Contents().Put(inv)
	r.ResourceUpdated("a", uri)
	r.Contents().Clear(Resource, "a", uri)
	all := strings.Join(told(r, 0), "\n")
	require.Len(t, told(r, 0), 7)
	require.Contains(t, all, "[hidden]")
	require.NotContains(t, all, "sk-")
}

func TestSubscriptionsAreFoundOneByOneAndInOrder(t *testing.T) {
	r := New(Options{Servers: []string{"a", "b"}})
	ids := make([]string, maxHolders+5)
	for i := range ids {
		ids[i] = strings.Repeat(fmt.Sprint(i%10), maxField+1)
	}
	for _, s := range []string{"b", "a"} {
		for _, uri := range []string{"x:2", "x:1"} {
			r.SetSubscription(SubscriptionState{Server: s, URI: uri, Status: SubscriptionOn, Holders: len(ids), Sessions: ids})
		}
	}
	show := func() (out []string) {
		for _, row := range r.Subscriptions() {
			out = append(out, fmt.Sprint(row.Server, " ", row.URI, " ", row.Updates))
		}
		return out
	}
	require.Equal(t, []string{"a x:1 0", "a x:2 0", "b x:1 0", "b x:2 0"}, show())
	r.ResourceUpdated("a", "x:2")
	require.Equal(t, []string{"a x:1 0", "a x:2 1", "b x:1 0", "b x:2 0"}, show(), "counted although nothing was sorted")
	r.DropSubscription("a", "x:1")
	r.SetSubscription(SubscriptionState{Server: "b", URI: "x:0", Status: SubscriptionOn})
	require.Equal(t, []string{"a x:2 1", "b x:0 0", "b x:1 0", "b x:2 0"}, show())
	row, ok := r.Subscription("b", "x:1")
	require.True(t, ok)
	require.Equal(t, "mcp://b/x:1", row.Listed)
	require.Len(t, row.Sessions, maxHolders)
	require.Equal(t, ids[3][:maxField], row.Sessions[3])
	ids[0] = "changed"
	again, _ := r.Subscription("b", "x:1")
	require.NotEqual(t, "changed", again.Sessions[0])
	_, ok = r.Subscription("a", "x:1")
	require.False(t, ok)
	remove(r, "b")
	require.Equal(t, []string{"a x:2 1"}, show())
}
