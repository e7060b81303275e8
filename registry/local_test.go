package registry

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func noCall(context.Context, []byte) ([]byte, error) { return nil, nil }
func noRead(context.Context) (string, error)         { return "", nil }

func TestLocalResources(t *testing.T) {
	r := catalog(t, Options{}, "s resource note:1\ns resource z:1")
	require.NoError(t, r.AddResource(
		LocalResource{URI: "note:1", Name: "mine", MIME: "text/plain", Read: noRead},
		LocalResource{URI: "goblin://b", Read: noRead}))
	require.Equal(t, []string{"goblin://b", "mcp://s/note:1", "mcp://s/z:1", "note:1"}, listed(r.Load(), Resource))
	for _, name := range []string{"note:1", "mcp://goblin/note:1", "goblin_note_1"} {
		got, err := r.ResolveResource(name)
		require.NoError(t, err, name)
		require.NotNil(t, got.Local, name)
		require.Equal(t, "note:1", got.Local.Resource.URI)
		require.Equal(t, "note:1", got.Listed)
	}
	_, err := r.ResolveResource("mcp://goblin/nope")
	require.Error(t, err)
	for _, bad := range []LocalResource{{URI: "note:1", Read: noRead}, {URI: "plain", Read: noRead}, {URI: "x:1"}} {
		require.Error(t, r.AddResource(LocalResource{URI: "ok:1", Read: noRead}, bad))
	}
	require.Equal(t, 4, r.Load().Count(Resource), "all or none")
	for _, bad := range []string{`{}`, `{"name":"a b"}`, `{"name":7}`, `x`} {
		require.Error(t, r.AddTool(LocalTool{Definition: []byte(bad), Call: noCall}))
	}
	require.Error(t, r.AddTool(LocalTool{Definition: []byte(`{"name":"a"}`)}))
	def := LocalTool{Definition: []byte(`{"name":"a"}`), Call: noCall}
	require.Error(t, r.AddTool(def, def))
	require.NoError(t, r.AddTool(def))
	require.Error(t, r.AddTool(def))
	for _, name := range []string{"a", "goblin/a"} {
		got, err := r.ResolveTool(name)
		require.NoError(t, err)
		require.NotNil(t, got.Local.Tool)
	}
}

func TestServersResourceShowsStates(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := catalog(t, Options{Servers: []string{"a", "b"}, Now: func() time.Time { return now }}, "a tool x\na tool y")
	require.NoError(t, r.AddResource(ServersResource(r)))
	r.SetState("a", ServerState{
		State: StateReady, ServerName: "A", ServerVersion: "1", Capabilities: []byte(`{"tools":{}}`),
		Latency: 1500 * time.Microsecond, Listed: true,
	})
	target, err := r.ResolveResource("goblin://servers")
	require.NoError(t, err)
	text, err := target.Local.Resource.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "application/json", target.Entry.MIME)
	var got map[string][]map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Equal(t, map[string]any{
		"name": "a", "state": "ready", "since": "2026-01-02T03:04:05Z",
		"serverInfo": map[string]any{"name": "A", "version": "1"}, "capabilities": map[string]any{"tools": map[string]any{}},
		"counts": map[string]any{"tools": 2.0, "prompts": 0.0, "resources": 0.0, "resourceTemplates": 0.0},
		"listed": true, "stale": false, "restarts": 0.0, "latencyMs": 1.5,
	}, got["servers"][0])
	require.Equal(t, "stopped", got["servers"][1]["state"])
}

func TestStates(t *testing.T) {
	now := time.Unix(1, 0)
	r := New(Options{Servers: []string{"s"}, Now: func() time.Time { return now }})
	r.SetState("s", ServerState{State: StateReady})
	now = time.Unix(2, 0)
	r.SetState("s", ServerState{State: StateReady, Restarts: 1})
	s, ok := r.State("s")
	require.True(t, ok)
	require.Equal(t, time.Unix(1, 0), s.Since, "since the state, not since the last report")
	before := r.Load()
	r.SetState("s", ServerState{State: StateRetrying, LastError: "gone"})
	require.Same(t, before, r.Load(), "states create no snapshot")
	s, _ = r.State("s")
	require.Equal(t, time.Unix(2, 0), s.Since)
	r.SetState("nobody", ServerState{State: StateReady})
	_, ok = r.State("nobody")
	require.False(t, ok)
	_, ok = r.State(Local)
	require.False(t, ok)

	set(r, "s", Tool, "x")
	r.RecordLink("s", "x:1")
	r.SetState("s", ServerState{State: StateDisabled})
	_, err := r.ResolveTool("x")
	require.Error(t, err, "a disabled server owns nothing")
	_, err = r.ResolveResource("mcp://s/x:1")
	require.ErrorContains(t, err, ReasonNotFound)
}

func TestSubscriptionsCountUpdates(t *testing.T) {
	now := time.Unix(5, 0)
	r := New(Options{Servers: []string{"s"}, Now: func() time.Time { return now }})
	r.ResourceUpdated("s", "x:1")
	require.Empty(t, r.Subscriptions())
	r.SetSubscription(SubscriptionState{Server: "s", URI: "x:1", Status: SubscriptionRequested, Holders: 1})
	r.ResourceUpdated("s", "x:1")
	r.ResourceUpdated("s", "x:1")
	r.SetSubscription(SubscriptionState{Server: "s", URI: "x:1", Status: SubscriptionOn, Holders: 2})
	r.SetSubscription(SubscriptionState{Server: "s", URI: "x:0", Status: SubscriptionRefused, Error: "no"})
	require.Equal(t, []SubscriptionState{
		{Server: "s", URI: "x:0", Listed: "mcp://s/x:0", Status: SubscriptionRefused, Error: "no"},
		{Server: "s", URI: "x:1", Listed: "mcp://s/x:1", Status: SubscriptionOn, Holders: 2, Updates: 2, LastUpdate: now},
	}, r.Subscriptions())
	r.DropSubscription("s", "x:0")
	require.Len(t, r.Subscriptions(), 1)
}
