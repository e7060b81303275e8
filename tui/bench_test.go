package tui

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/keys"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
)

// newLargeUI returns a UI over 100,000 resources of ten servers.
func newLargeUI(b *testing.B, w, h int) *testUI {
	b.Helper()
	var servers []string
	for i := range 10 {
		servers = append(servers, fmt.Sprintf("server-%d", i))
	}
	r := newTestUI(b, w, h, servers...)
	for k, s := range servers {
		r.setReady(s)
		items := make([][]byte, 10_000)
		for i := range items {
			items[i] = fmt.Appendf(nil, `{"uri":"file:///srv/%s/service-%d/config-main-%05d.json","name":"config %d","mimeType":"application/json","size":%d}`, []string{"payments", "users", "session", "orders"}[i%4], i%97, i, i, i)
		}
		require.Empty(b, r.reg.SetList(s, registry.Resource, items), k)
	}
	r.refresh(registry.AllChanges)
	require.Equal(b, 100_000, r.app.Panes[pane.PaneResources].Rows().Total())
	return r
}

var sizes = [][2]int{{80, 24}, {120, 40}, {250, 60}}

// BenchmarkKey measures a movement key and the frame after it, with 100,000 rows.
func BenchmarkKey(b *testing.B) {
	for _, s := range sizes {
		b.Run(fmt.Sprintf("%dx%d", s[0], s[1]), func(b *testing.B) {
			r := newLargeUI(b, s[0], s[1])
			down := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{'j'}}
			b.ReportAllocs()
			for b.Loop() {
				r.app.Update(down)
				_ = r.app.View()
			}
		})
	}
}

// BenchmarkFilterKey measures a key in the filter until the matching rows are drawn,
// including the search.
func BenchmarkFilterKey(b *testing.B) {
	for _, typed := range []string{"c", "conf", "config-main-04", "zzqx", "~cfgmain", "server:server-3 mime:json pay"} {
		b.Run(typed, func(b *testing.B) {
			r := newLargeUI(b, 120, 40)
			r.keys("/")
			r.typeText(typed[:len(typed)-1])
			last := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(typed[len(typed)-1:])}
			back := tea.KeyMsg{Type: tea.KeyBackspace}
			for b.Loop() {
				r.run(r.app.Update(last))
				_ = r.app.View()
				b.StopTimer()
				r.run(r.app.Update(back))
				b.StartTimer()
			}
		})
	}
}

// BenchmarkFirstFrame measures a new UI over 100,000 resources until its first frame.
func BenchmarkFirstFrame(b *testing.B) {
	r := newLargeUI(b, 120, 40)
	for b.Loop() {
		_ = newTestUIWith(b, r.reg, r.clock, 120, 40, plainEnv).app.View()
	}
}

// BenchmarkIdleFrame measures the work of a UI without events: two beats per second.
func BenchmarkIdleFrame(b *testing.B) {
	r := newLargeUI(b, 120, 40)
	for b.Loop() {
		r.tick(beatInterval)
		_ = r.app.View()
	}
}

func BenchmarkView(b *testing.B) {
	for _, s := range sizes {
		b.Run(fmt.Sprintf("%dx%d", s[0], s[1]), func(b *testing.B) {
			r := newLargeUI(b, s[0], s[1])
			for b.Loop() {
				_ = r.app.View()
			}
		})
	}
}

// BenchmarkUpdates measures a frame while a server sends updates of subscribed resources:
// 34 updates, which is 1,000 per second at 30 frames.
func BenchmarkUpdates(b *testing.B) {
	r := newLargeUI(b, 120, 40)
	for i := range 1000 {
		r.reg.SetSubscription(registry.SubscriptionState{Server: "server-0", URI: fmt.Sprintf("file:///srv/payments/service-%d/config-main-%05d.json", i*4%97, i*4), Status: registry.SubscriptionOn, Holders: 1})
	}
	n := 0
	for b.Loop() {
		for range 34 {
			n++
			r.reg.ResourceUpdated("server-0", fmt.Sprintf("file:///srv/payments/service-%d/config-main-%05d.json", n%1000*4%97, n%1000*4))
		}
		r.app.Update(keys.FuncMsg(func() tea.Cmd { return r.app.refreshPanes(registry.Subscriptions | registry.Cached | registry.Logs) }))
		_ = r.app.View()
	}
}

// BenchmarkListChange measures a new list of 100,000 resources until it is drawn. Only
// the last part runs in the UI's own loop.
func BenchmarkListChange(b *testing.B) {
	r := newLargeUI(b, 120, 40)
	c := r.app.Panes[pane.PaneResources].(*pane.Resources).All
	for b.Loop() {
		c.Loaded = false
		r.run(c.Refresh())
		_ = r.app.View()
	}
}

// BenchmarkKeyToFrame measures the time from a key to the frame that shows it, in the
// whole program with 100,000 resources. A server sends 1,000 updates of subscribed
// resources per second. Frames are written 70 times per second, and each key comes right
// after one. The wait for the next frame is therefore at most 14.3 ms.
func BenchmarkKeyToFrame(b *testing.B) {
	reg := newLargeUI(b, 120, 40).reg
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
					reg.ResourceUpdated("server-0", uri((n*10+i)%1000))
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
		// Switching panes and back visibly changes the tab line.
		key, sign := "1", "[1 Servers"
		if n%2 == 1 {
			key, sign = "4", "[4 Resources"
		}
		term.forget()
		_, _ = term.keys.Write([]byte(key))
		term.await(b, sign)
	}
}

// BenchmarkSort measures a key that sorts 100,000 rows: the work in the UI's own loop,
// and the time until the rows are drawn in the new order.
func BenchmarkSort(b *testing.B) {
	for _, column := range []string{"server", "URI", "name", "size"} {
		for _, whole := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/whole=%v", column, whole), func(b *testing.B) {
				r := newLargeUI(b, 120, 40)
				rows := r.app.Panes[pane.PaneResources].Rows()
				for b.Loop() {
					cmd := rows.Sort(column)
					if whole {
						r.run(cmd)
					}
					_ = r.app.View()
				}
			})
		}
	}
}

// appendFrameOfTraffic appends the traffic of one frame at 10,000 requests per second.
func appendFrameOfTraffic(reg *registry.Registry) {
	for i := range 333 {
		reg.Traffic().Append(registry.TrafficRecord{Time: time.Unix(1, 0), Session: "s-1", Client: "claude", Server: "files", Method: "tools/call", Name: "files_read_" + string(rune('a'+i%26)), Duration: time.Millisecond, Size: 1000, Status: "success", Request: []byte(`{"name":"x"}`), Response: []byte(`{}`)})
	}
}

func BenchmarkTrafficRefresh(b *testing.B) {
	r := newTestUI(b, 250, 60, "files")
	r.keys("5 ]")
	for range 40 {
		appendFrameOfTraffic(r.reg)
	}
	r.refresh(registry.Traffic)
	b.ResetTimer()
	for b.Loop() {
		b.StopTimer()
		appendFrameOfTraffic(r.reg)
		b.StartTimer()
		r.run(r.app.Logs().Refresh(registry.Traffic))
	}
}

func BenchmarkTrafficView(b *testing.B) {
	r := newTestUI(b, 250, 60, "files")
	for range 40 {
		appendFrameOfTraffic(r.reg)
	}
	r.keys("5 ]")
	for b.Loop() {
		_ = r.app.View()
	}
}

func BenchmarkRefreshWhileClosed(b *testing.B) {
	r := newTestUI(b, 250, 60, "files")
	for range 40 {
		appendFrameOfTraffic(r.reg)
	}
	for b.Loop() {
		r.run(r.app.Logs().Refresh(registry.Traffic))
	}
}

func BenchmarkRelatedOfAnotherItem(b *testing.B) {
	r := newTestUI(b, 250, 60, "files")
	for range 40 {
		appendFrameOfTraffic(r.reg)
	}
	for i := 0; b.Loop(); i++ {
		r.app.Related(uicontext.Item{Kind: registry.Tool, Server: "files", Name: fmt.Sprint("none", i%2)}, uicontext.Rect{X: 0, Y: 2, W: 60, H: 56}, 1)
	}
}

func BenchmarkLogsRefresh(b *testing.B) {
	r := newTestUI(b, 250, 60, "files")
	r.keys("5 ] ]")
	flood := func() {
		for range 333 {
			r.reg.Logs().Append(registry.LogRecord{Time: time.Unix(1, 0), Source: registry.SourceStderr, Server: "files", Text: "GET /readme.md 200 in 12 ms for a client"})
		}
	}
	for range 40 {
		flood()
	}
	r.refresh(registry.Logs)
	b.ResetTimer()
	for b.Loop() {
		b.StopTimer()
		flood()
		b.StartTimer()
		r.run(r.app.Logs().Refresh(registry.Logs))
	}
}

func BenchmarkServersFrame(b *testing.B) {
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf("server-%03d", i))
	}
	r := newTestUI(b, 250, 60, names...)
	for _, n := range names {
		r.reg.SetState(n, registry.ServerState{State: registry.StateReady, Latency: time.Second, Transport: "stdio"})
	}
	r.refresh(registry.Servers).keys("1")
	for b.Loop() {
		r.app.View()
	}
}

// newProfileUI returns a UI over 100,000 resources, seen as a profile that lacks half of them.
func newProfileUI(b *testing.B) *testUI {
	r := newLargeUI(b, 120, 40)
	n := 0
	for e := range r.reg.Load().All(registry.Resource) {
		if n++; n%2 == 0 {
			r.backend.lacks["coding "+e.Listed] = "profile"
		}
	}
	r.app.Context.Profile = "coding"
	return r.refresh(registry.AllChanges)
}

// BenchmarkHideKey measures the key that hides dim rows, up to the next frame and up to the
// frame without them.
func BenchmarkHideKey(b *testing.B) {
	for _, part := range []string{"frame", "whole"} {
		b.Run(part, func(b *testing.B) {
			r := newProfileUI(b)
			v := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{'v'}}
			for b.Loop() {
				cmd := r.app.Update(v)
				_ = r.app.View()
				if part == "frame" {
					b.StopTimer()
				}
				r.run(cmd)
				_ = r.app.View()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkKeyWhileHidden measures a movement key and its frame while half of 100,000 rows are
// hidden.
func BenchmarkKeyWhileHidden(b *testing.B) {
	r := newProfileUI(b).keys("v")
	require.Equal(b, 50_000, r.app.Panes[pane.PaneResources].Rows().Len())
	down := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{'j'}}
	for b.Loop() {
		r.app.Update(down)
		_ = r.app.View()
	}
}

func BenchmarkWatchedFrame(b *testing.B) {
	r := newTestUI(b, 250, 60, "files")
	r.setReady("files")
	for i := range 1000 {
		r.reg.SetSubscription(registry.SubscriptionState{Server: "files", URI: fmt.Sprintf("file:///%04d", i), Status: registry.SubscriptionOn, Holders: 1, Sessions: []string{"me"}})
	}
	r.keys("w")
	for b.Loop() {
		r.app.View()
	}
}

func BenchmarkSamplingFrame(b *testing.B) {
	r := newTestUI(b, 250, 60, "files")
	r.ask("sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"`+strings.Repeat("word ", 4000)+`"}}]}`)
	r.passGrace()
	for range 100 {
		r.typeText("an answer of many words ").keys("enter")
	}
	for b.Loop() {
		r.app.View()
	}
}

// BenchmarkTimeline measures a key, the frame after it, and a new record, with a full
// journal.
func BenchmarkTimeline(b *testing.B) {
	newUI := func(b *testing.B) (r *testUI, add func()) {
		r = newTestUI(b, 120, 40, "files")
		n := uint64(0)
		add = func() {
			n++
			r.reg.Traffic().Append(registry.TrafficRecord{
				Number: n, Time: r.clock.now(), Duration: time.Duration(n%900) * time.Millisecond, Status: "success", Session: "s-1", Client: "agent",
				Server: "files", Method: "tools/call", Name: fmt.Sprintf("files_tool%d", n%40), Request: []byte(`{"name":"x","arguments":{"path":"a.txt"}}`),
			})
			r.clock.advance(100 * time.Millisecond)
		}
		for range pane.MaxTraffic {
			add()
		}
		return r, add
	}
	b.Run("key", func(b *testing.B) {
		r, _ := newUI(b)
		r.refresh(registry.Traffic).runCommand("timeline")
		for b.Loop() {
			r.keys("k")
			_ = r.app.View()
		}
	})
	b.Run("record", func(b *testing.B) {
		r, add := newUI(b)
		r.refresh(registry.Traffic).runCommand("timeline")
		for b.Loop() {
			add()
			r.refresh(registry.Traffic)
			_ = r.app.View()
		}
	})
}

// BenchmarkPaletteKey measures a key in the palette until the matches are drawn. The
// index of 100,000 resources and 10,000 tools is built before.
func BenchmarkPaletteKey(b *testing.B) {
	for _, typed := range []string{"c", "config-main-04", "service9config7", "zzqx"} {
		b.Run(typed, func(b *testing.B) {
			r := newLargeUI(b, 120, 40)
			tools := make([][]byte, 10_000)
			for i := range tools {
				tools[i] = fmt.Appendf(nil, `{"name":"create_thing_%d"}`, i)
			}
			require.Empty(b, r.reg.SetList("server-0", registry.Tool, tools))
			r.keys(":").typeText(typed[:len(typed)-1] + "x")
			last := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(typed[len(typed)-1:])}
			back := tea.KeyMsg{Type: tea.KeyBackspace}
			for b.Loop() {
				b.StopTimer()
				r.run(r.app.Update(back))
				b.StartTimer()
				r.run(r.app.Update(last))
				_ = r.app.View()
			}
		})
	}
}
