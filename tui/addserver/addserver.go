// Package addserver is the dialog that adds a server to the config: by hand, from a
// client's config or from a registry.
//
// It searches the registry while the user types. Only the newest search counts; older
// ones are cancelled. Texts of servers are untrusted. The package knows no pane.
package addserver

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/candidate"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/textfield"
	"goblin/tui/uicontext"
)

const (
	pause    = 300 * time.Millisecond // of typing, before a search
	slow     = 4 * time.Second        // before the dialog says that the registry is slow
	minQuery = 2                      // bytes of a search text
	maxQuery = 200                    // bytes
)

// search is the dialog with the search text and the list of servers. The first row is the
// form by hand.
type search struct {
	uicontext.BaseDialog
	app    *uicontext.Context
	added  func(name string) tea.Cmd
	input  textfield.Field
	window list.Window
	rows   []*candidate.Server // nil is the row by hand
	moved  bool                // the user moved the cursor since the last key

	clients *candidate.ClientServers // nil before they are read
	frozen  string                   // why the config cannot be changed

	found     *candidate.SearchResult // of the last search, or nil
	failure   string                  // of the last search
	searching bool
	isSlow    bool
	gen       int // of the last search; higher after close
	cancel    context.CancelFunc
	chosen    map[*candidate.Server]int // index of the choice
	several   several
}

// Open opens the dialog. added runs after a server was added.
func Open(a *uicontext.Context, added func(name string) tea.Cmd) tea.Cmd {
	d := &search{app: a, added: added, input: textfield.New(a.Theme), cancel: func() {}, chosen: map[*candidate.Server]int{}, several: several{marked: map[*candidate.Server]bool{}}}
	d.fillRows()
	return a.Push(d)
}

// Begin reads the clients' servers.
func (d *search) Begin() tea.Cmd {
	backend := d.app.Backend
	return func() tea.Msg {
		clients, err := backend.ClientServers()
		return keys.FuncMsg(func() tea.Cmd {
			if err != nil {
				d.frozen = uicontext.SanitizeLine(err.Error())
				return nil
			}
			d.clients = clients
			d.fillRows()
			return nil
		})
	}
}

func (d *search) query() string { return strings.TrimSpace(d.input.Value()) }

// searchLater searches the registry after a pause in typing.
func (d *search) searchLater() tea.Cmd {
	d.gen++
	d.cancel()
	d.failure, d.isSlow = "", false
	typed := d.query()
	d.searching = len(typed) >= minQuery && len(typed) <= maxQuery && !slices.ContainsFunc(strings.Fields(typed), isPrivate)
	if !d.searching {
		d.found = nil
		return nil
	}
	gen := d.gen
	return d.app.After(pause, keys.FuncMsg(func() tea.Cmd {
		if gen != d.gen {
			return nil
		}
		return d.searchNow(strings.Fields(typed))
	}))
}

// isPrivate reports whether a word belongs to a command line or a URL, which may have
// secrets. Names of servers have no such words.
func isPrivate(word string) bool {
	return strings.HasPrefix(word, "-") || strings.Contains(word, "://") || strings.ContainsAny(word, "=$")
}

func (d *search) searchNow(words []string) tea.Cmd {
	ctx, cancel := context.WithCancel(d.app.Ctx)
	d.cancel = cancel
	gen, backend := d.gen, d.app.Backend
	return tea.Batch(func() tea.Msg {
		defer cancel()
		found, err := backend.SearchRegistry(ctx, words)
		return keys.FuncMsg(func() tea.Cmd {
			if gen == d.gen {
				d.show(found, err)
			}
			return nil
		})
	}, d.app.After(slow, keys.FuncMsg(func() tea.Cmd {
		d.isSlow = gen == d.gen && d.searching
		return nil
	})))
}

func (d *search) show(found *candidate.SearchResult, err error) {
	d.searching, d.isSlow = false, false
	d.found = found
	if err != nil {
		d.found, d.failure = nil, uicontext.SanitizeLine(uicontext.CutText(err.Error(), maxProblem))
	}
	d.fillRows()
}

// fillRows keeps the cursor on its server after the user moved it. Otherwise it selects
// the first server that matches the typed text.
func (d *search) fillRows() {
	before := d.selected()
	words := strings.Fields(strings.ToLower(d.query()))
	d.rows = append(d.rows[:0], nil)
	if d.clients != nil {
		for i := range d.clients.Servers {
			s := &d.clients.Servers[i]
			if uicontext.ContainsAll(strings.ToLower(s.Name+"\n"+s.Origin+"\n"+s.Description), words) {
				d.rows = append(d.rows, s)
			}
		}
	}
	if d.found != nil {
		for i := range d.found.Servers {
			d.rows = append(d.rows, &d.found.Servers[i])
		}
	}
	d.window.Resize(len(d.rows), d.window.PageSize())
	at := 0
	if d.moved && before != nil {
		at = max(slices.Index(d.rows, before), 0)
	} else if !d.moved && len(words) > 0 && len(d.rows) > 1 {
		at = 1
	}
	d.window.MoveTo(at)
}

// selected returns the server under the cursor, or nil for the row by hand.
func (d *search) selected() *candidate.Server {
	if at := d.window.Cursor(); at < len(d.rows) {
		return d.rows[at]
	}
	return nil
}

// choice returns the selected way to run a registry's server, or nil. By default it is
// the first one that needs no other program.
func (d *search) choice(s *candidate.Server) *candidate.Choice {
	if len(s.Choices) == 0 {
		return nil
	}
	at, ok := d.chosen[s]
	if !ok {
		usable := func(c candidate.Choice) bool { return c.Problem == "" }
		at = slices.IndexFunc(s.Choices, func(c candidate.Choice) bool { return usable(c) && c.Missing == "" })
		if at < 0 {
			at = max(slices.IndexFunc(s.Choices, usable), 0)
		}
	}
	return &s.Choices[at]
}

func (d *search) choose() tea.Cmd {
	if d.frozen != "" {
		return d.app.Complain("the config cannot be changed: %s", d.frozen)
	}
	if d.several.running != "" {
		return d.app.Complain("%s; %s cancels", d.several.running, d.app.KeyOf("add.close"))
	}
	if all := d.queue(); len(all) > 0 {
		return d.chooseSeveral(all)
	}
	d.several.reviewed = nil
	s := d.selected()
	switch {
	case s == nil && d.isCommand():
		return d.entryForm(d.query(), nil)
	case s == nil:
		return d.entryForm("", nil)
	case s.Present:
		return d.app.Complain("%s is already in the config", uicontext.SanitizeLine(s.Name))
	case s.Entry != nil:
		return d.entryForm("", s.Entry)
	}
	c := d.choice(s)
	if c == nil {
		return d.app.Complain("the registry lists no package or URL of it")
	}
	if c.Problem != "" {
		return d.app.Complain("%s %s", uicontext.SanitizeLine(c.Kind), uicontext.SanitizeLine(c.Problem))
	}
	return d.registryForm(s, c)
}

// isCommand reports whether the typed text is a command line or a URL.
func (d *search) isCommand() bool { return strings.ContainsAny(d.query(), "/ ") }

func (d *search) nextChoice() tea.Cmd {
	s := d.selected()
	if s == nil || len(s.Choices) < 2 {
		return d.app.Complain("no other package or URL")
	}
	for i := range s.Choices {
		if &s.Choices[i] == d.choice(s) {
			d.chosen[s] = (i + 1) % len(s.Choices)
			break
		}
	}
	return nil
}

func (d *search) copyLink() tea.Cmd {
	s := d.selected()
	if s == nil || s.Link == "" {
		return d.app.Complain("no link to the source")
	}
	return d.app.Copy(s.Link, "the link to the source")
}

func (d *search) close() tea.Cmd {
	if d.interrupt() {
		return nil
	}
	d.gen++
	d.cancel()
	return d.app.Drop(d)
}

// Keys returns the keys of the dialog.
func Keys() keys.Table { return (*search)(nil).Keys() }

func (d *search) Keys() keys.Table {
	return append(keys.Table{
		{ID: "add.choose", Hint: "open form", Long: "Open the form of the server", Run: d.choose},
		{ID: "add.mark", Hint: "mark", Long: "Mark a client's server, to add several", Run: d.mark},
		{ID: "add.mark-all", Hint: "mark all", Long: "Mark all listed servers of clients, or unmark them", Run: d.markAll},
		{ID: "add.other", Hint: "other package", Long: "Select the next package or URL of the server", Run: d.nextChoice},
		{ID: "add.copy", Hint: "copy link", Long: "Copy the link to the server's source", Run: d.copyLink},
		{ID: "add.close", Hint: "close", Long: "Close", Run: d.close},
	}, keys.Scrolling("add", func() keys.Scroller { return &cursor{list.Cursor{List: &d.window}, d} }, "up", "down", "page-up", "page-down")...)
}

// cursor notes that the user moved it.
type cursor struct {
	list.Cursor
	d *search
}

func (c *cursor) Scroll(by int) {
	c.d.moved = true
	c.Cursor.Scroll(by)
}

func (c *cursor) Page(part float64) {
	c.d.moved = true
	c.Cursor.Page(part)
}

func (d *search) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.MouseMsg:
		before := d.window.Cursor()
		clicked := d.window.Mouse(msg, listTop)
		d.moved = d.moved || before != d.window.Cursor()
		if clicked && before == d.window.Cursor() {
			return d.choose()
		}
	case tea.KeyMsg:
		return d.typeKey(msg)
	}
	return nil
}

func (d *search) typeKey(msg tea.KeyMsg) tea.Cmd {
	if !d.input.Update(msg) {
		return nil
	}
	d.moved = false
	cmd := d.searchLater()
	d.fillRows()
	return cmd
}

func (d *search) Typing() bool { return true }

func (d *search) SetTheme() { d.input.SetTheme(d.app.Theme) }
