package pane

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/definition"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

type catalog struct {
	app   *Layout
	kind  registry.Kind
	below []registry.Kind // kinds listed after it
	Table *list.Table[*registry.Entry]
	rows  []*registry.Entry // in the order of the catalog

	state          catalogState         // of the shown list, or the one being read
	Reading        bool                 // a command reads a list
	newRows        map[string]time.Time // listed names, when they were added
	unseen         int                  // changed since the pane was last open
	Loaded         bool                 // read before, so later rows are new
	initialRow     string               // listed name, chosen by selectUsable
	texts          map[*registry.Entry]string
	own            *list.Fold[*registry.Entry] // of Goblin's own tools
	hidesInvisible bool                        // hidden entries are not listed
}

type catalogState struct {
	version    uint64
	view       string
	visibility [registry.Kinds]int
	unapproved string // names and hashes of unapproved tools
}

const newRowTime = 5 * time.Second

func newCatalog(a *Layout, kind registry.Kind) *catalog {
	c := &catalog{app: a, kind: kind, newRows: map[string]time.Time{}, texts: map[*registry.Entry]string{}}
	fields := func(rows []*registry.Entry) []list.Field {
		all := []list.Field{
			{Name: "server", Aliases: []string{"srv"}, Kind: list.Text, Help: "the server", Text: func(i int) string { return rows[i].Server }},
			{Name: "name", Kind: list.Text, Help: "the listed name", Text: func(i int) string { return rows[i].Listed }},
		}
		if kind == registry.Resource || kind == registry.Template {
			all = append(all, list.Field{Name: "mime", Aliases: []string{"type"}, Kind: list.Text, Help: "the MIME type, such as text/*", Text: func(i int) string { return rows[i].MIME }})
		}
		return all
	}
	c.Table = list.New(a.Ctx, a.Now,
		func(e *registry.Entry) string { return e.Listed },
		func(e *registry.Entry) string { return words(e) },
		fields, list.Order[*registry.Entry]{Name: "listed name"})
	c.own = list.NewFold(c.Table, isOwnRow, isOwnTool)
	c.Table.Hidden = c.hidden
	c.Table.Head = isOwnRow
	c.Table.RowStyle = list.RowStyle[*registry.Entry]{
		Base: func(e *registry.Entry) theme.Style {
			base, _ := c.stale(e)
			return base
		},
		Overlay: func(e *registry.Entry, _ int) string {
			base, since := c.stale(e)
			return base.On(since)
		},
		HiddenTexts: func(e *registry.Entry) []string { return []string{e.Title, e.Listed, e.Label, e.Name, e.Description} },
	}
	return c
}

func serverColumn(rank int) list.Column[*registry.Entry] {
	return list.Column[*registry.Entry]{
		Name: "server", Priority: rank, MinWidth: 6, PreferredWidth: 14, Dim: true, Text: func(e *registry.Entry) string { return e.Server },
		Less: func(a, b *registry.Entry) int {
			return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Listed, b.Listed))
		},
	}
}

func titleColumn(rank int) list.Column[*registry.Entry] {
	return list.Column[*registry.Entry]{Name: "title", Priority: rank, MinWidth: 12, PreferredWidth: 24, Text: func(e *registry.Entry) string { return e.Title }}
}

func mimeColumn(rank int) list.Column[*registry.Entry] {
	return list.Column[*registry.Entry]{Name: "MIME type", Priority: rank, MinWidth: 13, PreferredWidth: 18, Dim: true, Text: func(e *registry.Entry) string {
		if e.Kind == registry.Skill {
			return "skill"
		}
		return e.MIME
	}}
}

func labelColumn(rank int) list.Column[*registry.Entry] {
	return list.Column[*registry.Entry]{Name: "name", Priority: rank, MinWidth: 12, PreferredWidth: 24, Text: func(e *registry.Entry) string { return e.Label }}
}

func ownColumn(name string) list.Column[*registry.Entry] {
	return list.Column[*registry.Entry]{Name: name, MinWidth: 16, PreferredWidth: 36, CutMiddle: true, Text: func(e *registry.Entry) string { return e.Name }}
}

// words returns the searched text, the most important part first.
func words(e *registry.Entry) string {
	const part = "\x00"
	switch e.Kind {
	case registry.Skill:
		return e.Label + part + e.Listed + part + e.Description
	case registry.Resource, registry.Template:
		return e.Label + part + e.Title + part + e.Listed + part + e.MIME
	}
	name := ""
	if !strings.Contains(e.Listed, e.Name) {
		name = e.Name // has characters that listed names cannot have
	}
	return e.Listed + part + name + part + e.Title + part + e.Description
}

// Refresh reads the list if it changed, and again if it changes meanwhile.
func (c *catalog) Refresh() tea.Cmd {
	snap := c.app.Reg.Load()
	kinds := append([]registry.Kind{c.kind}, c.below...)
	now, n := catalogState{view: c.app.Profile, visibility: c.app.Backend.VisibleCounts(c.app.Profile)}, 0
	for _, k := range kinds {
		now.version += snap.Version(k) // versions only increase
		n += snap.Count(k)
	}
	if c.kind == registry.Tool {
		for _, t := range c.app.Reg.UnapprovedTools("") {
			now.unapproved += t.Server + "/" + t.Name + t.Hash
		}
	}
	if c.Reading || now == c.state && c.Loaded {
		return nil
	}
	c.state = now
	var came, left []string
	old, first := c.rows, !c.Loaded
	var listed []*registry.Entry
	c.Reading = true
	head := c.ownRow(snap, now.view)
	return c.Table.Refresh(n, func() []*registry.Entry {
		rows := make([]*registry.Entry, 0, n+1)
		if head != nil {
			rows = append(rows, head)
		}
		for _, k := range kinds {
			for e := range snap.All(k) {
				if c.isUnneeded(now.view, e) {
					continue
				}
				rows = append(rows, e)
			}
		}
		if !first {
			came, left = difference(entries(old), entries(rows))
		}
		listed = rows
		if now.unapproved == "" {
			return rows
		}
		return changedFirst(c.app.Reg, rows)
	}, func() tea.Cmd {
		c.Reading, c.Loaded, c.rows = false, true, listed
		c.unseen += len(came) + len(left)
		at := c.app.Now()
		maps.DeleteFunc(c.newRows, func(_ string, since time.Time) bool { return at.Sub(since) > newRowTime })
		if len(came) <= maxNewRows {
			for _, key := range came {
				c.newRows[key] = at
			}
		}
		clear(c.texts)
		c.selectUsable()
		return c.Refresh()
	})
}

// changedFirst returns the rows with the unapproved tools first, after Goblin's own.
func changedFirst(reg *registry.Registry, rows []*registry.Entry) []*registry.Entry {
	var first, changed, rest []*registry.Entry
	for _, e := range rows {
		switch {
		case isOwnRow(e), isOwnTool(e): // tables expect heads first, and parts below them
			first = append(first, e)
		case reg.UnapprovedTool(e.Server, e.Name) != nil:
			changed = append(changed, e)
		default:
			rest = append(rest, e)
		}
	}
	return slices.Concat(first, changed, rest)
}

// isUnneeded reports whether an entry is a tool of Goblin that no client of a profile
// needs.
func (c *catalog) isUnneeded(profile string, e *registry.Entry) bool {
	if !isOwnTool(e) {
		return false
	}
	by, _ := c.app.Backend.HiddenReason(profile, e)
	return by == "config"
}

func (c *catalog) switchHandler() keys.Handler {
	return keys.Handler{
		WhyDisabled: func() string {
			return dialog.ToggleDisabledReason(c.app.Context, c.selected())
		},
		Run: func() tea.Cmd { return dialog.ToggleEntries(c.app.Context, entries(c.Table.Marked())) },
	}
}

// selectUsable selects the first row of a usable server among the first rows, otherwise a
// tool of Goblin. It does nothing once the user or a jump has moved the cursor.
func (c *catalog) selectUsable() {
	e, _ := c.Table.Selected()
	if c.app.UsedPanes[paneOf(c.kind)] || c.initialRow != "" && (e == nil || e.Listed != c.initialRow) {
		return
	}
	at := -1
	for i, row := range c.Table.Matches[:min(len(c.Table.Matches), 1000)] {
		e := c.Table.Rows[row]
		if isOwnRow(e) {
			continue
		}
		if _, why := c.stale(e); why != "" {
			continue
		}
		if e.Server != registry.Local {
			at = i
			break
		}
		if at < 0 {
			at = i
		}
	}
	if at >= 0 {
		c.Table.MoveTo(0) // keep the rows above visible
		c.Table.MoveTo(at)
		c.initialRow = c.Table.Rows[c.Table.Matches[at]].Listed
	}
}

// With more new rows, everything would be marked.
const maxNewRows = 1000

// inList compares positions in a list. Goblin's own tools come first.
func inList(a, b *registry.Entry) int {
	if own := a.Server == registry.Local; a.Kind == registry.Tool && b.Kind == registry.Tool && own != (b.Server == registry.Local) {
		if own {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Listed, b.Listed))
}

// difference returns the names that were added or changed, and the removed names. It
// ignores the first list of a server.
func difference(old, now []*registry.Entry) (came, left []string) {
	known, last := map[string]bool{}, ""
	for _, e := range old {
		if e.Server != last {
			known[e.Server], last = true, e.Server
		}
	}
	before := func(a, b *registry.Entry) bool { return inList(a, b) < 0 }
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		switch {
		case j == len(now) || i < len(old) && before(old[i], now[j]):
			left = append(left, old[i].Listed)
			i++
		case i == len(old) || before(now[j], old[i]):
			if known[now[j].Server] {
				came = append(came, now[j].Listed)
			}
			j++
		default:
			if old[i] != now[j] && !bytes.Equal(old[i].JSON(), now[j].JSON()) {
				came = append(came, now[j].Listed)
			}
			i++
			j++
		}
	}
	return came, left
}

func (c *catalog) count(open bool) string {
	s := uicontext.FormatCount(c.Table.Total())
	if open {
		c.unseen = 0
	}
	if c.unseen > 0 {
		s += " " + c.app.Theme.Delta + uicontext.FormatCount(c.unseen)
	}
	return s
}

func (c *catalog) heading(name string) (title, right string) {
	title, right = c.app.Theme.Title.On(name)+" "+c.rowCount(), c.Table.OrderText(c.app.Theme)
	if c.app.Profile != "" {
		title += " " + c.app.Theme.Accent.On("as seen by "+uicontext.SanitizeLine(c.app.Profile))
	}
	return title, right
}

func heading[R any](lk *theme.Theme, name string, t *list.Table[R]) (title, right string) {
	return lk.Title.On(name) + " " + dialog.RowCount(t), t.OrderText(lk)
}

func (c *catalog) mark(e *registry.Entry) string {
	at, ok := c.newRows[e.Listed]
	if !ok {
		return " "
	}
	if c.app.Now().Sub(at) > newRowTime {
		delete(c.newRows, e.Listed)
		return " "
	}
	return c.app.Theme.Changed.On(c.app.Theme.New)
}

func (c *catalog) item() uicontext.Item {
	e := c.selected()
	if e == nil {
		return uicontext.Item{}
	}
	return uicontext.EntryItem(e)
}

func (c *catalog) ticked() (all []uicontext.Item) {
	for _, e := range entries(c.Table.Marked()) {
		all = append(all, uicontext.EntryItem(e))
	}
	return all
}

// stale returns the style and note of hidden entries, and of entries whose server is
// disconnected, with the time since. Entries of idle servers are not stale.
func (c *catalog) stale(e *registry.Entry) (base theme.Style, since string) {
	if isOwnRow(e) {
		return c.app.Theme.Dim, ""
	}
	switch by, _ := c.app.Backend.HiddenReason(c.app.Profile, e); by {
	case "":
	case "profile":
		return c.app.Theme.Stale, "hidden"
	case "search":
		return c.app.Theme.Stale, "search only"
	default:
		return c.app.Theme.Stale, "disabled"
	}
	server := e.Server
	s, ok := c.app.Reg.State(server)
	if server == registry.Local || ok && (IsReachable(s.State) && !s.Stale || !s.CachedAt.IsZero() && !IsDown(s)) {
		return "", ""
	}
	return c.app.Theme.Stale, "stale " + termtext.Age(c.app.Now().Sub(s.Since))
}

// text caches a text made from an entry's JSON.
func (c *catalog) text(e *registry.Entry, create func(*registry.Entry) string) string {
	s, ok := c.texts[e]
	if !ok {
		if len(c.texts) > 4096 {
			clear(c.texts)
		}
		s = create(e)
		c.texts[e] = s
	}
	return s
}

func facts(e *registry.Entry) []viewer.Field {
	f := []viewer.Field{}
	add := func(label, value string) {
		if value != "" {
			f = append(f, viewer.Field{Label: label, Value: value})
		}
	}
	switch e.Kind {
	case registry.Resource, registry.Skill:
		add("URI", e.Listed)
	case registry.Template:
		add("template", e.Listed)
	default:
		add("name", e.Listed)
	}
	add("server", e.Server)
	add("title", e.Title)
	add("MIME type", e.MIME)
	add("size", uicontext.FormatSize(e.Size))
	if e.Kind == registry.Tool {
		add("warning", definition.LongDescription(e.Description))
	}
	if changes := e.Changes(); len(changes) > 0 {
		add("definition", registry.ChangedText+": "+strings.Join(changes, "; "))
	}
	return append(f, viewer.Field{Label: "description", Value: e.Description, Prose: true})
}

func contentBlocks(inv *registry.Invocation, body func(json.RawMessage) []viewer.Section, hint string) []viewer.Section {
	if inv == nil {
		return []viewer.Section{{Kind: viewer.Note, Text: hint}}
	}
	note := fmt.Sprintf("%s, %s", inv.Time.Format("15:04:05"), uicontext.FormatDuration(inv.Duration))
	if len(inv.Result) > 0 {
		note += ", " + uicontext.FormatSize(int64(len(inv.Result)))
	}
	if inv.Stale {
		note += ", stale: " + uicontext.SanitizeLine(inv.StaleReason)
	}
	blocks := []viewer.Section{{Kind: viewer.Note, Text: note, Unmarked: true, Start: true}}
	if inv.Error != "" {
		text := inv.Error
		if inv.ErrorCode != 0 {
			text += fmt.Sprintf(" (code %d)", inv.ErrorCode)
		}
		return append(blocks, viewer.Section{Kind: viewer.Error, Text: text})
	}
	return append(blocks, body(inv.Result)...)
}

// versionOf changes with the cached content.
func versionOf(inv *registry.Invocation) string {
	if inv == nil {
		return ""
	}
	return fmt.Sprintf("%d %v %s", inv.Seq, inv.Stale, inv.StaleReason)
}

func rawBlocks(e *registry.Entry) []viewer.Section {
	names := []viewer.Field{{Label: "flat id", Value: e.Flat}}
	if e.Kind != registry.Tool && e.Kind != registry.Prompt {
		names = append(names, viewer.Field{Label: "name", Value: e.Label})
	}
	if e.Name != e.Listed {
		label := "own name"
		if e.Kind != registry.Tool && e.Kind != registry.Prompt {
			label = "own URI"
		}
		names = append(names, viewer.Field{Label: label, Value: e.Name})
	}
	blocks := []viewer.Section{
		{Title: "Definition", Kind: viewer.Fields, Fields: names},
		{Kind: viewer.JSON, Data: e.JSON()},
	}
	if e.Override == nil {
		return blocks
	}
	return append(overrideBlocks(e), blocks...)
}

func overrideBlocks(e *registry.Entry) []viewer.Section {
	facts := make([]viewer.Field, 0, len(e.Override.Fill)+len(e.Override.Problems))
	for _, m := range e.Override.Fill {
		facts = append(facts, viewer.Field{Label: m.Name, Value: string(m.Value) + " in each call, hidden from clients"})
	}
	for _, why := range e.Override.Problems {
		facts = append(facts, viewer.Field{Label: "problem", Value: why})
	}
	return []viewer.Section{
		{Title: "Overrides: - the server, + clients", Kind: viewer.Fields, Fields: facts},
		{Kind: viewer.Text, Text: definition.Difference(e.Original, e.JSON())},
	}
}
