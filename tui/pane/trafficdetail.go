package pane

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/exchange"
	"goblin/tui/timeline"
	"goblin/tui/uicontext"
)

func (p *Logs) trafficSubject() Subject {
	r, ok := p.Traffic.Table.Selected()
	if !ok {
		return Subject{}
	}
	rec := r.TrafficRecord
	status := runningText + "; " + p.app.KeyOf("cancel") + " cancels it"
	if p.app.StopText(rec.Number) != "" {
		status = "stopped by a rule; " + p.app.KeyOf("mistakes") + " decides about it"
	}
	if p.app.ReadOnly != "" {
		status = "no answer in the recording"
	}
	held := p.Traffic.Held
	e := exchange.Exchange{Context: p.app.Context, Record: rec, Others: func() []*registry.TrafficRecord {
		all := make([]*registry.TrafficRecord, len(held))
		for i, o := range held {
			all[i] = &o.TrafficRecord
		}
		return all
	}}
	version := strconv.Itoa(rec.Count)
	if r.inFlightID != "" {
		e.Status = status
		version = fmt.Sprint(r.inFlightID, " ", status, p.timeline.chart.Factor(), p.progressOf(rec.Number), p.elapsed(r)/time.Second)
	}
	tabs := e.Tabs()
	return Subject{
		Key: "traffic " + r.key, Version: version, Title: rec.Method + " " + clockText(rec.Time, 12),
		Blocks: tabs[0].Sections, Tabs: tabs, Head: e.Head,
	}
}

// progressOf returns the number of the last progress notification of a request.
func (p *Logs) progressOf(request uint64) uint64 {
	for i := len(p.Traffic.Held) - 1; i >= 0; i-- {
		if r := &p.Traffic.Held[i].TrafficRecord; r.Parent == request && timeline.IsProgress(r) {
			return r.Seq
		}
	}
	return 0
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
	if r, ok := p.Traffic.Table.Selected(); ok {
		seq = r.Seq
	}
	text, _, ok := exchange.Text(p.app.Reg, seq, "  ")
	if !ok {
		return uicontext.CachedContent{}
	}
	return uicontext.CachedContent{Name: fmt.Sprintf("traffic-%d.json", seq), Data: []byte(text)}
}
