package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"goblin/registry/report"
	"goblin/registry/termtext"
	"goblin/tui/chart"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

func (p *Pane) Subject() pane.Subject {
	r, ok := p.Tables[p.at].Selected()
	if !ok {
		return pane.Subject{}
	}
	version, err := json.Marshal(r.whole)
	if err != nil {
		return pane.Subject{}
	}
	lk, now, since := p.app.Theme, p.app.Now(), p.report.Since
	off, minutes := p.app.KeyOf("switch"), "Last hour"
	if !p.report.Minutes.IsZero() {
		minutes = "Since Goblin started"
	}
	return pane.Subject{Key: names[p.at] + "\x00" + r.key, Version: string(version), Title: r.name, Blocks: func(context.Context) []viewer.Section {
		blocks := []viewer.Section{{Kind: viewer.Fields, Fields: r.facts(now)}}
		switch {
		case r.own:
			blocks = append(blocks, viewer.Section{Kind: viewer.Note, Text: "Goblin's own tools search, describe and call the entries of servers. " + p.app.KeyOf("open") + " lists them."})
		case r.client != nil:
			blocks = append(blocks, r.limits()...)
		case r.off:
			blocks = append(blocks, viewer.Section{Kind: viewer.Note, Text: "Disabled for all clients, so it costs nothing. " + off + " enables it."})
		case r.original != "" && r.idle > 0:
			text := fmt.Sprintf("Never called (counting for %s).", termtext.Age(now.Sub(since)))
			if !r.LastUsed.IsZero() || now.Sub(since) > report.UnusedAfter {
				text = "Not called in 30 days."
			}
			if p.app.ReadOnly == "" {
				text += " " + off + " disables it and saves " + uicontext.FormatCount(r.Tokens) + " tokens."
			}
			blocks = append(blocks, viewer.Section{Kind: viewer.Note, Text: text})
		case r.idle > 0:
			blocks = append(blocks, viewer.Section{Kind: viewer.Note, Text: termtext.Count(r.idle, "tool") + " not called in 30 days, or since counting began; filter Tools by unused:yes."})
		}
		if len(r.Hour) > 0 {
			blocks = append(blocks, r.plots(lk, minutes, now)...)
		}
		if lines := chart.Histogram(lk, r.Spread, r.P50, r.P95, chartWidth+4); len(lines) > 0 {
			blocks = append(blocks, viewer.Section{Title: "Durations", Kind: viewer.Text, Text: strings.Join(lines, "\n")})
		}
		return blocks
	}}
}

func (r *row) facts(now time.Time) []viewer.Field {
	f := []viewer.Field{}
	add := func(label, value string) {
		if value != "" {
			f = append(f, viewer.Field{Label: label, Value: value})
		}
	}
	if r.original != "" {
		add("server", r.server)
		add("tool", r.original)
	}
	if r.tools > 0 {
		add("tools", uicontext.FormatCount(r.tools))
	}
	if r.Definitions.Bytes > 0 {
		add("definition", fmt.Sprintf("%s, about %s tokens", uicontext.FormatSize(int64(r.Definitions.Bytes)), uicontext.FormatCount(r.Tokens)))
	}
	if o := r.others; o.Entries > 0 {
		add("others", fmt.Sprintf("%s (prompts, resources, templates and skills), %s; about %s tokens if given to a model",
			uicontext.FormatCount(o.Entries), uicontext.FormatSize(int64(o.Bytes)), uicontext.FormatCount(o.Tokens)))
	}
	if r.client != nil && r.client.Instructions > 0 {
		add("instructions", uicontext.FormatSize(int64(r.client.Instructions)))
	}
	add("calls", uicontext.FormatCount(int(r.Calls)))
	if r.Calls == 0 {
		return f
	}
	if r.Errors > 0 {
		add("errors", fmt.Sprintf("%s, %.1f %%", uicontext.FormatCount(int(r.Errors)), 100*float64(r.Errors)/float64(r.Calls)))
	}
	if r.P50 > 0 { // 0 if all calls waited for the user or were cancelled
		add("latency", "p50 "+termtext.Millis(r.P50)+", p95 "+termtext.Millis(r.P95))
	}
	if r.Waits > 0 {
		add("waits", waitText(&r.Figures))
	}
	if r.Starts > 0 {
		add("server start", termtext.Count(int(r.Starts), "call")+" waited: "+uicontext.FormatDuration(millis(r.StartMs)))
	}
	if r.Cancelled > 0 {
		add("cancelled", uicontext.FormatCount(int(r.Cancelled)))
	}
	add("answers", fmt.Sprintf("%s, %s each", uicontext.FormatSize(int64(r.Figures.Bytes)), uicontext.FormatSize(int64(r.Figures.Bytes/r.Calls))))
	add("last call", termtext.Age(now.Sub(r.LastUsed))+" ago")
	return f
}

// chartWidth is the width of the charts, in cells. Text as wide fits in each detail.
const chartWidth = 44

// plots returns charts of the last hour.
func (r *row) plots(lk *theme.Theme, title string, now time.Time) []viewer.Section {
	from, to := now.Add(-time.Hour).Format("15:04"), now.Format("15:04")
	plot := func(title string, format func(float64) string, of func(report.Minute) float64) viewer.Section {
		s := chart.Series{Values: downsample(values(r.Hour, of), 30), FromZero: true, Format: format, From: from, To: to}
		return viewer.Section{Title: title, Kind: viewer.Text, Text: strings.Join(chart.Plot(lk, s, chartWidth, 3), "\n")}
	}
	out := []viewer.Section{plot(title+": calls", func(v float64) string { return uicontext.FormatCount(int(v)) }, func(m report.Minute) float64 { return float64(m.Calls) })}
	if r.P50 > 0 {
		out = append(out, plot(title+": times", termtext.Millis, func(m report.Minute) float64 { return m.Millis }))
	}
	return out
}

func (r *row) limits() []viewer.Section {
	l := r.client.Limits
	if l == nil {
		return []viewer.Section{{Title: "Limits", Kind: viewer.Note, Text: "No known limits"}}
	}
	var f []viewer.Field
	add := func(limit string, most int, text string) {
		if most == 0 {
			return
		}
		if r.exceeds(limit) {
			text = "! " + text
		}
		f = append(f, viewer.Field{Label: limit, Value: text})
	}
	note := ""
	if l.Note != "" {
		note = " (" + l.Note + ")"
	}
	add("tools", l.Tools, fmt.Sprintf("%d%s, gets %d", l.Tools, note, r.tools))
	add("name", l.Name, fmt.Sprintf("%d characters, including the prefix %s", l.Name, l.Prefix))
	add("description", l.Description, fmt.Sprintf("%d characters, the rest is cut", l.Description))
	add("instructions", l.Instructions, fmt.Sprintf("%d bytes, the rest is cut", l.Instructions))
	blocks := []viewer.Section{{Title: "Limits of " + l.Client, Kind: viewer.Fields, Fields: f}}
	for _, b := range r.client.Violations {
		blocks = append(blocks, viewer.Section{Kind: viewer.Error, Text: b.Text}, viewer.Section{Kind: viewer.Note, Text: "Fix: " + b.Fix})
	}
	return append(blocks, viewer.Section{Kind: viewer.Note, Text: "Source: " + l.Source})
}
