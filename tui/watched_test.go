package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

// newSubscribedUI returns a UI with subscriptions of several clients.
func newSubscribedUI(t *testing.T, w, h int) *testUI {
	t.Helper()
	r := newTestUI(t, w, h, "files", "github")
	r.setReady("files").setReady("github")
	r.setList("files", registry.Resource, `{"uri":"file:///a.md","name":"a"}`, `{"uri":"file:///b.md","name":"b"}`)
	r.reg.SetSession(registry.Session{ID: "me", Screen: true})
	r.reg.SetSession(registry.Session{ID: "c1", Client: "claude"})
	r.reg.SetSession(registry.Session{ID: "c2", Client: "claude"})
	r.reg.SetSession(registry.Session{ID: "c3", Client: "cur\x1b[2Jsor"})
	r.reg.SetSubscription(registry.SubscriptionState{Server: "files", URI: "file:///a.md", Status: registry.SubscriptionOn, Holders: 4, Sessions: []string{"c1", "c3", "c2", "me"}, Updates: 3, LastUpdate: r.clock.now().Add(-90 * time.Second)})
	r.reg.SetSubscription(registry.SubscriptionState{Server: "files", URI: "file:///b.md", Status: registry.SubscriptionRefused, Error: "not allowed\x07"})
	r.reg.SetSubscription(registry.SubscriptionState{Server: "github", URI: "gh://x", Status: registry.SubscriptionRequested, Holders: 30})
	return r.refresh(registry.AllChanges)
}

func TestWatchedListsWhoHoldsWhat(t *testing.T) {
	t.Parallel()
	r := newSubscribedUI(t, 120, 30).keys("w")
	require.Contains(t, r.screen(), "Subscriptions 3")
	a := r.line("● files  file:///a.md ")
	require.Contains(t, a, "you, claude (2)")
	require.Contains(t, a, " 3 ")
	require.Contains(t, a, "1 min")
	require.Contains(t, r.screen(), `on  you, claude (2), cur\x1b[2Jsor`, "everything about the selected one")
	require.Contains(t, r.line("! files  file:///b.md "), `not allowed\x07`)
	require.Contains(t, r.line("gh://x"), "30 clients")
}

func TestTheDetailCountsNoScreenAmongClients(t *testing.T) {
	t.Parallel()
	r := newSubscribedUI(t, 120, 30)
	r.reg.SetSession(registry.Session{ID: "s1", Screen: true})
	r.reg.SetSession(registry.Session{ID: "s2", Screen: true})
	for _, held := range []struct {
		by   []string
		want string
	}{
		{[]string{"s1"}, "held by another UI"},
		{[]string{"me", "s1", "s2"}, "held by you, 2 other UIs"},
		{[]string{"c1", "s1"}, "held by 1 client, another UI"},
		{[]string{"me", "c1", "c2", "s1"}, "held by you, 2 others, another UI"},
		{[]string{"me"}, "held by you"},
	} {
		r.reg.SetSubscription(registry.SubscriptionState{Server: "files", URI: "file:///a.md", Status: registry.SubscriptionOn, Holders: len(held.by), Sessions: held.by})
		r.refresh(registry.Subscriptions).keys("4 g F l")
		text := strings.Join(strings.Fields(strings.NewReplacer("│", " ").Replace(r.screen())), " ")
		require.Contains(t, text, "on, "+held.want)
		r.keys("esc")
	}
}

func TestWatchedIsLive(t *testing.T) {
	t.Parallel()
	r := newSubscribedUI(t, 120, 30).keys("w")
	r.reg.ResourceUpdated("files", "file:///a.md")
	r.reg.DropSubscription("github", "gh://x")
	r.refresh(registry.Subscriptions)
	require.Contains(t, r.screen(), "Subscriptions 2")
	require.Contains(t, r.line("● files  file:///a.md "), " 4 ")
	require.Contains(t, r.line("● files  file:///a.md "), "0 s")
	r.reg.DropSession("c3")
	r.refresh(registry.Sessions)
	require.NotContains(t, r.screen(), `(2), cur\x1b`)
}

func TestWatchedGoesToTheResource(t *testing.T) {
	t.Parallel()
	r := newSubscribedUI(t, 120, 30).keys("4 / n o t h e r e enter 2 w j enter")
	require.Empty(t, r.app.Dialogs)
	require.Equal(t, pane.PaneResources, r.app.Open)
	e, ok := r.app.Panes[pane.PaneResources].(*pane.Resources).All.Table.Selected()
	require.True(t, ok, "the filter that hid it must be cleared")
	require.Equal(t, "file:///b.md", e.Name)

	r.keys("w G enter")
	require.Contains(t, r.screen(), "is not listed")
}

func TestWatchedBeginsAndEndsThisScreensSubscription(t *testing.T) {
	t.Parallel()
	r := newSubscribedUI(t, 120, 30)
	r.serveSubscriptions()
	r.keys("w s")
	require.Len(t, r.backend.requests, 1)
	require.Equal(t, "resources/unsubscribe", r.backend.requests[0].method)
	require.Contains(t, r.backend.requests[0].params, "a.md")
	r.refresh(registry.Subscriptions).keys("s")
	require.Equal(t, "resources/subscribe", r.backend.requests[1].method)
	require.Len(t, r.app.Dialogs, 1, "the list must stay")
}

func TestWatchedIsFilteredAndEmpty(t *testing.T) {
	t.Parallel()
	r := newSubscribedUI(t, 80, 24).keys("w /").typeText("github")
	require.Contains(t, r.screen(), "Subscriptions 1/3")
	r.keys("enter esc")
	require.Contains(t, r.screen(), "Subscriptions 3")
	r.keys("esc")
	require.Empty(t, r.app.Dialogs)
	r = newTestUI(t, 80, 24, "files").keys("w")
	require.Contains(t, r.screen(), "No subscriptions.")
	r.keys("j s enter esc")
	require.Empty(t, r.app.Dialogs)
}
