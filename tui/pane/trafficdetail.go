package pane

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

func (p *Logs) trafficSubject() Subject {
	r, ok := p.Traffic.Table.Selected()
	if !ok {
		return Subject{}
	}
	reg, rec, lk := p.app.Reg, r.TrafficRecord, p.app.Theme
	status := runningText + "; " + p.app.KeyOf("cancel") + " cancels it"
	if p.app.StopText(rec.Number) != "" {
		status = "stopped by a rule; " + p.app.KeyOf("mistakes") + " decides about it"
	}
	if p.app.ReadOnly != "" {
		status = "no answer in the recording"
	}
	held, now := p.Traffic.Held, p.app.Now()
	if r.inFlightID != "" {
		return Subject{
			Key: "traffic " + r.key, Version: fmt.Sprint(r.inFlightID, " ", status, p.timeline.chart.Factor()), Title: rec.Method + " " + clockText(rec.Time, 12),
			Blocks: func(context.Context) []viewer.Section {
				facts := append(requestFacts(reg, &rec), viewer.Field{Label: "status", Value: status})
				blocks := append(usualBlocks(&rec, held, now), viewer.Section{Kind: viewer.Fields, Fields: facts})
				return slices.Concat(blocks, p.app.bodyBlocks("Request", rec.Request, rec.RequestSize), headerBlocks(&rec))
			},
		}
	}
	return Subject{
		Key: "traffic " + r.key, Version: strconv.Itoa(rec.Count), Title: rec.Method + " " + clockText(rec.Time, 12),
		Blocks: func(context.Context) []viewer.Section {
			if full, ok := reg.Traffic().Record(rec.Seq); ok {
				rec = full
			}
			head := exchangeHead(&rec, lk)
			request := p.app.bodyBlocks("Request", rec.Request, rec.RequestSize)
			rest := append(headerBlocks(&rec), viewer.Section{Title: "Details", Kind: viewer.Fields, Fields: append(requestFacts(reg, &rec), outcomeFields(&rec)...)})
			if isNotification(&rec) {
				return slices.Concat(request, head, rest)
			}
			answer, whole := responseBlocks(&rec), p.app.bodyBlocks(responseTitle(&rec), rec.Response, rec.ResponseSize)
			if answer == nil {
				answer, whole = whole, nil
			}
			return slices.Concat(usualBlocks(&rec, held, now), answer, head, ruleBlocks(&rec), request, whole, rest)
		},
	}
}

func exchangeHead(r *registry.TrafficRecord, lk *theme.Theme) []viewer.Section {
	kind, ended := viewer.Note, statusText(r)
	if IsFailure(r) {
		kind, ended = viewer.Error, failureText(r)
	}
	first := []string{ended}
	if r.Count > 1 {
		first = append(first, fmt.Sprintf("× %d, last %s", r.Count, clockText(r.Last, 8)))
	}
	if !isNotification(r) {
		first = append(first, durationText(r), uicontext.FormatSize(r.Size))
	}
	return []viewer.Section{{Kind: kind, Text: strings.Join(append(first, r.Method, uicontext.SanitizeLine(r.Name)), "  ") + "\n" + exchangeLine(r, lk)}}
}

// ruleBlocks lists what rules did to the request.
func ruleBlocks(r *registry.TrafficRecord) []viewer.Section {
	if len(r.Events) == 0 {
		return nil
	}
	fields := make([]viewer.Field, len(r.Events))
	for i, e := range r.Events {
		fields[i] = viewer.Field{Label: fmt.Sprintf("rule %d", e.Rule), Value: clockText(e.Time, 12) + "  " + e.Text}
	}
	return []viewer.Section{{Title: "Rules", Kind: viewer.Fields, Fields: fields}}
}

func exchangeLine(r *registry.TrafficRecord, lk *theme.Theme) string {
	parts := []string{clockText(r.Time, 12)}
	ends := []string{cmp.Or(r.Client, r.Session), r.Server}
	for i, end := range ends {
		if end == "" {
			continue
		}
		if i == 1 {
			parts = append(parts, arrow(lk, r.Direction))
		}
		parts = append(parts, uicontext.SanitizeLine(end))
	}
	if r.RequestSize > 0 {
		parts = append(parts, uicontext.FormatSize(int64(r.RequestSize)))
	}
	return strings.Join(parts, "  ")
}

func requestFacts(reg *registry.Registry, r *registry.TrafficRecord) []viewer.Field {
	client, server := cmp.Or(r.Client, r.Session), cmp.Or(r.Server, registry.Local)
	direction := client + " → " + server
	if r.Direction == registry.ToClient {
		direction = server + " → " + client
	}
	f := []viewer.Field{
		{Label: "began", Value: formatTime(r.Time)},
		{Label: "ended", Value: endText(r)},
		{Label: "client", Value: r.Client},
		{Label: "session", Value: sessionText(reg, r.Session)},
		{Label: "direction", Value: direction},
		{Label: "server", Value: r.Server},
		{Label: "method", Value: r.Method},
		{Label: "name", Value: r.Name},
		idField(r),
		{Label: "transport", Value: transportText(reg, r)},
	}
	if r.Receivers > 0 {
		f = append(f, viewer.Field{Label: "receivers", Value: termtext.Count(r.Receivers, "client")})
	}
	if r.RequestSize > 0 {
		f = append(f, viewer.Field{Label: "request", Value: uicontext.FormatSize(int64(r.RequestSize))})
	}
	return f
}

func endText(r *registry.TrafficRecord) string {
	if isNotification(r) || r.Status == registry.StatusInFlight || r.Time.IsZero() {
		return ""
	}
	return formatTime(r.Time.Add(r.Duration))
}

func (a *Layout) requestSide(r *registry.TrafficRecord, lk *theme.Theme) []viewer.Section {
	blocks := []viewer.Section{{Kind: viewer.Note, Text: strings.TrimSpace(r.Method+"  "+uicontext.SanitizeLine(r.Name)) + "\n" + exchangeLine(r, lk)}}
	blocks = append(blocks, a.bodyBlocks("params", r.Request, r.RequestSize)...)
	blocks = append(blocks, viewer.Section{Title: "details", Kind: viewer.Fields, Fields: []viewer.Field{idField(r), {Label: "transport", Value: transportText(a.Reg, r)}, {Label: "session", Value: r.Session}}})
	return append(blocks, requestHeaders(r)...)
}

func (a *Layout) responseSide(r *registry.TrafficRecord) []viewer.Section {
	if r.Status == registry.StatusInFlight {
		return []viewer.Section{{Kind: viewer.Note, Text: "no answer yet"}}
	}
	head := viewer.Section{Kind: viewer.Note, Text: fmt.Sprintf("%s  %s  %s", statusText(r), durationText(r), uicontext.FormatSize(r.Size))}
	if IsFailure(r) {
		head.Kind, head.Text = viewer.Error, fmt.Sprintf("%s  %s  %s", failureText(r), durationText(r), uicontext.FormatSize(r.Size))
	}
	blocks, title := []viewer.Section{head}, "result"
	if hasErrorObject(r) {
		title = "error"
	} else if inner := responseBlocks(r); len(inner) > 0 {
		blocks, title = append(blocks, inner...), "raw result"
	}
	blocks = append(blocks, a.bodyBlocks(title, r.Response, r.ResponseSize)...)
	return append(blocks, responseHeaders(r)...)
}

func (a *Layout) exchangeText(seq uint64, indent string) (text, lost string, ok bool) {
	rec, ok := a.Reg.Traffic().Record(seq)
	if !ok {
		return "", "", false
	}
	request, response, lost := jsonRPC(&rec, indent)
	text = string(request) + "\n"
	if response != nil {
		text += string(response) + "\n"
	}
	return text, lost, true
}

func whyNoExchange(seq uint64) string {
	if seq == 0 {
		return "the request is still running"
	}
	return goneRecord
}

const goneRecord = "this record was evicted by newer traffic"

func (a *Layout) copyExchange(seqs ...uint64) tea.Cmd {
	var all strings.Builder
	what, parts := "the JSON-RPC", ""
	for _, seq := range seqs {
		text, lost, ok := a.exchangeText(seq, "")
		if !ok {
			return a.Complain("%s", whyNoExchange(seq))
		}
		all.WriteString(text)
		parts = cmp.Or(lost, parts)
	}
	if parts != "" {
		what += " without " + parts
	}
	return a.Copy(all.String(), what)
}

// copyAs offers the request as a command, as JSON-RPC or as a program.
func (a *Layout) copyAs(seq uint64) tea.Cmd {
	rec, ok := a.Reg.Traffic().Record(seq)
	if !ok {
		return a.Complain("%s", whyNoExchange(seq))
	}
	return dialog.NewSnippets(a.Context, &rec)
}

func (p *Logs) shownTraffic() uicontext.CachedContent {
	var seq uint64
	if d := p.app.FrontExchange(); d != nil {
		seq = d.rec.Seq
	} else if r, ok := p.Traffic.Table.Selected(); ok {
		seq = r.Seq
	}
	text, _, ok := p.app.exchangeText(seq, "  ")
	if !ok {
		return uicontext.CachedContent{}
	}
	return uicontext.CachedContent{Name: fmt.Sprintf("traffic-%d.json", seq), Data: []byte(text)}
}
