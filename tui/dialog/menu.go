package dialog

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/keymap"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// MenuItem is an action of a menu. A disabled one has a reason.
type MenuItem struct {
	Keys []string
	Text string
	Why  string
	Run  func() tea.Cmd
}

// Menu is the menu of a row's actions, opened by a right click.
type Menu struct {
	uicontext.ListDialog
	app    *uicontext.Context
	title  string
	x, y   int // the clicked cell
	items  []MenuItem
	window list.Window
	w, h   int // of the lines, as drawn
}

// NewMenu returns a menu near a cell. Enabled items come first.
func NewMenu(app *uicontext.Context, title string, x, y int, items []MenuItem) *Menu {
	slices.SortStableFunc(items, func(a, b MenuItem) int { return min(len(a.Why), 1) - min(len(b.Why), 1) })
	d := &Menu{app: app, title: title, x: x, y: y, items: items}
	d.window.Reset(len(items))
	return d
}

func (d *Menu) Heading() string { return d.title }

// Widths of a key, and of the text of an item without a key.
const (
	menuKeyWidth  = 6
	menuTextWidth = 80
)

func (d *Menu) Size(w, h int) (int, int) {
	need := theme.Width(d.title) + 8
	for i := range d.items {
		need = max(need, menuKeyWidth+theme.Width(d.text(&d.items[i]))+7)
	}
	return min(w, need, menuKeyWidth+menuTextWidth), min(h, len(d.items)+2)
}

// Place returns the top left cell of the menu.
func (d *Menu) Place(w, h, roomW, roomH int) (x, y int) {
	return max(0, min(d.x+1, roomW-w)), max(0, min(d.y, roomH-h))
}

func (d *Menu) text(it *MenuItem) string {
	if it.Why == "" {
		return it.Text
	}
	return it.Text + "  (" + uicontext.SanitizeLine(it.Why) + ")"
}

func (d *Menu) Lines(w, h int) []string {
	d.w, d.h = w, h
	lk := d.app.Theme
	return lk.Lines(d.window.Lines(lk, h, func(i int) string {
		it := &d.items[i]
		key := ""
		if len(it.Keys) > 0 {
			key = keymap.FormatKey(it.Keys[0])
		}
		style, keyStyle := theme.Style(""), lk.Key
		if it.Why != "" {
			style, keyStyle = lk.Dim, lk.Dim
		}
		return keyStyle.On(lk.Fit(key, menuKeyWidth)) + " " + style.On(lk.Fit(d.text(it), max(w-menuKeyWidth-3, 0)))
	}), w, h)
}

func (d *Menu) Keys() keys.Table {
	move := func(by int) func() tea.Cmd {
		return func() tea.Cmd {
			d.window.Move(by)
			return nil
		}
	}
	return keys.Table{
		{ID: "menu.run", Hint: "run", Long: "Run the action under the cursor (also by its own key)", Run: func() tea.Cmd { return d.run(d.window.Cursor()) }},
		{ID: "menu.down", Long: "Next action", Run: move(1)},
		{ID: "menu.up", Long: "Previous action", Run: move(-1)},
		{ID: "menu.close", Hint: "close", Long: "Close", Run: func() tea.Cmd { return d.app.Drop(d) }},
	}
}

func (d *Menu) run(at int) tea.Cmd {
	if at >= len(d.items) {
		return nil
	}
	if why := d.items[at].Why; why != "" {
		return d.app.Complain("%s", why)
	}
	d.app.Drop(d)
	return d.items[at].Run()
}

// Update runs an action by its key or by a click. A click outside closes the menu.
func (d *Menu) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyMsg:
		name := keys.KeyName(msg)
		if at := slices.IndexFunc(d.items, func(it MenuItem) bool { return name != "" && slices.Contains(it.Keys, name) }); at >= 0 {
			return d.run(at)
		}
	case tea.MouseMsg:
		press := msg.Action == tea.MouseActionPress && (msg.Button == tea.MouseButtonLeft || msg.Button == tea.MouseButtonRight)
		if press && !(uicontext.Rect{W: d.w, H: d.h}).Contains(msg.X, msg.Y) {
			return d.app.Drop(d)
		}
		if d.window.Mouse(msg, 0) {
			return d.run(d.window.Cursor())
		}
	}
	return nil
}
