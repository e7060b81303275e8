package tui

import (
	"cmp"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/breakpoints"
	"goblin/tui/dialog"
	"goblin/tui/home"
	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

func (a *app) showClients() tea.Cmd {
	return a.Push(dialog.NewClients(dialog.ClientsOptions{
		Context: a.Context, Traffic: a.TrafficOf, InFlight: a.Logs().InFlightOf, Failed: pane.IsFailure,
		Daemon: a.processText(),
	}))
}

func (a *app) showPastCalls() tea.Cmd {
	if it := a.Panes[a.Open].Item(); it.Kind == registry.Resource {
		return a.ShowHistory(it)
	}
	it := a.Panes[a.Open].Item()
	_, cmd := dialog.NewPastCalls(a.Context, it, a.ComparePast(), func() tea.Cmd { return a.rules.Add(breakpoints.TargetOfItem(it)) })
	return cmd
}

func (a *app) home() *home.Pane { return a.Panes[pane.PaneHome].(*home.Pane) }

// ruleTarget returns the requests that a new rule matches.
func (a *app) ruleTarget() breakpoints.Target {
	switch r, ok := a.Logs().Traffic.Table.Selected(); {
	case a.Open == pane.PaneLogs && a.Logs().IsTraffic() && ok:
		return breakpoints.TargetOfRecord(&r.TrafficRecord)
	case a.Open == pane.PaneServers:
		s, _ := a.findServer("")
		return breakpoints.TargetOfServer(s.Name)
	}
	return breakpoints.TargetOfItem(a.Panes[a.Open].Item())
}

func (a *app) whyNotCompare() string {
	h := a.Handlers[a.Open]["compare"]
	switch {
	case h.Run == nil:
		return "only requests, tools and prompts can be compared"
	case h.WhyDisabled != nil:
		return h.WhyDisabled()
	}
	return ""
}

func (a *app) whyNoPastCalls() string {
	if it := a.Panes[a.Open].Item(); it.IsEmpty() || it.Kind != registry.Resource && len(a.Calls.History(it)) == 0 {
		return "not called in this UI yet"
	}
	return ""
}

func (a *app) scrollSideways(cells int) func() tea.Cmd {
	return func() tea.Cmd {
		a.Details[a.Open].View.Right(cells)
		return nil
	}
}

func (a *app) searchStep(step func(*viewer.View)) func() tea.Cmd {
	return func() tea.Cmd {
		step(a.Details[a.Open].View)
		return nil
	}
}

func (a *app) sort(by func(list.Rows) tea.Cmd) tea.Cmd {
	r := a.Panes[a.Open].Rows()
	cmd := by(r)
	done := "Sorted"
	if a.Open == pane.PaneLogs && a.Logs().Open == pane.TabTimeline {
		done = "Grouped"
	}
	a.Say("%s %s", done, cmp.Or(r.OrderText(a.Theme), "as listed"))
	return cmd
}

func (a *app) nextDetailPlace() tea.Cmd { return a.Say("Detail: %s", a.NextPlace()) }

func (a *app) resize(by int) func() tea.Cmd {
	return func() tea.Cmd {
		a.Split.ListPercent = max(leastPart, min(mostPart, a.Split.ListPercent+by))
		return nil
	}
}

func (a *app) toggleMouse() tea.Cmd {
	a.mouse = !a.mouse
	if a.mouse {
		a.Say("Mouse enabled")
		return tea.EnableMouseCellMotion
	}
	a.Say("Mouse disabled: the terminal can select text")
	return tea.DisableMouse
}

func (a *app) copyContent() tea.Cmd {
	c := a.Content()
	if c.Blob {
		return a.Complain("the content is binary; %s saves it", a.KeyOf("save"))
	}
	return a.Copy(string(c.Data), "the content")
}

func (a *app) clearCached() tea.Cmd {
	it := a.Panes[a.Open].Item()
	if it.IsEmpty() || !a.Reg.Contents().Clear(it.Kind, it.Server, it.Name) {
		return a.Complain("the item has no cached content")
	}
	return a.Say("Removed the cached content of %s", it.Listed)
}

// copyName removes hidden characters, because the text may be pasted into a shell. Of a
// template it copies the last expansion.
func (a *app) copyName() tea.Cmd {
	if all := a.selectedRows(); len(all) > 1 {
		names := make([]string, len(all))
		for i, it := range all {
			names[i] = uicontext.SanitizeLine(it.Listed)
		}
		return a.Copy(strings.Join(names, "\n"), termtext.Count(len(all), "name"))
	}
	it := a.Panes[a.Open].Item()
	if inv := uicontext.CachedInvocation(a.Reg, it); it.Kind == registry.Template && inv != nil {
		return a.Copy(uicontext.SanitizeLine(inv.Expanded), "the expanded URI")
	}
	return a.Copy(uicontext.SanitizeLine(it.Listed), "the name")
}

// selectedRows returns the marked rows, or nil if the pane has no marks.
func (a *app) selectedRows() []uicontext.Item {
	if p, ok := a.Panes[a.Open].(interface{ Marked() []uicontext.Item }); ok {
		return p.Marked()
	}
	return nil
}

func (a *app) toggleMark() tea.Cmd { return a.sayMarks(a.Panes[a.Open].Rows().ToggleMark()) }

func (a *app) toggleMarks() tea.Cmd { return a.sayMarks(a.Panes[a.Open].Rows().ToggleMarks()) }

func (a *app) whyNotMarkAll() string {
	if a.Open == pane.PaneLogs && (!a.Logs().IsTraffic() || a.Logs().Open == pane.TabTimeline) {
		return "in Logs, only running requests of Traffic can be marked"
	}
	return ""
}

func (a *app) sayMarks(n int) tea.Cmd {
	if n == 0 {
		return a.Say("No rows marked")
	}
	return a.Say("%d marked; %s unmarks", n, a.KeyOf("back"))
}

func (a *app) whyNotCancel() string {
	switch {
	case a.Open == pane.PaneLogs && a.Logs().IsTraffic() && a.Logs().Rows().Len() > 0:
		return a.Logs().WhyNotCancel() // the row under the cursor
	case a.Calls.Len() == 0:
		return "no running calls"
	case a.cancellable() == nil:
		return "several calls are running; select one"
	}
	return ""
}

func (a *app) whyNotSearched() string {
	if _, n := a.Details[a.Open].View.MatchIndex(); n == 0 {
		return "no search; " + a.KeyOf("filter") + " in the detail starts one"
	}
	return ""
}

func (a *app) whyNotLogIn() string {
	if a.Open != pane.PaneServers {
		return "only servers have logins; " + a.KeyOf("servers") + " shows them"
	}
	s, why := a.findServer("")
	if why == "" {
		why = pane.NoLoginReason(s)
	}
	return why
}

func (a *app) needsLogin() bool {
	s, why := a.findServer("")
	return why == "" && s.State == registry.StateNeedsLogin
}

func (a *app) logIn() tea.Cmd {
	s, _ := a.findServer("")
	return a.Panes[pane.PaneServers].(*pane.Servers).LogIn(s)
}

func (a *app) whyNotInspect() string {
	if a.Open != pane.PaneLogs && a.Open != pane.PaneServers && a.Panes[a.Open].Item().IsEmpty() {
		return "no item selected"
	}
	return ""
}

type multiList interface {
	Part() (at, of int)
	Choose(part int)
}

// nextFocus cycles through the lists of a pane and its detail, or through the panes if it
// has one list.
func (a *app) nextFocus(step int) tea.Cmd {
	at, of := 0, 1
	several, ok := a.Panes[a.Open].(multiList)
	if ok {
		at, of = several.Part()
	}
	n := of
	if a.DetailShown() {
		n++
	}
	if n == 1 {
		return a.Visit((a.Open + step + len(a.Panes)) % len(a.Panes))
	}
	if a.Inside {
		at = of
	}
	at = (at + step + n) % n
	a.Unzoom()
	a.Inside = at == of
	if !a.Inside && ok {
		several.Choose(at)
	}
	return nil
}

func (a *app) back() tea.Cmd {
	var cmd tea.Cmd
	switch typed, _ := a.Panes[a.Open].Rows().FilterQuery(); {
	case a.DetailShown() && a.escCancels() != nil:
		return a.Calls.Stop(a.escCancels())
	case a.Unzoom():
	case a.Inside:
		a.Inside = false
	case a.Panes[a.Open].Rows().ClearMarks():
	case a.goBack(&cmd):
		return cmd
	case typed != "":
		return a.SetFilter("")
	case a.Opened && !a.Beside():
		a.Opened = false
	}
	return nil
}

// goBack returns to the place before the last jump and reports whether there was one.
func (a *app) goBack(cmd *tea.Cmd) (ok bool) {
	*cmd, ok = a.GoBack()
	return ok
}

// escCancels returns the visible running call, or nil.
func (a *app) escCancels() *uicontext.Running {
	run := a.Calls.ForItem(a.Panes[a.Open].Item())
	if run == nil || run.Silent {
		return nil
	}
	return run
}

// cancel cancels the request under the cursor in Traffic, otherwise the running call.
func (a *app) cancel() tea.Cmd {
	if a.Open == pane.PaneLogs && a.Logs().WhyNotCancel() == "" {
		return a.Logs().Cancel()
	}
	return a.Calls.Stop(a.cancellable())
}

// cancellable returns the call under the cursor or the only running one, or nil if
// ambiguous.
func (a *app) cancellable() *uicontext.Running {
	if run := a.Calls.ForItem(a.Panes[a.Open].Item()); run != nil {
		return run
	}
	if a.Calls.Len() == 1 {
		return a.Calls.Running[0]
	}
	return nil
}

func (a *app) nextTheme() tea.Cmd {
	all := theme.Themes()
	return a.chooseTheme(all[(slices.Index(all, a.Theme.Variant)+1)%len(all)])
}

// quit closes the UI. It asks first if that affects clients, other UIs or running calls.
func (a *app) quit() tea.Cmd {
	leave := func() tea.Cmd {
		a.quitting = true
		return tea.Quit
	}
	a.header.refresh(a)
	clients, screens, running := a.header.clients, max(0, a.header.screens-1), a.Calls.Len()
	if !a.o.Daemon.Owner {
		clients, screens = 0, 0
	}
	if clients+screens+running == 0 {
		return leave()
	}
	if clients+screens == 0 {
		return a.Push(&dialog.Confirm{
			Screen: a.Context, Title: "Quit?",
			Text: []string{termtext.Count(running, "call") + " would be cancelled."}, Yes: "quit", Then: leave,
		})
	}
	var who []string
	text := []string{"", "Servers stop and running calls fail."}
	if clients > 0 {
		who = append(who, termtext.Count(clients, "client"))
	}
	if screens > 0 {
		who = append(who, termtext.Count(screens, "other UI"))
	}
	text[0] = strings.Join(who, " and ") + " use this daemon."
	if clients+screens == 1 {
		text[0] = who[0] + " uses this daemon."
	}
	if slices.ContainsFunc(a.header.sessions, func(s registry.Session) bool { return s.Transport == "socket" }) {
		text = append(text, "The next goblin stdio starts a new daemon.")
	}
	return a.Push(&dialog.Confirm{Screen: a.Context, Title: "Quit?", Text: text, Yes: "quit", Then: leave})
}
