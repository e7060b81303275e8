package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"goblin/tui/list"
	"goblin/tui/work"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/filter"
	"goblin/tui/keys"
	"goblin/tui/look"
)

// servers is the pane of servers.
type servers struct {
	app *app
	t   *list.Table[registry.ServerState]

	headed  bool                            // the first line names the columns
	longest int                             // cells of the longest name
	failing bool                            // a server has an error to show
	settled map[string]registry.State       // states when the pane was last looked at
	news    int                             // servers whose state is another one now
	down    int                             // servers that should be up
	tails   map[string][]registry.LogRecord // replaced, never changed
	next    uint64                          // record of the journal that comes next
}

func newServers(a *app) *servers {
	p := &servers{app: a, settled: map[string]registry.State{}, tails: map[string][]registry.LogRecord{}}
	by := func(name string, less func(x, y registry.ServerState) int) list.Order[registry.ServerState] {
		return list.By(name, func(x, y registry.ServerState) int {
			return cmp.Or(less(x, y), cmp.Compare(x.Name, y.Name))
		})
	}
	p.t = list.New(a.ctx, a.now,
		func(s registry.ServerState) string { return s.Name },
		func(s registry.ServerState) string {
			return strings.Join([]string{s.Name, s.ServerTitle, s.ServerName, string(s.State), s.LastError}, "\x00")
		},
		serverFields,
		list.Order[registry.ServerState]{Name: "config"},
		by("state", func(x, y registry.ServerState) int { return cmp.Compare(urgency(x.State), urgency(y.State)) }),
		by("name", func(x, y registry.ServerState) int {
			return cmp.Compare(strings.ToLower(x.Name), strings.ToLower(y.Name))
		}),
		by("latency", func(x, y registry.ServerState) int { return cmp.Compare(y.Latency, x.Latency) }),
		by("restarts", func(x, y registry.ServerState) int { return cmp.Compare(y.Restarts, x.Restarts) }))
	return p
}

func serverFields(rows []registry.ServerState) []filter.Field {
	text := func(name, help string, value func(registry.ServerState) string, aliases ...string) filter.Field {
		return filter.Field{Name: name, Aliases: aliases, Kind: filter.Text, Help: help, Text: func(i int) string { return value(rows[i]) }}
	}
	return []filter.Field{
		text("server", "its name", func(s registry.ServerState) string { return s.Name }, "srv", "name"),
		text("state", "ready, connecting, retrying, failed, needs login, disabled", func(s registry.ServerState) string { return string(s.State) }),
		text("transport", "stdio, http or sse", func(s registry.ServerState) string { return s.Transport }),
		text("revision", "of the protocol", func(s registry.ServerState) string { return s.ProtocolVersion }, "protocol"),
		text("error", "its last error", func(s registry.ServerState) string { return s.LastError }, "err"),
	}
}

// urgency sorts states: what needs somebody comes first.
func urgency(s registry.State) int {
	return slices.Index([]registry.State{
		registry.StateFailed, registry.StateNeedsLogin, registry.StateRetrying, registry.StateConnecting,
		registry.StateReady, registry.StateStopped, registry.StateDisabled,
	}, s)
}

// isDown is true for servers that should be up. One that tries again after it
// failed is still down.
func isDown(s registry.ServerState) bool {
	return failed(s.State) || s.State == registry.StateConnecting && s.LastError != ""
}

func failed(s registry.State) bool {
	return s == registry.StateFailed || s == registry.StateNeedsLogin || s == registry.StateRetrying
}

func (p *servers) in() keys.Place { return keys.InServers }

func (p *servers) tab() (name, count string) {
	count = grouped(p.t.Total())
	if p.news > 0 && p.app.open != paneServers {
		count += " " + p.app.look.Delta + grouped(p.news)
	}
	if p.down > 0 {
		count += " " + p.app.look.Failed + grouped(p.down)
	}
	return "Servers", count
}

func (p *servers) follows() registry.Changes {
	return registry.Servers | registry.Logs | registry.Pins
}

func (p *servers) refresh(what registry.Changes) tea.Cmd {
	if what&registry.Logs != 0 {
		p.readTails()
	}
	if what&registry.Servers == 0 {
		return nil
	}
	states := p.app.reg.States()
	p.longest, p.failing, p.down = 0, false, 0
	for _, s := range states {
		p.longest = max(p.longest, look.Width(clean(s.Name)))
		p.failing = p.failing || s.LastError != ""
		if isDown(s) {
			p.down++
		}
	}
	p.compare(states)
	return p.t.Refresh(len(states), func() []registry.ServerState { return states })
}

// compare counts the servers that are not as they were when the pane was last
// looked at. That a server comes up for the first time is no news.
func (p *servers) compare(states []registry.ServerState) {
	p.news = 0
	known := make(map[string]registry.State, len(states))
	for _, s := range states {
		before, was := p.settled[s.Name]
		switch {
		case p.app.open == paneServers || !was:
			if was || s.State != registry.StateStopped && s.State != registry.StateConnecting {
				known[s.Name] = s.State
			}
			continue
		case before != s.State:
			p.news++
		}
		known[s.Name] = before
	}
	p.settled = known
}

// tailLines of a server's stderr and messages stand in its detail.
const tailLines = 20

// readTails takes over what servers wrote since the last time.
func (p *servers) readTails() {
	if p.app.open != paneServers {
		return // it is read when the pane is opened
	}
	journal := p.app.reg.Logs()
	for _, r := range journal.Window(p.next, -1) {
		p.next = r.Seq + 1
		if r.Server == "" || r.Source != registry.SourceStderr && r.Source != registry.SourceMessage {
			continue
		}
		old := p.tails[r.Server]
		tail := make([]registry.LogRecord, 0, tailLines)
		tail = append(tail, old[max(0, len(old)-tailLines+1):]...)
		p.tails[r.Server] = append(tail, r)
	}
}

func (p *servers) heading() (title, right string) {
	lk := p.app.look
	title = lk.Title.On("Servers") + " " + grouped(p.t.Total())
	if p.t.Typed != "" {
		title = lk.Title.On("Servers") + " " + grouped(p.t.Len()) + "/" + grouped(p.t.Total())
	}
	if p.t.Order > 0 {
		right = "by " + p.t.Sorting()
	}
	return title, right
}

// titled is a list whose first line names its columns.
type titled struct{ list.Rows }

func (t titled) Position() int { return t.Rows.Position() + 1 }

func (p *servers) rows() list.Rows {
	if p.headed {
		return titled{p.t}
	}
	return p.t
}

func (p *servers) above() int {
	if p.headed {
		return 1
	}
	return 0
}

func (p *servers) click(y int) bool { return p.t.Click(y - p.above()) }
func (p *servers) wheel(_, by int)  { p.t.Scroll(by) }

func (p *servers) lines(lk *look.Look, w, h int, focused bool) []string {
	cells := p.plan(w - 2)
	row := func(s registry.ServerState, w int) string { return p.row(cells, s, w) }
	p.headed = h >= 4
	if !p.headed {
		return p.t.Lines(lk, w, h, focused, row)
	}
	var b strings.Builder
	b.WriteByte(' ')
	for _, c := range cells {
		b.WriteByte(' ')
		if c.right {
			b.WriteString(lk.Right(c.title, c.w))
		} else {
			b.WriteString(lk.Fit(c.title, c.w))
		}
	}
	head := lk.Dim.On(lk.Fit(b.String(), w))
	return append([]string{head}, p.t.Lines(lk, w, h-1, focused, row)...)
}

// serverCell is one column of the list.
type serverCell struct {
	title string
	w     int
	right bool
	text  func(registry.ServerState) (string, look.Style)
}

// plan chooses the columns that w cells have room for: the most useful ones,
// in an order that never changes.
func (p *servers) plan(w int) []serverCell {
	lk := p.app.look
	plain := func(value func(registry.ServerState) string) func(registry.ServerState) (string, look.Style) {
		return func(s registry.ServerState) (string, look.Style) { return clean(value(s)), "" }
	}
	number := func(kind registry.Kind) func(registry.ServerState) (string, look.Style) {
		return func(s registry.ServerState) (string, look.Style) {
			switch n := s.Counts[kind]; {
			case n == 0:
				return lk.Sep, lk.Dim
			case s.Stale:
				return grouped(n), lk.Stale
			default:
				return grouped(n), ""
			}
		}
	}
	all := []serverCell{
		{"state", 13, false, func(s registry.ServerState) (string, look.Style) {
			mark, style := stateMark(lk, s.State)
			return mark + " " + string(s.State), style
		}},
		{"server", max(6, min(p.longest, 24)), false, plain(func(s registry.ServerState) string { return s.Name })},
		{"via", 5, false, plain(func(s registry.ServerState) string { return s.Transport })},
		{"revision", 10, false, plain(func(s registry.ServerState) string { return s.ProtocolVersion })},
		{"tools", 5, true, func(s registry.ServerState) (string, look.Style) {
			if n := len(p.app.reg.Pinned(s.Name)); n > 0 {
				return grouped(s.Counts[registry.Tool]) + "!", lk.Warn
			}
			return number(registry.Tool)(s)
		}},
		{"res", 5, true, number(registry.Resource)},
		{"tmpl", 4, true, number(registry.Template)},
		{"prompts", 7, true, number(registry.Prompt)},
		{"latency", 7, true, func(s registry.ServerState) (string, look.Style) {
			if s.Latency <= 0 {
				return "", ""
			}
			return millis(s.Latency), ""
		}},
		{"restarts", 8, true, func(s registry.ServerState) (string, look.Style) {
			if s.Restarts == 0 {
				return lk.Sep, lk.Dim
			}
			return grouped(s.Restarts), lk.Warn
		}},
		{"last error", leastError, false, func(s registry.ServerState) (string, look.Style) {
			if isDown(s) {
				return clean(s.LastError), lk.Bad
			}
			return clean(s.LastError), lk.Dim
		}},
	}
	takes := make([]bool, len(all))
	left := w + 1 // no gap behind the last one
	for _, i := range []int{0, 1, 4, 5, 7, 6, 8, 2, 3, 9, 10} {
		if need := all[i].w + 1; need <= left && (i < 10 || p.failing) || i < 2 {
			takes[i] = true
			left -= need
		}
	}
	var cells []serverCell
	for i, c := range all {
		if takes[i] {
			cells = append(cells, c)
		}
	}
	if takes[10] {
		cells[len(cells)-1].w += max(left, 0)
	}
	return cells
}

// leastError is the least width of a column of errors. Where there is none,
// those of servers that are down stand in the place of their figures.
const leastError = 24

func stateMark(lk *look.Look, s registry.State) (string, look.Style) {
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

func (p *servers) row(cells []serverCell, s registry.ServerState, w int) string {
	lk := p.app.look
	inPlace := isDown(s) && s.LastError != "" && cells[len(cells)-1].w < leastError
	var b strings.Builder
	at := 0
	for i, c := range cells {
		if i > 0 {
			b.WriteByte(' ')
			at++
		}
		if inPlace && c.right {
			b.WriteString(p.t.Mark(lk, lk.Fit(clean(s.LastError), max(w-at, 0)), lk.Bad))
			break
		}
		text, style := c.text(s)
		if c.right {
			text = lk.Right(text, c.w)
		} else {
			text = lk.Fit(text, c.w)
		}
		if s.State == registry.StateDisabled {
			style = cmpStyle(style, lk.Dim)
		}
		b.WriteString(p.t.Mark(lk, text, style))
		at += c.w
	}
	return lk.Fit(b.String(), w)
}

func (p *servers) empty() []string {
	return []string{
		"No servers are configured.", "",
		":setup shows how to add some and how clients start Goblin.",
		"Enter shows how to begin.",
	}
}

// item is none: a server is nothing that is called, read or kept.
func (p *servers) item() item { return blankItem }

// shown is the detail, for copying, editors and files.
func (p *servers) shown() shown {
	s, ok := p.t.Selected()
	doc := p.app.details[paneServers].view.Doc()
	if !ok || doc == nil || doc.Len() == 0 || p.app.details[paneServers].now.key != "server "+s.Name {
		return shown{}
	}
	return shown{name: s.Name + ".txt", data: []byte(doc.Plain())}
}

func (p *servers) acts() map[string]keys.Act {
	a := p.app
	selected := func(do func(registry.ServerState) tea.Cmd) func() tea.Cmd {
		return func() tea.Cmd {
			s, _ := p.t.Selected()
			return do(s)
		}
	}
	return map[string]keys.Act{
		"open":         {Run: func() tea.Cmd { return a.openDetail(p.t.Len() > 0) }},
		"reload":       {Why: p.whyNotRestart, Run: selected(func(s registry.ServerState) tea.Cmd { return p.restart(s.Name) })},
		"enable":       {Why: p.none, Run: selected(p.enable)},
		"approve":      {Why: p.whyNotApprove, Run: selected(func(s registry.ServerState) tea.Cmd { return a.approve(s.Name, a.reg.Pinned(s.Name)) })},
		"pager":        {Why: p.none, Run: selected(func(s registry.ServerState) tea.Cmd { return a.stderrOf(s.Name) })},
		"copy":         {Why: p.none, Run: selected(func(s registry.ServerState) tea.Cmd { return a.copy(s.Name, "the name") })},
		"editor":       {Why: p.whyNothingShown},
		"save":         {Why: p.whyNothingShown},
		"copy-content": {Why: p.whyNothingShown},
		"inspect":      {Run: p.inspect},
		"clear":        {Why: p.unless("nothing is kept of servers; it is of their tools, prompts and resources")},
		"call":         {Why: p.unless("servers are not called; their tools are: 2")},
		"subscribe":    {Why: p.unless("only resources can be subscribed to")},
	}
}

// inspect shows the requests to the server, or all of them.
func (p *servers) inspect() tea.Cmd {
	if s, ok := p.t.Selected(); ok {
		return p.app.showTraffic(filter.Set("", "server", []string{s.Name}))
	}
	return p.app.inspect(blankItem)
}

func (p *servers) none() string {
	if p.t.Len() == 0 {
		return "there is no server here"
	}
	return ""
}

// unless gives a reason where there is a server.
func (p *servers) unless(why string) func() string {
	return func() string {
		if p.t.Len() == 0 {
			return ""
		}
		return why
	}
}

func (p *servers) whyNotRestart() string {
	if s, _ := p.t.Selected(); s.State == registry.StateDisabled {
		return clean(s.Name) + " is disabled; x enables it"
	}
	return p.none()
}

func (p *servers) whyNotApprove() string {
	if s, ok := p.t.Selected(); ok && len(p.app.reg.Pinned(s.Name)) == 0 {
		return "no tool of " + clean(s.Name) + " awaits approval"
	}
	return p.none()
}

func (p *servers) whyNothingShown() string {
	if p.t.Len() > 0 && len(p.shown().data) == 0 {
		return "Enter opens the detail first"
	}
	return p.none()
}

// clients are the names of those that use the servers now, and how many there
// are. Screens are none.
func (p *servers) clients() (names string, n int) {
	var all []string
	for _, s := range p.app.reg.Sessions() {
		if !s.Screen {
			n++
			all = append(all, cutText(clean(cmp.Or(s.ClientTitle, s.Client, s.ID)), 30))
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > 3 {
		all = append(all[:3], "…")
	}
	return strings.Join(all, ", "), n
}

// disturb does something to a server; it asks when that disturbs somebody.
func (p *servers) disturb(title, yes, then string, do func() tea.Cmd) tea.Cmd {
	names, n := p.clients()
	if n == 0 {
		return do()
	}
	return p.app.push(&confirm{
		app: p.app, title: title, yes: yes, then: do,
		text: []string{fmt.Sprintf("Connected: %s (%s).", names, count(n, "client")), then},
	})
}

func (p *servers) restart(name string) tea.Cmd {
	a := p.app
	return p.disturb("Restart "+name+"?", "restart it", "Requests that it works on fail.", func() tea.Cmd {
		a.say("Restarting %s", name)
		return func() tea.Msg {
			if err := a.backend.Restart(name); err != nil {
				return work.Done(func() tea.Cmd { return a.complain("restart %s: %v", name, err) })
			}
			return nil
		}
	})
}

// enable turns a server on or off.
func (p *servers) enable(s registry.ServerState) tea.Cmd {
	a, on := p.app, s.State == registry.StateDisabled
	set := func() tea.Cmd {
		return func() tea.Msg {
			err := a.backend.SetEnabled(s.Name, on)
			return work.Done(func() tea.Cmd {
				switch {
				case err != nil && on:
					return a.complain("enable %s: %v", s.Name, err)
				case err != nil:
					return a.complain("disable %s: %v", s.Name, err)
				case on:
					return a.say("Enabled %s, as long as this host runs", s.Name)
				}
				return a.say("Disabled %s, as long as this host runs; x enables it", s.Name)
			})
		}
	}
	if on {
		return set()
	}
	return p.disturb("Disable "+s.Name+"?", "disable it", "Its tools, prompts and resources go away for them.", set)
}
