package tui

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/list"
	"goblin/tui/pane"
)

// manyDefinitions returns more definitions than are filtered inside Update.
func manyDefinitions(format string, n int) [][]byte {
	var raw [][]byte
	for i := range list.MaxSyncRows + n {
		raw = append(raw, fmt.Appendf(nil, format, i))
	}
	return raw
}

func TestGoingToAnItemWaitsForThePaneThatReads(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "files").setReady("files")
	const resource, template = `{"uri":"a:%05d","name":"x"}`, `{"uriTemplate":"a:%05d{x}","name":"x"}`
	for _, n := range []int{1, 3} {
		require.Empty(t, r.reg.SetList("files", registry.Resource, manyDefinitions(resource, n)))
		require.Empty(t, r.reg.SetList("files", registry.Template, manyDefinitions(template, n)))
		if n == 1 {
			r.refresh(registry.AllChanges)
		}
	}
	r.run(r.app.GoTo(pane.PaneResources, fmt.Sprintf("mcp://files/a:%05d", list.MaxSyncRows+2)))
	p := r.app.Panes[pane.PaneResources].(*pane.Resources)
	require.False(t, p.All.Reading, "the list must learn that its read finished")
	require.False(t, p.Templates.Reading)
	require.Equal(t, fmt.Sprintf("a:%05d", list.MaxSyncRows+2), p.Item().Name)
	require.Empty(t, r.reg.SetList("files", registry.Resource, manyDefinitions(resource, 9)))
	r.refresh(registry.Resources)
	require.Equal(t, list.MaxSyncRows+9, p.All.Table.Total(), "and must continue reading")
}

func TestGoingToAnItemClearsTheFilterThatHidesIt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"palette", "subscriptions", "traffic"} {
		t.Run(name, func(t *testing.T) {
			r := newSubscribedUI(t, 120, 40)
			require.Empty(t, r.reg.SetList("files", registry.Resource, append(manyDefinitions(`{"uri":"z:%05d","name":"x"}`, 1), []byte(`{"uri":"file:///a.md","name":"a"}`))))
			r.refresh(registry.AllChanges)
			r.keys("4 / 0 0 0 0 1 enter")
			switch name {
			case "palette":
				r.keys(":").typeText("open a.md").keys("enter")
			case "subscriptions":
				r.keys("w enter")
			case "traffic":
				r.run(r.app.GoToItem(&registry.TrafficRecord{Method: "resources/read", Server: "files", Name: "file:///a.md"}))
			}
			require.Equal(t, "file:///a.md", r.app.Panes[pane.PaneResources].Item().Name)
			typed, _ := r.app.Panes[pane.PaneResources].Rows().FilterQuery()
			require.Empty(t, typed)
		})
	}
}

func TestSubscriptionsAreReadByOneCommandAtATime(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 30, "files").setReady("files")
	add := func(from, to int) {
		for i := from; i < to; i++ {
			r.reg.SetSubscription(registry.SubscriptionState{Server: "files", URI: fmt.Sprintf("a:%05d", i), Status: registry.SubscriptionOn})
		}
	}
	add(0, list.MaxSyncRows+1)
	r.keys("w")
	d := r.app.Dialogs[0].(*dialog.Subscriptions)
	add(list.MaxSyncRows+1, list.MaxSyncRows+2)
	first := d.Refresh(registry.Subscriptions)
	require.NotNil(t, first)
	add(list.MaxSyncRows+2, list.MaxSyncRows+3)
	require.Nil(t, d.Refresh(registry.Subscriptions), "a second one could end before the first")
	r.run(first)
	require.Equal(t, list.MaxSyncRows+3, d.Table.Total(), "later changes must be read afterwards")
}
