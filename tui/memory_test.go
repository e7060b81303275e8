package tui

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/keys"
)

// heapInUse returns the bytes in use after garbage collection.
func heapInUse() int64 {
	var m runtime.MemStats
	for range 3 { // finalizers and pools release more for the next collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A storm of updates fills the journals, whose size is limited, and leaves nothing else
// in the registry or UI.
func TestAStormOfUpdatesLeavesNoMoreThanTheJournals(t *testing.T) {
	r := newTestUI(t, 120, 40, "server-0").setReady("server-0")
	uri := func(i int) string { return fmt.Sprintf("file:///srv/config-main-%05d.json", i) }
	var items []string
	for i := range 100 {
		items = append(items, fmt.Sprintf(`{"uri":%q,"name":"config %d"}`, uri(i), i))
	}
	r.setList("server-0", registry.Resource, items...)
	for i := range 20 {
		r.reg.SetSubscription(registry.SubscriptionState{Server: "server-0", URI: uri(i), Status: registry.SubscriptionOn, Holders: 1})
	}
	storm := func() {
		for n := range 500 {
			for i := range 20 {
				r.reg.ResourceUpdated("server-0", uri(i))
				params := fmt.Appendf(nil, `{"uri":"mcp://server-0/%s"}`, uri(i))
				r.reg.Traffic().Append(registry.TrafficRecord{
					Time: r.clock.now(), Session: "s1", Client: "goblin", Direction: registry.ToClient, Server: "server-0", Status: registry.StatusNotification,
					Method: "notifications/resources/updated", Name: uri(i), Request: params, RequestSize: len(params),
				})
			}
			if n%2 == 0 {
				r.run(r.app.Update(keys.FuncMsg(func() tea.Cmd { return r.app.refreshPanes(registry.AllChanges) })))
				_ = r.app.View()
			}
			if n%25 == 0 {
				r.tick(500 * time.Millisecond)
			}
		}
	}
	for _, pane := range []string{"5 ]", "4"} { // while it is viewed
		r.keys(pane)
		before := heapInUse()
		storm()
		filled := heapInUse()
		require.Less(t, filled-before, int64(16<<20), "the journals hold 10,000 records")
		storm()
		require.Less(t, heapInUse()-filled, int64(1<<20), "full journals must not grow")
	}
	runtime.KeepAlive(r)
}
