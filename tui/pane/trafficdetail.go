package pane

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/dialog"
	"goblin/tui/exchange"
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
				facts := append(exchange.RequestFacts(reg, &rec), viewer.Field{Label: "status", Value: status})
				blocks := append(usualBlocks(&rec, held, now), viewer.Section{Kind: viewer.Fields, Fields: facts})
				return slices.Concat(blocks, exchange.BodyBlocks(p.app.Context, "Request", rec.Request, rec.RequestSize), exchange.HeaderBlocks(&rec))
			},
		}
	}
	return Subject{
		Key: "traffic " + r.key, Version: strconv.Itoa(rec.Count), Title: rec.Method + " " + clockText(rec.Time, 12),
		Blocks: func(context.Context) []viewer.Section {
			if full, ok := reg.Traffic().Record(rec.Seq); ok {
				rec = full
			}
			head := exchange.Head(&rec, lk)
			request := exchange.BodyBlocks(p.app.Context, "Request", rec.Request, rec.RequestSize)
			rest := append(exchange.HeaderBlocks(&rec), viewer.Section{Title: "Details", Kind: viewer.Fields, Fields: append(exchange.RequestFacts(reg, &rec), exchange.OutcomeFields(&rec)...)})
			if isNotification(&rec) {
				return slices.Concat(request, head, rest)
			}
			answer, whole := exchange.ResponseBlocks(&rec), exchange.BodyBlocks(p.app.Context, exchange.ResponseTitle(&rec), rec.Response, rec.ResponseSize)
			if answer == nil {
				answer, whole = whole, nil
			}
			return slices.Concat(usualBlocks(&rec, held, now), answer, head, exchange.RuleBlocks(&rec), request, whole, rest)
		},
	}
}

func whyNoExchange(seq uint64) string {
	if seq == 0 {
		return "the request is still running"
	}
	return "this record was evicted by newer traffic"
}

func (a *Layout) copyExchange(seqs ...uint64) tea.Cmd {
	var all strings.Builder
	what, parts := "the JSON-RPC", ""
	for _, seq := range seqs {
		text, lost, ok := exchange.Text(a.Reg, seq, "")
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
	text, _, ok := exchange.Text(p.app.Reg, seq, "  ")
	if !ok {
		return uicontext.CachedContent{}
	}
	return uicontext.CachedContent{Name: fmt.Sprintf("traffic-%d.json", seq), Data: []byte(text)}
}
