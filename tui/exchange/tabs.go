package exchange

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/registry/termtext"
	"goblin/tui/theme"
	"goblin/tui/timeline"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// Exchange is a request with its answer, if any, or a notification.
type Exchange struct {
	*uicontext.Context
	Record registry.TrafficRecord
	// Status replaces the status of a request in flight.
	Status string
	// Others are the records of the journal, to find the requests that this one caused. They must
	// not change.
	Others func() []*registry.TrafficRecord
}

// Names of the tabs.
const (
	answerTab  = "Answer"
	requestTab = "Request"
	timingTab  = "Timing"
	headersTab = "Headers"
	rawTab     = "Raw"
)

// Tabs returns the parts of the exchange. A notification has no answer and no duration.
func (e Exchange) Tabs() []viewer.Tab {
	now := e.Now() // the sections are built in a command
	tab := func(name string, sections func(Exchange) []viewer.Section) viewer.Tab {
		return viewer.Tab{Name: name, Sections: func(context.Context) []viewer.Section {
			whole := e
			if full, ok := e.Reg.Traffic().Record(e.Record.Seq); ok {
				whole.Record = full
			}
			return sections(whole)
		}}
	}
	request := tab(requestTab, Exchange.request)
	headers, raw := tab(headersTab, Exchange.headers), tab(rawTab, Exchange.raw)
	if recording.IsNotification(&e.Record) {
		return []viewer.Tab{request, headers, raw}
	}
	return []viewer.Tab{
		tab(answerTab, func(e Exchange) []viewer.Section { return e.answer(now) }), request,
		tab(timingTab, func(e Exchange) []viewer.Section { return e.timing(now) }), headers, raw,
	}
}

// Head returns two lines about the exchange.
func (e Exchange) Head(lk *theme.Theme) []string {
	r, style := &e.Record, theme.Style("")
	parts := []string{uicontext.SanitizeLine(recording.StatusText(r))}
	switch {
	case e.Status != "":
		short, _, _ := strings.Cut(e.Status, ";")
		parts, style = []string{short, termtext.Age(max(e.Now().Sub(r.Time), 0))}, lk.Accent
	case recording.IsFailure(r):
		parts, style = []string{"! " + failureText(r)}, lk.Bad
	case recording.IsRootsRefusal(r):
		parts[0] += " (the client has no roots)"
	}
	if r.Count > 1 {
		parts = append(parts, lk.Own("× ")+fmt.Sprintf("%d, last %s", r.Count, clock(r.Last, time.TimeOnly)))
	}
	if !recording.IsNotification(r) && e.Status == "" {
		parts = append(parts, durationText(r), uicontext.FormatSize(r.Size))
	}
	parts = append(parts, uicontext.SanitizeLine(r.Name))
	if r.Session != "" && r.Session == e.Backend.Session() { // e is a copy
		r.Client = "you"
	}
	return []string{style.On(strings.TrimRight(strings.Join(parts, "  "), " ")), lk.Dim.On(originLine(r, lk))}
}

func (e Exchange) answer(now time.Time) []viewer.Section {
	r := &e.Record
	usual := e.usual(now)
	if r.Status == registry.StatusInFlight {
		text := "No answer yet\n" + e.Status
		progress := e.progress()
		if len(progress) > 0 {
			text += "\n\nProgress:\n" + strings.Join(progress, "\n")
		}
		return append([]viewer.Section{{Kind: viewer.Note, Text: text}}, usual...)
	}
	blocks := responseBlocks(r)
	if blocks == nil {
		blocks = bodyBlocks(e.Context, responseTitle(r), r.Response, r.ResponseSize)
	}
	return slices.Concat(usual, blocks, ruleBlocks(r))
}

// maxProgress is the number of progress notifications that the answer of a running
// request shows.
const maxProgress = 20

func (e Exchange) progress() []string {
	var lines []string
	for _, o := range e.Others() {
		if o.Parent != e.Record.Number || !timeline.IsProgress(o) {
			continue
		}
		full, ok := e.Reg.Traffic().Record(o.Seq)
		if !ok {
			full = *o
		}
		lines = append(lines, clock(o.Time, time.TimeOnly)+"  "+timeline.ProgressText(full.Request))
	}
	return lines[max(0, len(lines)-maxProgress):]
}

func (e Exchange) usual(now time.Time) []viewer.Section {
	if text := timeline.UsualText(&e.Record, e.Others(), now); text != "" {
		return []viewer.Section{{Kind: viewer.Note, Text: text}}
	}
	return nil
}

func (e Exchange) request() []viewer.Section {
	r := &e.Record
	title := "Params"
	blocks := bodyBlocks(e.Context, title, r.Request, r.RequestSize)
	return append(blocks, viewer.Section{Title: "Details", Kind: viewer.Fields, Fields: append(requestFacts(e.Theme, e.Reg, r), outcomeFields(r)...)})
}

func (e Exchange) headers() []viewer.Section {
	blocks := append(requestHeaders(&e.Record), responseHeaders(&e.Record)...)
	if len(blocks) > 0 {
		return blocks
	}
	text := "No HTTP headers are recorded."
	if transports := transportText(e.Reg, &e.Record); transports != "" {
		text += " Transport: " + transports + "."
	}
	return []viewer.Section{{Kind: viewer.Note, Text: text}}
}

func (e Exchange) raw() []viewer.Section {
	r := &e.Record
	request, response, _ := jsonRPC(r, "")
	blocks := []viewer.Section{{Title: requestTab, Kind: viewer.JSON, Data: request}}
	if r.RequestSize > 0 && len(r.Request) < r.RequestSize {
		blocks = bodyBlocks(e.Context, requestTab, r.Request, r.RequestSize)
	}
	switch {
	case recording.IsNotification(r):
	case r.Status == registry.StatusInFlight:
		blocks = append(blocks, viewer.Section{Title: answerTab, Kind: viewer.Note, Text: "no answer yet"})
	case response != nil:
		blocks = append(blocks, viewer.Section{Title: answerTab, Kind: viewer.JSON, Data: response})
	default:
		blocks = append(blocks, bodyBlocks(e.Context, answerTab, r.Response, r.ResponseSize)...)
	}
	if server := registry.WireID(r.Wire, registry.ServerID); server != "" || r.Original != "" {
		note := viewer.Section{Title: "At the server", Kind: viewer.Fields, Fields: []viewer.Field{{Label: "id", Value: server}, {Label: "name", Value: r.Original}}}
		blocks = append(blocks, note)
	}
	return blocks
}
