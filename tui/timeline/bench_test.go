package timeline_test

import (
	"fmt"
	"testing"
	"time"

	"goblin/registry"
	"goblin/tui/timeline"
)

// fullJournal returns 5,000 requests, of which a fifth are children, and 500 progress
// notifications.
func fullJournal() (calls []timeline.Call, notes []*registry.TrafficRecord) {
	for i := range uint64(5000) {
		c := with(call(i+1, fmt.Sprintf("tool%d", i%40), time.Duration(i)*100*time.Millisecond, time.Duration(i%900)*time.Millisecond), func(r *registry.TrafficRecord) {
			r.Server = fmt.Sprintf("server%d", i%12)
			if i%5 == 4 {
				r.Parent = i
			}
			if i%17 == 0 {
				failed(r)
			}
		})
		c.Client = fmt.Sprintf("client %d", i%4)
		calls = append(calls, c)
	}
	for i := range uint64(500) {
		notes = append(notes, &registry.TrafficRecord{
			Parent: i*10 + 1, Method: "notifications/progress", Status: registry.StatusNotification, Time: began.Add(time.Duration(i) * time.Second),
		})
	}
	return calls, notes
}

// BenchmarkLayout measures a new layout of a full journal, as after each new record.
func BenchmarkLayout(b *testing.B) {
	calls, notes := fullJournal()
	b.ReportAllocs()
	for b.Loop() {
		timeline.New(calls, notes, timeline.ByClient, sameRequest)
	}
}

// BenchmarkKey measures a key and the frame after it.
func BenchmarkKey(b *testing.B) {
	calls, notes := fullJournal()
	lk := themeOf(false)
	for name, key := range map[string]func(*timeline.Chart){
		"move": func(c *timeline.Chart) { c.Move(-1); c.CursorMoved() },
		"zoom": func(c *timeline.Chart) { c.Zoom(false) },
		"all":  func(c *timeline.Chart) { c.Fit(); c.Fit() },
	} {
		for _, size := range [][2]int{{80, 24}, {250, 60}} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, size[0], size[1]), func(b *testing.B) {
				c := timeline.NewChart()
				c.Show(timeline.New(calls, notes, timeline.ByClient, sameRequest))
				c.Lines(lk, size[0], size[1], true, began)
				b.ReportAllocs()
				for b.Loop() {
					key(c)
					c.Lines(lk, size[0], size[1], true, began)
				}
			})
		}
	}
}
