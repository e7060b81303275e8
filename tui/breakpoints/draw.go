package breakpoints

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// sideBySide is the minimum width for list and detail beside each other.
const sideBySide = 106

// split returns the places of the list and of the detail's text in the window.
func (w *window) split(width, h int) (rows, detail uicontext.Rect) {
	switch {
	case w.zoomed && w.inDetail:
		return uicontext.Rect{}, uicontext.Rect{Y: 1, W: width, H: max(h-1, 0)}
	case w.zoomed:
		return uicontext.Rect{W: width, H: h}, uicontext.Rect{Y: h, W: width}
	case width >= sideBySide:
		left := width / 2
		return uicontext.Rect{W: left, H: h}, uicontext.Rect{X: left + 1, Y: 1, W: width - left - 1, H: h - 1}
	}
	top := max(min(len(w.rows), h/2), 1)
	return uicontext.Rect{W: width, H: top}, uicontext.Rect{Y: top + 1, W: width, H: max(h-top-1, 0)}
}

// Lines draws the list and the selected row's detail.
func (w *window) Lines(width, h int) []string {
	a := w.rules.app
	lk := a.Theme
	w.listRect, w.viewRect = w.split(width, h)
	if len(w.rows) == 0 {
		w.viewRect = uicontext.Rect{}
		return lk.Lines(append([]string{""}, w.empty()...), width, h)
	}
	cols := w.ruleColumns(w.listRect.W - 2)
	left := lk.Lines(w.list.Lines(lk, w.listRect.H, func(i int) string { return w.line(&w.rows[i], w.listRect.W-2, &cols) }), w.listRect.W, w.listRect.H)
	title, right, style := w.detailTitle(), "", lk.Border
	if w.inDetail {
		title, style = "["+title+"]", lk.Accent
	}
	if s := w.selected().stop; s != nil {
		right = fmt.Sprintf("%s left, then %s", a.TimeLeft(s), s.Default)
	}
	rule := lk.Rule(lk.Horizontal, style.On(title), right, lk.Horizontal, w.viewRect.W, style)
	below := append([]string{rule}, w.view.Lines(w.viewRect.W, max(w.viewRect.H, 0))...)
	if w.viewRect.X == 0 {
		return lk.Lines(append(left, below...), width, h)
	}
	out := make([]string, h)
	bar := lk.Border.On(lk.Vertical)
	for i := range out {
		out[i] = left[i] + bar + lk.Fit(below[i], w.viewRect.W)
	}
	return out
}

func (w *window) empty() []string {
	a := w.rules.app
	if a.ReadOnly != "" {
		return []string{"  No rules: " + a.ReadOnly + ".", "", "  Rules and stopped requests need a running gateway."}
	}
	return []string{
		"  No rules. " + a.KeyOf("break") + " on a call, tool or server adds one.",
		"",
		"  " + a.KeyOf("rules.add") + " adds a rule here. Rules of the config and of --rule are listed, too.",
	}
}

// line draws a row of the list.
func (w *window) line(r *row, width int, cols *ruleColumns) string {
	lk := w.rules.app.Theme
	sides := func(left, right string) string {
		return lk.Sides(lk.Cut(left, max(width-theme.Width(right)-2, 8)), right, width)
	}
	switch {
	case r.stop != nil:
		s := r.stop
		then := s.On
		if s.IsError {
			then = "error"
		}
		text := lk.Own(title(s))
		if args := w.arguments(s); args != "" {
			text += "  " + args
		}
		return sides(lk.Warn.On(lk.Failed)+" "+text, then+"  "+w.rules.app.TimeLeft(s)+" left")
	case r.rule != nil:
		return w.ruleLine(r.rule, width, cols)
	case r.approval != nil:
		v := r.approval
		return sides(uicontext.SanitizeLine(cmp.Or(v.Client, "all clients")+lk.Own(" → ")+v.Server+" "+v.Name), untilText(v))
	case r.names:
		return lk.Dim.On(cols.line(lk, r.heading, "origin", "then", "hits", width))
	}
	return lk.Dim.On(r.heading)
}

// arguments returns the arguments of a stopped request. It reads them once.
func (w *window) arguments(s *registry.StoppedRequest) string {
	text, known := w.texts[s.ID]
	if !known && rawjson.Valid(s.Params) == nil {
		if args := rawjson.Get(s.Params, "arguments"); args != nil {
			text = w.rules.app.ArgumentsText(args)
		}
	}
	w.texts[s.ID] = text
	return text
}

// ruleColumns are the widths of a rule's columns. Without room, origin is 0.
type ruleColumns struct{ number, origin, then, hits int }

// maxThen is the maximum width of the column of actions.
const maxThen = 18

// ruleColumns returns columns as wide as their longest texts.
func (w *window) ruleColumns(width int) ruleColumns {
	c := ruleColumns{number: 1, origin: len("origin"), then: len("then"), hits: len("hits")}
	for i := range w.rows {
		if e := w.rows[i].rule; e != nil {
			c.number = max(c.number, len(strconv.FormatUint(e.ID, 10)))
			c.origin = max(c.origin, theme.Width(uicontext.SanitizeLine(e.Origin)))
			c.then = min(max(c.then, theme.Width(thenText(e))), maxThen)
			c.hits = max(c.hits, len(hitsText(e)))
		}
	}
	if c.origin = min(c.origin, maxThen); width < 60 {
		c.origin = 0
	}
	return c
}

// line draws columns; the first one has the rest of the width.
func (c *ruleColumns) line(lk *theme.Theme, first, origin, then, hits string, width int) string {
	right := "  " + lk.Fit(then, c.then) + "  " + padLeft(hits, c.hits)
	if c.origin > 0 {
		right = "  " + lk.Fit(origin, c.origin) + right
	}
	return lk.Fit(lk.Cut(first, width-theme.Width(right)), width-theme.Width(right)) + right
}

func thenText(e *registry.RuleEntry) string {
	then := uicontext.SanitizeLine(e.Then)
	if e.On == "answer" {
		then = "answer: " + then
	}
	return then
}

func hitsText(e *registry.RuleEntry) string {
	switch {
	case !e.Enabled:
		return "off"
	case e.Left == 0:
		return "ended"
	}
	return uicontext.FormatCount(int(min(e.Hits, 1<<31)))
}

// ruleLine draws the number, the condition, the action and the hits of a rule.
func (w *window) ruleLine(e *registry.RuleEntry, width int, cols *ruleColumns) string {
	lk := w.rules.app.Theme
	when := uicontext.SanitizeLine(cmp.Or(e.When, "everything"))
	if e.Problem != "" {
		when = lk.Failed + " " + when
	}
	text := padLeft(strconv.FormatUint(e.ID, 10), cols.number) + " " + when
	line := cols.line(lk, text, uicontext.SanitizeLine(e.Origin), thenText(e), hitsText(e), width)
	if !e.Enabled || e.Left == 0 {
		return lk.Dim.On(line)
	}
	return line
}

func padLeft(s string, w int) string { return theme.Spaces(max(w-theme.Width(s), 0)) + s }

// untilText returns how long an approval counts.
func untilText(v *registry.CallApproval) string {
	switch {
	case v.Session != "":
		return "this session"
	case v.Definition != "":
		return "this definition"
	}
	return "always"
}

func (w *window) detailTitle() string {
	switch r := w.selected(); {
	case r.stop != nil:
		since := termtext.Age(max(w.rules.app.Now().Sub(r.stop.Since), 0))
		return name(r.stop) + ", stopped " + since
	case r.rule != nil:
		return "Rule " + strconv.FormatUint(r.rule.ID, 10)
	}
	return "Approval"
}

// sections returns the content of a row's detail. It runs in a command.
func (r *Rules) sections(one *row) []viewer.Section {
	switch {
	case one.stop != nil:
		return r.stopSections(one.stop)
	case one.rule != nil:
		return ruleSections(one.rule)
	}
	v := one.approval
	return []viewer.Section{{Kind: viewer.Fields, Fields: []viewer.Field{
		{Label: v.Kind, Value: v.Name},
		{Label: "server", Value: v.Server},
		{Label: "client", Value: v.Client},
		{Label: "counts for", Value: untilText(v)},
		{Label: "session", Value: v.Session},
		{Label: "definition", Value: v.Definition},
		{Label: "rule", Value: v.When},
		{Label: "since", Value: v.Since.Local().Format(time.DateTime)},
	}}, {Kind: viewer.Note, Text: "Such calls pass the rule. " + r.app.KeyOf("rules.remove") + " revokes the approval."}}
}

func ruleSections(e *registry.RuleEntry) []viewer.Section {
	state := "enabled"
	switch {
	case !e.Enabled:
		state = "disabled"
	case e.Left == 0:
		state = "ended: its count is used up"
	}
	left := ""
	if e.Left > 0 {
		left = strconv.Itoa(e.Left)
	}
	out := []viewer.Section{{Kind: viewer.Fields, Fields: []viewer.Field{
		{Label: "when", Value: cmp.Or(e.When, "everything")},
		{Label: "on", Value: e.On},
		{Label: "then", Value: e.Then},
		{Label: "state", Value: state},
		{Label: "hits", Value: strconv.FormatUint(e.Hits, 10)},
		{Label: "hits left", Value: left},
		{Label: "origin", Value: origin(e)},
	}}}
	if e.Problem != "" {
		out = append(out, viewer.Section{Kind: viewer.Error, Text: e.Problem})
	}
	return append(out, viewer.Section{Title: "Text", Kind: viewer.Text, Text: e.Text})
}

func (r *Rules) stopSections(s *registry.StoppedRequest) []viewer.Section {
	ruleText := "rule " + strconv.FormatUint(s.Rule, 10) + ": " + cmp.Or(s.When, "everything")
	asks := ""
	if s.AsksClient {
		asks = "also asked in the client"
	}
	out := []viewer.Section{{Kind: viewer.Fields, Fields: []viewer.Field{
		{Label: s.On, Value: cmp.Or(s.Client, s.Session) + r.app.Theme.Own(" → ") + cmp.Or(s.Server, registry.Local)},
		{Label: "method", Value: s.Method},
		{Label: "name", Value: s.Name},
		{Label: "definition", Value: r.hints(s), Style: r.app.Theme.Warn},
		{Label: "stopped by", Value: ruleText},
		{Label: "user", Value: asks},
	}}}
	params, label := s.Params, "Params"
	if args := rawjson.Get(s.Params, "arguments"); args != nil {
		params, label = args, "Arguments"
	}
	if s.On == "answer" {
		kind := "Answer"
		if s.IsError {
			kind = "Error"
		}
		out = append(out, r.body(kind, s.Answer))
	}
	out = append(out, r.body(label, params))
	var steps []string
	for _, e := range s.Events {
		steps = append(steps, e.Time.Local().Format(time.TimeOnly)+" "+termtext.Line(e.Text))
	}
	if len(steps) == 0 {
		steps = []string{s.Since.Local().Format(time.TimeOnly) + " stopped by rule " + strconv.FormatUint(s.Rule, 10)}
	}
	return append(out, viewer.Section{Title: "History", Kind: viewer.Text, Text: strings.Join(steps, "\n")})
}

// body shows JSON with the config's secrets hidden, as Traffic does.
func (r *Rules) body(title string, data []byte) viewer.Section {
	switch shown := []byte(r.app.Backend.Redact(string(data))); {
	case len(data) == 0:
		return viewer.Section{Title: title, Kind: viewer.Note, Text: "empty"}
	case rawjson.Valid(shown) == nil:
		return viewer.Section{Title: title, Kind: viewer.JSON, Data: shown}
	default:
		return viewer.Section{Title: title, Kind: viewer.Text, Text: string(shown)}
	}
}

// hints describes the tool's annotations, with the protocol's defaults.
func (r *Rules) hints(s *registry.StoppedRequest) string {
	t, err := r.app.Reg.ResolveTool(s.Name)
	if s.Method != "tools/call" || err != nil || t.Entry == nil {
		return ""
	}
	is := func(hint string) string { return string(rawjson.Path(t.Entry.JSON(), "annotations", hint)) }
	switch {
	case is("readOnlyHint") == "true":
		return "changes nothing (R)"
	case is("destructiveHint") == "true":
		return "! destructive (D)"
	case is("destructiveHint") == "false":
		return "changes data, but destroys none"
	}
	return "! may be destructive: it has no hints"
}
