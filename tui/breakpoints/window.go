package breakpoints

import (
	"fmt"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// row is a line of the list. One of the pointers is set, except in headings.
type row struct {
	heading  string
	names    bool // the heading has the names of the rules' columns
	key      string
	stop     *registry.StoppedRequest
	rule     *registry.RuleEntry
	approval *registry.CallApproval
}

// StopKey returns the key of a stopped request's row.
func StopKey(id uint64) string { return fmt.Sprintf("stop %d", id) }
func ruleKey(id uint64) string { return fmt.Sprintf("rule %d", id) }

// window is the dialog with stopped requests, rules and remembered approvals.
type window struct {
	uicontext.BrowserDialog
	rules *Rules
	rows  []row
	list  list.Window
	view  *viewer.View

	inDetail bool
	zoomed   bool           // the focused part fills the window
	movedAt  time.Time      // when the cursor lost its row
	listRect uicontext.Rect // as last drawn
	viewRect uicontext.Rect
	gen      int
	shown    string            // key of the built detail
	texts    map[uint64]string // arguments of stopped requests
}

func newWindow(r *Rules, key string) *window {
	w := &window{rules: r, view: viewer.NewView(r.app.Theme), texts: map[uint64]string{}}
	w.read()
	w.moveTo(key)
	return w
}

// read reads the state. The cursor follows its row.
func (w *window) read() {
	s := w.rules.state()
	before, at := w.selected(), w.list.Cursor()
	w.rows = nil
	section := func(title string, n int) { w.rows = append(w.rows, row{heading: fmt.Sprintf("%s %d", title, n)}) }
	if n := len(s.Stopped); n > 0 {
		section("Stopped", n)
		for i := range s.Stopped {
			w.rows = append(w.rows, row{key: StopKey(s.Stopped[i].ID), stop: &s.Stopped[i]})
		}
	}
	if n := len(s.Rules); n > 0 {
		section("Rules", n)
		w.rows[len(w.rows)-1].names = true
		for i := range s.Rules {
			w.rows = append(w.rows, row{key: ruleKey(s.Rules[i].ID), rule: &s.Rules[i]})
		}
	}
	if n := len(s.Approvals); n > 0 {
		section("Remembered approvals", n)
		for i := range s.Approvals {
			w.rows = append(w.rows, row{key: "approval " + s.Approvals[i].ID, approval: &s.Approvals[i]})
		}
	}
	w.list.Resize(len(w.rows), w.list.PageSize())
	if before.key == "" {
		w.move(0)
		return
	}
	if !w.moveTo(before.key) {
		w.movedAt = w.rules.app.Clock()
		w.list.MoveTo(at)
		if w.selected().heading != "" && at > 1 {
			w.list.Move(-1) // the last of its section ended
		}
		w.move(0)
		if before.stop != nil && before.stop.ID != w.rules.decided && w.isFront() {
			w.rules.app.Say("%s: %s", name(before.stop), w.rules.whyEnded(before.stop))
		}
	}
}

func (w *window) isFront() bool {
	all := w.rules.app.Dialogs
	return len(all) > 0 && all[len(all)-1] == uicontext.Dialog(w)
}

// selected returns the row under the cursor, or an empty one.
func (w *window) selected() row {
	if at := w.list.Cursor(); at < len(w.rows) {
		return w.rows[at]
	}
	return row{}
}

// Key returns the key of the selected row, see [StopKey].
func (w *window) Key() string { return w.selected().key }

// moveTo moves the cursor to a row and reports whether there is one.
func (w *window) moveTo(key string) bool {
	i := slices.IndexFunc(w.rows, func(r row) bool { return r.key == key && key != "" })
	if i < 0 {
		w.move(0)
		return false
	}
	w.list.MoveTo(i)
	return true
}

// move moves the cursor and skips headings.
func (w *window) move(by int) {
	w.list.Move(by)
	if w.selected().heading != "" {
		step := 1
		if by < 0 && w.list.Cursor() > 0 {
			step = -1
		}
		w.list.Move(step)
	}
}

// cursor scrolls the list by its cursor.
type cursor struct{ w *window }

func (c cursor) Move(by int)   { c.w.move(by) }
func (c cursor) MoveTo(at int) { c.w.move(at - c.w.list.Cursor()) }
func (c cursor) Len() int      { return c.w.list.Len() }
func (c cursor) PageSize() int { return c.w.list.PageSize() }

// Heading counts what waits.
func (w *window) Heading() string {
	s := w.rules.state()
	text := fmt.Sprintf("Breakpoints %d", len(s.Rules))
	if n := len(s.Stopped); n > 0 {
		text += fmt.Sprintf(", %d stopped", n)
	}
	return text
}

// Size returns the whole area.
func (w *window) Size(width, h int) (int, int) { return width, h }

// Where returns the scroll position of the detail.
func (w *window) Where() string { return uicontext.PositionText(w.view) }

// Refresh follows the rules.
func (w *window) Refresh(what registry.Changes) tea.Cmd {
	if what&registry.Rules == 0 {
		return nil
	}
	w.read()
	return w.build()
}

// Background builds the detail again for another width.
func (w *window) Background(msg tea.Msg) tea.Cmd {
	if _, ok := msg.(tea.WindowSizeMsg); ok {
		return w.build()
	}
	return nil
}

// SetTheme changes the theme of the detail.
func (w *window) SetTheme() { w.view.SetTheme(w.rules.app.Theme) }

// build builds the detail of the selected row in a command. Only the newest one counts.
func (w *window) build() tea.Cmd {
	w.gen++
	gen, r, a := w.gen, w.selected(), w.rules.app
	width, h := a.DialogSize(w)
	_, detail := w.split(max(width-2, 1), max(h-2, 1))
	ctx, lk, keep := a.Ctx, a.Theme, w.shown == r.key
	if r.key == "" {
		w.view.Show(nil, false)
		return nil
	}
	return func() tea.Msg {
		doc, err := viewer.Build(ctx, lk, w.rules.sections(&r), viewer.Options{Width: detail.W, Depth: uicontext.DefaultDepth})
		if err != nil {
			return nil // closed meanwhile
		}
		return keys.FuncMsg(func() tea.Cmd {
			if gen == w.gen {
				w.view.Show(doc, keep)
				w.shown = r.key
			}
			return nil
		})
	}
}

// Update handles the mouse.
func (w *window) Update(msg tea.Msg) tea.Cmd {
	m, ok := msg.(tea.MouseMsg)
	if !ok {
		return nil
	}
	before := w.selected().key
	switch {
	case w.viewRect.Contains(m.X, m.Y):
		uicontext.ScrollWheel(w.view.Scroll, m)
		w.inDetail = w.inDetail || uicontext.LeftPress(m)
	case w.listRect.Contains(m.X, m.Y):
		if w.list.Mouse(m, w.listRect.Y) {
			w.inDetail, w.movedAt = false, time.Time{}
		}
		w.move(0)
	}
	if w.selected().key != before {
		return w.build()
	}
	return nil
}

// Keys returns the keys of the window, for the documentation.
func Keys() keys.Table { return (&window{rules: &Rules{app: &uicontext.Context{}}}).keys(nil) }

// Keys returns the keys with the hints that fit the selected row.
func (w *window) Keys() keys.Table {
	r := w.selected()
	hints := map[string]string{"rules.close": "back"}
	set := func(pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			hints["rules."+pairs[i]] = pairs[i+1]
		}
	}
	switch {
	case w.rules.app.ReadOnly != "":
		return w.keys(hints)
	case r.stop != nil:
		send := "send"
		if w.rules.app.W >= sideBySide {
			send = "send as it is"
		}
		set("open", "change", "send", send, "deny", "deny", "answer", "answer", "fail", "fail")
		if whyNotRemember(r.stop) == "" {
			set("remember", "remember")
		}
	case r.rule != nil:
		set("open", "edit", "toggle", "on/off", "remove", "remove")
		if whyNotChange(r.rule) != "" {
			delete(hints, "rules.open")
			delete(hints, "rules.remove")
		}
	case r.approval != nil:
		set("remove", "revoke")
	}
	if len(w.rules.state().Stopped) > 1 || r.stop == nil && len(w.rules.state().Stopped) > 0 {
		next := "next"
		if w.rules.app.W >= sideBySide || r.stop == nil {
			next = "next stopped"
		}
		set("next", next)
	}
	if hint := w.zoomHint(); hint != "" {
		set("zoom", hint)
	}
	if r.stop == nil {
		set("add", "add")
		if len(w.rules.own()) > 0 {
			set("clear", "clear all")
		}
	}
	return w.keys(hints)
}

func (w *window) zoomHint() string {
	switch {
	case w.zoomed && w.inDetail:
		return "show list"
	case w.zoomed:
		return "show detail"
	case w.inDetail && w.rules.app.W >= sideBySide:
		return "zoom"
	}
	return ""
}

func (w *window) keys(hints map[string]string) keys.Table {
	stop := func(do func(*registry.StoppedRequest) tea.Cmd) func() tea.Cmd {
		return func() tea.Cmd { return w.withStop(do) }
	}
	r := w.rules
	t := keys.Table{
		{ID: "rules.open", Long: "Change the stopped request or the rule", Run: w.open},
		{ID: "rules.send", Long: "Send the stopped request or answer as it is", Run: stop(r.send)},
		{ID: "rules.deny", Long: "Deny it with a text for the model", Run: stop(r.deny)},
		{ID: "rules.answer", Long: "Answer it by hand", Run: stop(r.answer)},
		{ID: "rules.fail", Long: "Fail it with a code and a message", Run: stop(r.fail)},
		{ID: "rules.remember", Long: "Send it, and let later ones pass", Run: stop(r.remember)},
		{ID: "rules.next", Long: "Next stopped request", Run: w.next},
		{ID: "rules.add", Long: "Add a rule", Run: func() tea.Cmd { return r.newRule("", nil, w.added) }},
		{ID: "rules.toggle", Long: "Enable or disable the rule until Goblin stops", Run: w.toggle},
		{ID: "rules.remove", Long: "Remove the rule, or revoke the approval", Run: w.remove},
		{ID: "rules.clear", Long: "Remove all rules of UIs", Run: w.clear},
		{ID: "rules.copy", Long: "Copy the params, the answer or the rule", Run: w.copy},
		{ID: "rules.other", Long: "Switch between list and detail", Run: func() tea.Cmd { w.inDetail = !w.inDetail; return nil }},
		{ID: "rules.zoom", Long: "Maximize the list or the detail", Run: w.zoom},
		{ID: "rules.close", Long: "Leave the detail, then close", Run: w.close},
	}
	for i := range t {
		t[i].Hint = hints[t[i].ID]
	}
	return append(t, w.scrolling()...)
}

// scrolling returns the keys that scroll. The detail follows the cursor.
func (w *window) scrolling() keys.Table {
	t := keys.Scrolling("rules", func() keys.Scroller {
		if w.inDetail {
			return w.view
		}
		return list.Cursor{List: cursor{w}}
	})
	for i := range t {
		run := t[i].Run
		t[i].Run = func() tea.Cmd {
			before := w.selected().key
			run()
			if w.selected().key == before {
				return nil
			}
			w.movedAt = time.Time{}
			return w.build()
		}
	}
	return t
}

// zoom toggles whether the focused part fills the window.
func (w *window) zoom() tea.Cmd {
	w.zoomed = !w.zoomed
	return w.build()
}

func (w *window) close() tea.Cmd {
	switch {
	case w.zoomed:
		return w.zoom()
	case w.inDetail:
		w.inDetail = false
		return nil
	}
	return w.rules.app.Drop(w)
}

// withStop runs an action for the selected stopped request. A request that was selected
// just now, because another one ended, is not meant by the key.
func (w *window) withStop(do func(*registry.StoppedRequest) tea.Cmd) tea.Cmd {
	a, s := w.rules.app, w.selected().stop
	switch {
	case a.ReadOnly != "":
		return a.Complain("%s; nothing is stopped", a.ReadOnly)
	case s == nil:
		return a.Complain("select a stopped request first")
	case a.Clock().Sub(w.movedAt) < dialog.KeyGrace:
		return a.Complain("%s was selected just now; press the key again", name(s))
	}
	return do(s)
}

func (w *window) open() tea.Cmd {
	r := w.selected()
	if r.rule != nil {
		return w.rules.edit(r.rule)
	}
	return w.withStop(w.rules.change)
}

func (w *window) next() tea.Cmd {
	all := w.rules.state().Stopped
	if len(all) == 0 {
		return w.rules.app.Say("No request is stopped")
	}
	at := 0
	if s := w.selected().stop; s != nil {
		at = (slices.IndexFunc(all, func(o registry.StoppedRequest) bool { return o.ID == s.ID }) + 1) % len(all)
	}
	w.inDetail, w.movedAt = false, time.Time{}
	w.moveTo(StopKey(all[at].ID))
	return w.build()
}

// added moves the cursor to a new rule.
func (w *window) added(id uint64) tea.Cmd {
	w.read()
	w.moveTo(ruleKey(id))
	return w.build()
}

func (w *window) toggle() tea.Cmd {
	a, e := w.rules.app, w.selected().rule
	if e == nil {
		return a.Complain("select a rule first")
	}
	id, on := e.ID, !e.Enabled
	done := map[bool]string{true: "Enabled ", false: "Disabled "}[on] + ruleName(e)
	return w.rules.do(func() error { return a.Backend.SetRuleEnabled(id, on) }, ruleName(e), done)
}

func (w *window) remove() tea.Cmd {
	a, r := w.rules.app, w.selected()
	switch {
	case r.rule != nil:
		if why := whyNotChange(r.rule); why != "" {
			return a.Complain("%s", why)
		}
		id := r.rule.ID
		return w.rules.do(func() error { return a.Backend.RemoveRule(id) }, ruleName(r.rule), fmt.Sprintf("Removed rule %d: %s", id, r.rule.Text))
	case r.approval != nil:
		id := r.approval.ID
		return w.rules.do(func() error { return a.Backend.RevokeApproval(id) }, "approval", "Revoked the approval of "+r.approval.Name)
	}
	return a.Complain("select a rule or an approval first")
}

// clear asks before it removes all rules of UIs.
func (w *window) clear() tea.Cmd {
	a, own := w.rules.app, w.rules.own()
	if len(own) == 0 {
		return a.Complain("no rules of a UI; only those can be removed here")
	}
	text := []string{"Rules of the config and of --rule stay."}
	if n := len(w.rules.state().Stopped); n > 0 {
		text = append(text, termtext.Count(n, "stopped request")+" keep waiting.")
	}
	return a.Push(&dialog.Confirm{
		Screen: a, Title: "Remove " + termtext.Count(len(own), "rule") + "?", Text: text, Yes: "remove",
		Then: func() tea.Cmd {
			return w.rules.do(func() error {
				for _, e := range own {
					if err := a.Backend.RemoveRule(e.ID); err != nil {
						return fmt.Errorf("%s: %w", ruleName(&e), err)
					}
				}
				return nil
			}, "remove rules", "Removed "+termtext.Count(len(own), "rule"))
		},
	})
}

func (w *window) copy() tea.Cmd {
	a, r := w.rules.app, w.selected()
	switch {
	case r.stop != nil && r.stop.On == "answer":
		return a.Copy(a.Backend.Redact(string(r.stop.Answer)), "the answer")
	case r.stop != nil:
		return a.Copy(a.Backend.Redact(string(r.stop.Params)), "the params")
	case r.rule != nil:
		return a.Copy(uicontext.SanitizeLine(r.rule.Text), "the rule")
	}
	return a.Complain("nothing to copy")
}
