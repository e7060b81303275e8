package pane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/query"
	"goblin/registry/report"
	"goblin/registry/termtext"
	"goblin/tui/activity"
	"goblin/tui/approve"
	"goblin/tui/build"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/serverform"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// Servers is the pane of servers.
type Servers struct {
	app   *Layout
	Table *list.Table[registry.ServerState]

	lastSeenStates map[string]registry.State // when the pane was last open
	unseen         int                       // servers whose state changed since then
	down           int
	stderrTails    map[string][]*logRow // replaced, never changed
	next           uint64               // next record to read
	findings       map[string]*finding
	builds         build.News
}

func newServers(a *Layout) *Servers {
	p := &Servers{app: a, lastSeenStates: map[string]registry.State{}, stderrTails: map[string][]*logRow{}, findings: map[string]*finding{}, builds: build.News{}}
	p.Table = list.New(a.Ctx, a.Now,
		func(s registry.ServerState) string { return s.Name },
		func(s registry.ServerState) string {
			return strings.Join([]string{s.Name, s.ServerTitle, s.ServerName, s.State.Label(), s.LastError}, "\x00")
		},
		serverFields,
		list.Order[registry.ServerState]{Name: "config"})
	p.setColumns()
	return p
}

func serverFields(rows []registry.ServerState) []list.Field {
	text := func(name, help string, value func(registry.ServerState) string, aliases ...string) list.Field {
		return list.Field{Name: name, Aliases: aliases, Kind: list.Text, Help: help, Text: func(i int) string { return value(rows[i]) }}
	}
	return []list.Field{
		text("server", "the name", func(s registry.ServerState) string { return s.Name }, "srv", "name"),
		text("state", "ready, idle, connecting, retrying, failed, needs login, disabled", func(s registry.ServerState) string { return s.State.Label() }),
		text("transport", "stdio, http or sse", func(s registry.ServerState) string { return s.Transport }),
		text("revision", "the protocol revision", func(s registry.ServerState) string { return s.ProtocolVersion }, "protocol"),
		text("error", "the last error", func(s registry.ServerState) string { return s.LastError }, "err"),
	}
}

// States that need attention come first.
func sortPriority(s registry.State) int {
	return slices.Index([]registry.State{
		registry.StateFailed, registry.StateNeedsLogin, registry.StateRetrying, registry.StateConnecting,
		registry.StateReady, registry.StateSleeping, registry.StateStopped, registry.StateDisabled,
	}, s)
}

// IsReachable reports whether a server answers requests, possibly after a start.
func IsReachable(s registry.State) bool {
	return s == registry.StateReady || s == registry.StateSleeping
}

// IsDown reports whether a server should be up and is not, even while it reconnects after
// a failure.
func IsDown(s registry.ServerState) bool {
	return failed(s.State) || s.State == registry.StateConnecting && s.LastError != ""
}

func failed(s registry.State) bool {
	return s == registry.StateFailed || s == registry.StateNeedsLogin || s == registry.StateRetrying
}

func (p *Servers) Place() keymap.Place { return keymap.InServers }

func (p *Servers) Tab() (name, count string) {
	count = uicontext.FormatCount(p.Table.Total())
	if p.unseen > 0 && p.app.Open != PaneServers {
		count += " " + p.app.Theme.Delta + uicontext.FormatCount(p.unseen)
	}
	if p.down > 0 {
		count += " " + p.app.Theme.Failed + uicontext.FormatCount(p.down)
	}
	return "Servers", count
}

func (p *Servers) Watches() registry.Changes {
	return registry.Servers | registry.Logs | registry.Pins
}

func (p *Servers) Refresh(what registry.Changes) tea.Cmd {
	if what&registry.Logs != 0 {
		p.readTails()
	}
	if what&registry.Servers == 0 {
		return nil
	}
	states := p.app.Reg.States()
	p.down = 0
	for _, s := range states {
		if IsDown(s) {
			p.down++
		}
	}
	p.countNews(states)
	if text, bad := p.builds.Next(states); text != "" {
		p.app.Say("%s", text)
		p.app.Flash.Bad = bad
	}
	return p.Table.Refresh(len(states), func() []registry.ServerState { return states }, func() tea.Cmd { return nil })
}

// countNews counts the servers whose state differs from when the pane was last open,
// without first starts.
func (p *Servers) countNews(states []registry.ServerState) {
	p.unseen = 0
	known := make(map[string]registry.State, len(states))
	for _, s := range states {
		before, was := p.lastSeenStates[s.Name]
		switch {
		case p.app.Open == PaneServers || !was:
			if was || s.State != registry.StateStopped && s.State != registry.StateConnecting {
				known[s.Name] = s.State
			}
			continue
		case before != s.State && !isIdleChange(before, s.State):
			p.unseen++
		}
		known[s.Name] = before
	}
	p.lastSeenStates = known
}

// isIdleChange reports whether a server was only used or became idle.
func isIdleChange(before, now registry.State) bool {
	return before == registry.StateSleeping && (IsReachable(now) || now == registry.StateConnecting) ||
		now == registry.StateSleeping && before == registry.StateReady
}

// tailLines is the maximum number of folded output lines in a detail.
const tailLines = 20

func (p *Servers) readTails() {
	if p.app.Open != PaneServers {
		return // read when the pane opens
	}
	came := map[string][]*logRow{}
	for _, r := range p.app.Reg.Logs().Window(p.next, -1) {
		p.next = r.Seq + 1
		if r.Server != "" && (r.Source == registry.SourceStderr || r.Source == registry.SourceMessage) {
			came[r.Server] = append(came[r.Server], &logRow{LogRecord: r})
		}
	}
	for server, rows := range came {
		all := foldLines(p.stderrTails[server], rows)
		p.stderrTails[server] = slices.Clone(all[max(0, len(all)-tailLines):])
	}
}

func (p *Servers) Heading() (title, right string) {
	return heading(p.app.Theme, "Servers", p.Table)
}

func (p *Servers) Rows() list.Rows                { return p.Table }
func (p *Servers) Click(x, y int) (bool, tea.Cmd) { return p.Table.Click(x, y) }
func (p *Servers) Wheel(_, _, by int)             { p.Table.Scroll(by) }

func (p *Servers) Lines(lk *theme.Theme, w, h int, focused bool) []string {
	return p.Table.Grid(lk, w, h, focused)
}

// minErrorWidth is the minimum width of the error column. If it does not fit, errors of
// servers that are down replace other columns.
const minErrorWidth = 24

type serverCol = list.Column[registry.ServerState]

func (p *Servers) setColumns() {
	count := func(title string, rank, w int, kind registry.Kind) serverCol {
		c := list.NumberColumn(title, rank, w, func(s registry.ServerState) float64 { return float64(s.Counts[kind]) },
			func(s registry.ServerState, _ int) (string, theme.Style) { return p.count(s, kind) })
		c.HasValue = func(s registry.ServerState) bool { return s.Counts[kind] > 0 || kind == registry.Tool }
		return c
	}
	latency := list.NumberColumn("latency", 6, 7, func(s registry.ServerState) float64 { return float64(s.Latency) },
		func(s registry.ServerState, _ int) (string, theme.Style) {
			if s.Latency <= 0 {
				return "", ""
			}
			return uicontext.FormatDuration(s.Latency), ""
		})
	restarts := list.NumberColumn("restarts", 9, 8, func(s registry.ServerState) float64 { return float64(s.Restarts) },
		func(s registry.ServerState, _ int) (string, theme.Style) {
			if s.Restarts == 0 {
				return p.app.Theme.Sep, p.app.Theme.Dim
			}
			return uicontext.FormatCount(s.Restarts), p.app.Theme.Warn
		})
	latency.HasValue = func(s registry.ServerState) bool { return s.Latency > 0 }
	restarts.HasValue = func(s registry.ServerState) bool { return s.Restarts > 0 }
	p.Table.SetColumns(
		serverCol{
			Name: "state", NeededWidth: 13, Show: func(s registry.ServerState, _ int) (string, theme.Style) {
				mark, style := stateMark(p.app.Theme, s.State)
				return mark + " " + s.State.Label(), style
			},
			Less: func(x, y registry.ServerState) int { return cmp.Compare(sortPriority(x.State), sortPriority(y.State)) },
		},
		serverCol{Name: "server", MinWidth: 6, PreferredWidth: 24, Text: func(s registry.ServerState) string { return s.Name }},
		serverCol{Name: "via", Priority: 7, Text: func(s registry.ServerState) string { return s.Transport }},
		serverCol{Name: "revision", Priority: 8, Text: func(s registry.ServerState) string { return s.ProtocolVersion }},
		count("tools", 1, 5, registry.Tool), count("res", 2, 5, registry.Resource), count("tmpl", 5, 4, registry.Template), count("prompts", 3, 7, registry.Prompt),
		latency, restarts,
		serverCol{Name: "build", Priority: 1, NeededWidth: 27, Unsorted: true, HasValue: func(s registry.ServerState) bool { return s.Build != nil }, Show: func(s registry.ServerState, _ int) (string, theme.Style) {
			return build.Label(p.app.Theme, s.Build, p.app.Now())
		}},
		p.recentColumn("requests", 10, activity.Requests), p.recentColumn("errors", 12, activity.Failures), p.recentColumn("times", 13, activity.LatencySeries),
		serverCol{
			Name: "last error", Priority: 11, MinWidth: minErrorWidth, PreferredWidth: minErrorWidth, Unsorted: true, Text: func(s registry.ServerState) string { return s.LastError },
			Show: func(s registry.ServerState, _ int) (string, theme.Style) {
				if IsDown(s) {
					return p.problem(s), p.app.Theme.Bad
				}
				return uicontext.SanitizeLine(s.LastError), p.app.Theme.Dim
			},
		})
	p.Table.Base = func(s registry.ServerState) theme.Style {
		if s.State == registry.StateDisabled {
			return p.app.Theme.Dim
		}
		return ""
	}
	p.Table.Replacement = func(s registry.ServerState) (string, theme.Style) {
		if IsDown(s) && s.LastError != "" && !p.Table.IsColumnVisible("last error") {
			return p.problem(s), p.app.Theme.Bad
		}
		return "", ""
	}
}

func (p *Servers) count(s registry.ServerState, kind registry.Kind) (string, theme.Style) {
	lk, n := p.app.Theme, s.Counts[kind]
	switch {
	case kind == registry.Tool && len(p.app.Reg.UnapprovedTools(s.Name)) > 0:
		return uicontext.FormatCount(n) + "!", lk.Warn
	case n == 0:
		return lk.Sep, lk.Dim
	case !s.CachedAt.IsZero():
		return uicontext.FormatCount(n) + "~", lk.Stale
	case s.Stale:
		return uicontext.FormatCount(n), lk.Stale
	}
	return uicontext.FormatCount(n), ""
}

// recentColumn covers the last two minutes.
func (p *Servers) recentColumn(title string, rank int, what activity.Measure) serverCol {
	a := p.app
	return serverCol{Name: title, Priority: rank, NeededWidth: 12, Unsorted: true, Show: func(s registry.ServerState, w int) (string, theme.Style) {
		return a.Pulse.Line(a.Theme, a.Now(), s.Name, what, w), a.Pulse.Style(a.Theme, what)
	}}
}

func (p *Servers) problem(s registry.ServerState) string { return p.app.Problem(&s) }

// Problem returns why a server is down and the key that helps. The line is safe for the
// terminal.
func (a *Layout) Problem(s *registry.ServerState) string {
	text := strings.TrimPrefix(strings.TrimPrefix(s.LastError, fmt.Sprintf("connect %q: ", s.Name)), string(s.State)+": ")
	if text == s.State.Label() {
		text = ""
	}
	why := uicontext.SanitizeLine(report.Reason(text, s.Attempts))
	switch {
	case s.State == registry.StateNeedsLogin && why == "":
		return a.KeyOf("log-in") + " in Servers logs in"
	case s.State == registry.StateNeedsLogin && s.CanLogIn:
		return a.KeyOf("log-in") + " logs in: " + why
	}
	if name := serverform.UnsetVariable(s.LastError); name != "" {
		return uicontext.SanitizeLine(name) + " is not set; " + a.KeyOf("edit-server") + " sets it"
	}
	return cmp.Or(why, s.State.Label())
}

func stateMark(lk *theme.Theme, s registry.State) (string, theme.Style) {
	switch {
	case s == registry.StateReady:
		return lk.Up, lk.Good
	case s == registry.StateConnecting:
		return lk.Starting, lk.Warn
	case failed(s):
		return lk.Failed, lk.Bad
	default:
		return lk.Disabled, lk.Dim
	}
}

func (p *Servers) Empty() []string {
	return []string{
		"No servers are configured.", "",
		":setup shows how to add servers and connect clients.",
		p.app.KeyOf("open") + " shows the first steps.",
	}
}

// Item returns no item: a server is not an entry of the catalog.
func (p *Servers) Item() uicontext.Item { return uicontext.Item{} }

// ShownContent returns the detail, for copying, editors and files.
func (p *Servers) ShownContent() uicontext.CachedContent {
	s, ok := p.Table.Selected()
	doc := p.app.Details[PaneServers].View.Doc()
	if !ok || doc == nil || doc.Len() == 0 || p.app.Details[PaneServers].subject.Key != "server "+s.Name {
		return uicontext.CachedContent{}
	}
	return uicontext.CachedContent{Name: s.Name + ".txt", Data: []byte(doc.Plain())}
}

func (p *Servers) Handlers() map[string]keys.Handler {
	a := p.app
	selected := func(do func(registry.ServerState) tea.Cmd) func() tea.Cmd {
		return func() tea.Cmd {
			s, _ := p.Table.Selected()
			return do(s)
		}
	}
	return map[string]keys.Handler{
		"open":         {Run: p.open},
		"reload":       {WhyDisabled: p.whyNotRestart, Run: selected(func(s registry.ServerState) tea.Cmd { return p.Restart(s.Name) })},
		"enable":       {WhyDisabled: p.none, Run: selected(p.Enable)},
		"remove":       {WhyDisabled: p.whyNoConfig, Run: selected(p.remove)},
		"approve":      {WhyDisabled: p.whyNotApprove, Run: selected(func(s registry.ServerState) tea.Cmd { return approve.Open(a.Context, a.Reg.UnapprovedTools(s.Name)) })},
		"pager":        {WhyDisabled: p.none, Run: selected(func(s registry.ServerState) tea.Cmd { return a.StderrOf(s.Name) })},
		"copy":         {WhyDisabled: p.none, Run: selected(func(s registry.ServerState) tea.Cmd { return a.Copy(s.Name, "the name") })},
		"editor":       {WhyDisabled: p.whyNothingShown},
		"save":         {WhyDisabled: p.whyNothingShown},
		"copy-content": {WhyDisabled: p.whyNothingShown},
		"inspect":      {Run: p.inspect},
		"clear":        {WhyDisabled: p.unless("servers have no cached content")},
		"call":         {WhyDisabled: p.unless("servers cannot be called; " + a.KeyOf("tools") + " shows their tools")},
		"subscribe":    {WhyDisabled: p.unless("only resources can be subscribed to")},
	}
}

// open also starts an idle server and diagnoses a failed one.
func (p *Servers) open() tea.Cmd {
	open := p.app.openDetail(p.Table.Len() > 0)
	if p.app.ReadOnly != "" {
		return open
	}
	s, _ := p.Table.Selected()
	switch s.State {
	case registry.StateSleeping:
		return tea.Batch(open, p.app.Do(func() error { return p.app.Backend.Wake(s.Name) }, "start "+s.Name, nil))
	case registry.StateFailed, registry.StateRetrying:
		return tea.Batch(open, p.diagnose(s))
	}
	return open
}

func (p *Servers) inspect() tea.Cmd {
	if s, ok := p.Table.Selected(); ok {
		return p.app.ShowTraffic(query.Set("", "server", []string{s.Name}))
	}
	return p.app.Inspect(uicontext.Item{})
}

func (p *Servers) none() string {
	if p.Table.Len() == 0 {
		return "no server selected"
	}
	return ""
}

func (p *Servers) unless(why string) func() string {
	return func() string {
		if p.Table.Len() == 0 {
			return ""
		}
		return why
	}
}

func (p *Servers) whyNotRestart() string {
	if s, _ := p.Table.Selected(); s.State == registry.StateDisabled {
		return uicontext.SanitizeLine(s.Name) + " is disabled; " + p.app.KeyOf("enable") + " enables it"
	}
	return p.none()
}

// NoLoginReason explains why a login at a server is impossible, or returns "".
func NoLoginReason(s registry.ServerState) string {
	switch {
	case !s.CanLogIn && s.Transport == "stdio":
		return uicontext.SanitizeLine(s.Name) + " is a local server without a login"
	case !s.CanLogIn:
		return uicontext.SanitizeLine(s.Name) + " has no login: its config sets an Authorization header or oauth: off"
	case s.State == registry.StateDisabled:
		return uicontext.SanitizeLine(s.Name) + " is disabled; :enable enables it"
	}
	return ""
}

func (p *Servers) whyNotApprove() string {
	if s, ok := p.Table.Selected(); ok && len(p.app.Reg.UnapprovedTools(s.Name)) == 0 {
		return uicontext.SanitizeLine(s.Name) + " has no unapproved tools"
	}
	return p.none()
}

func (p *Servers) whyNothingShown() string {
	if p.Table.Len() > 0 && len(p.ShownContent().Data) == 0 {
		return p.app.KeyOf("open") + " opens the detail first"
	}
	return p.none()
}

func (p *Servers) clients() (names string, n int) {
	var all []string
	for _, s := range p.app.Reg.Sessions() {
		if !s.Screen {
			n++
			all = append(all, uicontext.CutText(uicontext.SanitizeLine(cmp.Or(s.ClientTitle, s.Client, s.ID)), 30))
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > 3 {
		all = append(all[:3], p.app.Theme.Ellipsis)
	}
	return strings.Join(all, ", "), n
}

// confirmDisturbing runs do. It asks first if clients are connected.
func (p *Servers) confirmDisturbing(title, yes, then string, do func() tea.Cmd) tea.Cmd {
	names, n := p.clients()
	if n == 0 {
		return do()
	}
	return p.app.Push(&dialog.Confirm{
		Screen: p.app.Context, Title: title, Yes: yes, Then: do,
		Text: []string{fmt.Sprintf("Connected: %s (%s).", names, termtext.Count(n, "client")), then},
	})
}

// Restart restarts a server. It asks first if clients are connected.
func (p *Servers) Restart(name string) tea.Cmd {
	a := p.app
	return p.confirmDisturbing("Restart "+name+"?", "restart", "Its running requests fail.", func() tea.Cmd {
		a.Say("Restarting %s", name)
		return a.Do(func() error { return a.Backend.Restart(name) }, "restart "+name, nil)
	})
}
