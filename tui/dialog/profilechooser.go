package dialog

import (
	"cmp"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/uicontext"
)

// ProfileChooser is a dialog that selects the profile whose view of the catalog the UI
// shows.
type ProfileChooser struct {
	uicontext.ListDialog
	app   *uicontext.Context
	Table *list.Table[profileRow]
}

// profileRow is a profile with its numbers of visible entries. The name may be empty.
type profileRow struct {
	profile        string
	visible, total [registry.Kinds]int // total is without a profile
}

// count returns the visible entries, of those without a profile. A profile with search
// may have more tools, those of Goblin.
func (r profileRow) count(kind registry.Kind) string {
	n, total := r.visible[kind], r.total[kind]
	if r.profile == "" || n > total {
		return uicontext.FormatInt(n)
	}
	return uicontext.FormatInt(n) + " of " + uicontext.FormatInt(total)
}

func (r profileRow) name() string { return cmp.Or(r.profile, "(no profile)") }

// NewProfileChooser opens a snapshot of the profiles.
func NewProfileChooser(a *uicontext.Context) tea.Cmd {
	var rows []profileRow
	for _, name := range append([]string{""}, a.Backend.Profiles()...) {
		rows = append(rows, profileRow{name, a.Backend.VisibleCounts(name), a.Backend.VisibleCounts("")})
	}
	d := &ProfileChooser{app: a}
	d.Table = list.New(a.Ctx, a.Now, profileRow.name, profileRow.name, func([]profileRow) []list.Field { return nil })
	d.setColumns()
	fill := d.Table.Refresh(len(rows), func() []profileRow { return rows }, func() tea.Cmd { return nil })
	for i, r := range rows {
		if r.profile == a.Profile {
			d.Table.MoveTo(i)
		}
	}
	return tea.Batch(fill, a.Push(d))
}

func (d *ProfileChooser) Heading() string { return "View as a profile's clients" }

func (d *ProfileChooser) Size(w, h int) (int, int) {
	return min(w, 76), min(h, max(d.Table.Total(), 3)+5)
}

func (d *ProfileChooser) Lines(w, h int) []string {
	lk := d.app.Theme
	note := "Hidden entries are dim. " + d.app.KeyOf("switch") + " disables or enables an entry."
	if d.Table.Total() == 1 {
		note = "No profiles in the config."
	}
	lines := uicontext.WrapText(note, w, 2)
	out := append(d.Table.Grid(lk, w, max(h-1-len(lines), 1), true), "")
	for _, line := range lines {
		out = append(out, lk.Dim.On(line))
	}
	return lk.Lines(out, w, h)
}

func (d *ProfileChooser) setColumns() {
	count := func(name string, kind registry.Kind) list.Column[profileRow] {
		return list.Column[profileRow]{
			Name: name, Priority: 1, AlignRight: true, Dim: true, Descending: true,
			Text: func(r profileRow) string { return r.count(kind) },
			Less: func(a, b profileRow) int { return cmp.Compare(a.visible[kind], b.visible[kind]) },
		}
	}
	d.Table.SetColumns(
		list.Column[profileRow]{Name: "profile", MinWidth: 12, PreferredWidth: 24, Text: profileRow.name},
		count("tools", registry.Tool), count("prompts", registry.Prompt), count("resources", registry.Resource))
	d.Table.MarkWidth = 2
	d.Table.Marks = func(r profileRow) string {
		if r.profile == d.app.Profile {
			return d.app.Theme.Up
		}
		return ""
	}
}

func (d *ProfileChooser) Keys() keys.Table {
	move := func(by int) func() tea.Cmd {
		return func() tea.Cmd {
			d.Table.Move(by)
			return nil
		}
	}
	return keys.Table{
		{ID: "view.down", Long: "Next profile", Run: move(1)},
		{ID: "view.up", Long: "Previous profile", Run: move(-1)},
		{ID: "view.choose", Hint: "choose", Long: "View as its clients", Run: d.choose},
		{ID: "view.close", Hint: "close", Long: "Close", Run: func() tea.Cmd { return d.app.Drop(d) }},
	}
}

func (d *ProfileChooser) choose() tea.Cmd {
	if r, ok := d.Table.Selected(); ok {
		d.app.Profile = r.profile
	}
	return tea.Batch(d.app.Drop(d), d.app.Shell.ReloadLists())
}

func (d *ProfileChooser) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(tea.MouseMsg); ok && uicontext.LeftPress(m) {
		row, cmd := d.Table.Click(m.X, m.Y)
		if row {
			return d.choose()
		}
		return cmd
	}
	return nil
}
