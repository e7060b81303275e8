package dialog

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// mistakes lists the errors in the edited config. It closes when the config is valid.
type mistakes struct {
	uicontext.ListDialog
	app   *uicontext.Context
	Table *list.Table[registry.Mistake]
}

// NewMistakes opens the list of errors in the edited config.
func NewMistakes(a *uicontext.Context) tea.Cmd {
	if len(a.Reg.Mistakes()) == 0 {
		return a.Say("The config is valid")
	}
	d := &mistakes{app: a}
	text := func(m registry.Mistake) string { return fmt.Sprintf("%s:%d %s", m.File, m.Line, m.Text) }
	d.Table = list.New(a.Ctx, a.Now, text, text, func([]registry.Mistake) []list.Field { return nil })
	d.Table.SetColumns(
		list.Column[registry.Mistake]{Name: "file", Priority: 1, MinWidth: 8, PreferredWidth: 20, Dim: true, CutMiddle: true, Unsorted: true, Text: func(m registry.Mistake) string { return filepath.Base(m.File) }},
		list.Column[registry.Mistake]{Name: "line", NeededWidth: 5, AlignRight: true, Unsorted: true, Show: func(m registry.Mistake, _ int) (string, theme.Style) {
			if m.Line == 0 {
				return "", ""
			}
			return strconv.Itoa(m.Line), ""
		}},
		list.Column[registry.Mistake]{Name: "error", MinWidth: 20, PreferredWidth: 40, Fills: true, Unsorted: true, Text: func(m registry.Mistake) string { return m.Text }})
	return tea.Batch(d.read(), a.Push(d))
}

// EditMistake opens the list, and the editor at its first line.
func EditMistake(a *uicontext.Context) tea.Cmd {
	cmd := NewMistakes(a)
	if n := len(a.Dialogs); n > 0 {
		if d, ok := a.Dialogs[n-1].(*mistakes); ok {
			return tea.Batch(cmd, d.edit())
		}
	}
	return cmd
}

func (d *mistakes) Refresh(what registry.Changes) tea.Cmd {
	if what&registry.Servers == 0 {
		return nil
	}
	return d.read()
}

func (d *mistakes) read() tea.Cmd {
	all := d.app.Reg.Mistakes()
	if len(all) == 0 {
		d.app.Drop(d)
		return d.app.Say("The config is valid again")
	}
	return d.Table.Refresh(len(all), func() []registry.Mistake { return all }, func() tea.Cmd { return nil })
}

func (d *mistakes) Heading() string {
	return "Config not reloaded: " + termtext.Count(d.Table.Total(), "error")
}

func (d *mistakes) Size(w, h int) (int, int) { return min(w, 120), min(h, max(d.Table.Total(), 3)+10) }

func (d *mistakes) Lines(w, h int) []string {
	lk := d.app.Theme
	m, _ := d.Table.Selected()
	whole := uicontext.WrapText(m.Text, max(w-2, 1), 1<<16)
	below := min(len(whole), max(h/3, 1))
	note := uicontext.WrapText("The previous config stays in use. "+d.app.KeyOf("mistakes.edit")+" opens the editor at the line.", max(w-2, 1), 2)
	out := d.Table.Grid(lk, w, max(h-below-1-len(note), 1), true)
	out = append(out, lk.Border.On(strings.Repeat(lk.Horizontal, max(w, 0))))
	for _, line := range whole[:below] {
		out = append(out, " "+line)
	}
	for _, line := range note {
		out = append(out, " "+lk.Dim.On(line))
	}
	return lk.Lines(out, w, h)
}

func (d *mistakes) Keys() keys.Table {
	return append(keys.Scrolling("scroll", func() keys.Scroller { return list.Cursor{List: d.Table} }),
		keys.Binding{ID: "mistakes.edit", Hint: "edit", Long: "Open the editor at the line", Run: d.edit},
		keys.Binding{ID: "mistakes.copy", Hint: "copy", Long: "Copy the error with its file and line", Run: func() tea.Cmd {
			m, _ := d.Table.Selected()
			return d.app.Copy(uicontext.SanitizeLine(fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Text)), "the error")
		}},
		keys.Binding{ID: "mistakes.close", Hint: "close", Long: "Close", Run: func() tea.Cmd { return d.app.Drop(d) }})
}

// MistakesKeys returns the keys of the list.
func MistakesKeys() keys.Table { return (*mistakes)(nil).Keys() }

// edit opens the editor, and reads the config again afterwards.
func (d *mistakes) edit() tea.Cmd {
	m, ok := d.Table.Selected()
	if !ok {
		return nil
	}
	return editConfig(d.app, "", max(m.Line, 1))
}

func (d *mistakes) Update(msg tea.Msg) tea.Cmd {
	uicontext.ScrollWheel(d.Table.Scroll, msg)
	if m, ok := msg.(tea.MouseMsg); ok && uicontext.LeftPress(m) {
		_, cmd := d.Table.Click(m.X, m.Y)
		return cmd
	}
	return nil
}
