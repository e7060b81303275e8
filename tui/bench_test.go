package tui

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"goblin/tui/keys"
	"goblin/tui/pane"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// warehouse is a screen over 100,000 resources of ten servers.
func warehouse(b *testing.B, w, h int) *rig {
	b.Helper()
	var servers []string
	for i := range 10 {
		servers = append(servers, fmt.Sprintf("server-%d", i))
	}
	r := newRig(b, w, h, servers...)
	for k, s := range servers {
		r.ready(s)
		items := make([][]byte, 10_000)
		for i := range items {
			items[i] = fmt.Appendf(nil, `{"uri":"file:///srv/%s/service-%d/config-main-%05d.json","name":"config %d","mimeType":"application/json","size":%d}`, []string{"payments", "users", "session", "orders"}[i%4], i%97, i, i, i)
		}
		require.Empty(b, r.reg.SetList(s, registry.Resource, items), k)
	}
	r.changed(registry.AllChanges)
	require.Equal(b, 100_000, r.app.Panes[pane.PaneResources].Rows().Total())
	return r
}

// settled runs commands to their end, as the program would.
func (r *rig) settled(cmd tea.Cmd) {
	if cmd != nil {
		r.take(cmd(), 0)
	}
}

var sizes = [][2]int{{80, 24}, {120, 40}, {250, 60}}

// BenchmarkKey is a movement key and the frame after it, at 100,000 rows.
func BenchmarkKey(b *testing.B) {
	for _, s := range sizes {
		b.Run(fmt.Sprintf("%dx%d", s[0], s[1]), func(b *testing.B) {
			r := warehouse(b, s[0], s[1])
			down := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{'j'}}
			b.ReportAllocs()
			for b.Loop() {
				r.app.Update(down)
				_ = r.app.View()
			}
		})
	}
}

// BenchmarkFilterKey is a key in the filter until the matching rows are drawn,
// the search included.
func BenchmarkFilterKey(b *testing.B) {
	for _, typed := range []string{"c", "conf", "config-main-04", "zzqx", "~cfgmain", "server:server-3 mime:json pay"} {
		b.Run(typed, func(b *testing.B) {
			r := warehouse(b, 120, 40)
			r.keys("/")
			r.text(typed[:len(typed)-1])
			last := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(typed[len(typed)-1:])}
			back := tea.KeyMsg{Type: tea.KeyBackspace}
			for b.Loop() {
				r.settled(r.app.Update(last))
				_ = r.app.View()
				b.StopTimer()
				r.settled(r.app.Update(back))
				b.StartTimer()
			}
		})
	}
}

// BenchmarkView is one frame.
func BenchmarkView(b *testing.B) {
	for _, s := range sizes {
		b.Run(fmt.Sprintf("%dx%d", s[0], s[1]), func(b *testing.B) {
			r := warehouse(b, s[0], s[1])
			for b.Loop() {
				_ = r.app.View()
			}
		})
	}
}

// BenchmarkUpdates is what a frame costs while a server sends updates of
// subscribed resources: 34 updates, which is 1,000 a second at 30 frames.
func BenchmarkUpdates(b *testing.B) {
	r := warehouse(b, 120, 40)
	for i := range 1000 {
		r.reg.SetSubscription(registry.SubscriptionState{Server: "server-0", URI: fmt.Sprintf("file:///srv/payments/service-%d/config-main-%05d.json", i*4%97, i*4), Status: registry.SubscriptionOn, Holders: 1})
	}
	n := 0
	for b.Loop() {
		for range 34 {
			n++
			r.reg.Touched("server-0", fmt.Sprintf("file:///srv/payments/service-%d/config-main-%05d.json", n%1000*4%97, n%1000*4))
		}
		r.app.Update(keys.FuncMsg(func() tea.Cmd { return r.app.changed(registry.Subscriptions | registry.Cached | registry.Logs) }))
		_ = r.app.View()
	}
}

// BenchmarkListChange is the work of a new list of 100,000 resources until it is
// drawn; all of it but the last part runs outside of the screen's own loop.
func BenchmarkListChange(b *testing.B) {
	r := warehouse(b, 120, 40)
	c := r.app.Panes[pane.PaneResources].(*pane.Resources).All
	for b.Loop() {
		c.Loaded = false
		r.settled(c.Refresh())
		_ = r.app.View()
	}
}

// BenchmarkKeyToFrame is from a key until the terminal has the frame that shows
// it: the whole program, at 100,000 resources, while a server sends 1,000
// updates of subscribed resources a second. Frames leave 70 times a second and
// each key here comes right after one: 14.3 ms is the wait for the next, so the
// longest that a key takes.
func BenchmarkKeyToFrame(b *testing.B) {
	reg := warehouse(b, 120, 40).reg
	uri := func(i int) string {
		return fmt.Sprintf("file:///srv/payments/service-%d/config-main-%05d.json", i*4%97, i*4)
	}
	for i := range 1000 {
		reg.SetSubscription(registry.SubscriptionState{Server: "server-0", URI: uri(i), Status: registry.SubscriptionOn, Holders: 1})
	}
	term := newPipeTerminal(b, 120, 40)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = New(Options{Registry: reg, Daemon: Daemon{}}).Run(ctx, newBackend(), term) })
	all.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
				for i := range 10 {
					reg.Touched("server-0", uri((n*10+i)%1000))
				}
			case <-ctx.Done():
				return
			}
		}
	})
	defer func() {
		cancel()
		term.keys.Close()
		all.Wait()
	}()
	term.await(b, "100k")
	for n := 0; b.Loop(); n++ {
		// Going to the other pane and back changes the tab line: it is seen.
		key, sign := "1", "[1 Servers"
		if n%2 == 1 {
			key, sign = "4", "[4 Resources"
		}
		term.forget()
		_, _ = term.keys.Write([]byte(key))
		term.await(b, sign)
	}
}

// BenchmarkSort is a key that sorts 100,000 rows by a column: what the screen's own loop
// does, and until the rows are drawn in the new order.
func BenchmarkSort(b *testing.B) {
	for _, column := range []string{"server", "URI", "name", "size"} {
		for _, whole := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/whole=%v", column, whole), func(b *testing.B) {
				r := warehouse(b, 120, 40)
				rows := r.app.Panes[pane.PaneResources].Rows()
				for b.Loop() {
					cmd := rows.Sort(column)
					if whole {
						r.settled(cmd)
					}
					_ = r.app.View()
				}
			})
		}
	}
}
