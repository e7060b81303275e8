// Package checklist asks the user to choose from a list before a command acts.
package checklist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
	"goblin/tui/list"
	"goblin/tui/theme"
)

// Item is a row of a checklist.
type Item struct {
	Cells []string
	Notes []string // shown while the cursor is on the item
	On    bool
}

// List is a checklist and its answer. [Ask] shows it in its own Bubble Tea program, for
// commands that ask before they act.
type List struct {
	Title  string
	About  []string // lines below the title, cut if there is no room
	Items  []Item
	Switch string // an extra option, toggled by s; may be ""
	On     bool
}

// Ask shows a list of at least one item until the user decides. It returns false if the
// user cancels.
func Ask(ctx context.Context, in io.Reader, out io.Writer, l *theme.Theme, checklist *List) (ok bool, err error) {
	m := newModel(l, checklist)
	_, err = tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithAltScreen(), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = ctx.Err()
	}
	return m.accepted, err
}

func newModel(l *theme.Theme, checklist *List) *model {
	m := &model{List: checklist, theme: l}
	m.window.Reset(len(m.Items))
	return m
}

type model struct {
	*List
	theme         *theme.Theme
	width, height int
	window        list.Window
	accepted      bool
}

func (m *model) Init() tea.Cmd { return nil }

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.window.Resize(len(m.Items), m.rows())
	case tea.KeyMsg:
		if len(msg.Runes) > 1 && !msg.Paste { // several keys in one message
			var end tea.Cmd
			for _, r := range msg.Runes {
				if _, cmd := m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}); cmd != nil {
					end = cmd
				}
			}
			return m, end
		}
		cursor := list.Cursor{List: &m.window}
		switch msg.String() {
		case "up", "k":
			m.window.Move(-1)
		case "down", "j":
			m.window.Move(1)
		case "pgup", "ctrl+b":
			cursor.Page(-1)
		case "pgdown", "ctrl+f":
			cursor.Page(1)
		case "home", "g":
			cursor.Top()
		case "end", "G":
			cursor.Bottom()
		case " ", "x":
			at := m.window.Cursor()
			m.Items[at].On = !m.Items[at].On
			m.window.Move(1)
		case "a":
			all := !slices.ContainsFunc(m.Items, func(it Item) bool { return !it.On })
			for i := range m.Items {
				m.Items[i].On = !all
			}
		case "s":
			m.On = m.Switch != "" && !m.On
		case "enter":
			m.accepted = true
			return m, tea.Quit
		case "esc", "q", "ctrl+c":
			return m, tea.Quit
		}
	}
	return m, nil
}

// notes is the number of lines reserved for the notes of an item.
const notes = 3

func (m *model) about() []string { return m.About[:min(len(m.About), max(m.height-12, 0)/2)] }

func (m *model) rows() int {
	head := 1
	if n := len(m.about()); n > 0 {
		head += n + 1
	}
	if m.Switch != "" {
		head++
	}
	return max(m.height-head-notes-3, 1)
}

func (m *model) View() string {
	if m.width == 0 {
		return ""
	}
	l := m.theme
	lines := []string{l.Title.On(termtext.Line(m.Title))}
	if about := m.about(); len(about) > 0 {
		for _, line := range about {
			lines = append(lines, l.Dim.On(termtext.Line(line)))
		}
		lines = append(lines, "")
	}
	selected := 0
	widths := m.widths()
	for i := range m.Items {
		if m.Items[i].On {
			selected++
		}
	}
	lines = append(lines, m.window.Lines(l, m.rows(), func(i int) string { return m.row(i, widths) })...)
	lines = append(lines, "")
	if m.Switch != "" {
		lines = append(lines, box(m.On)+" "+termtext.Line(m.Switch)+l.Dim.On("  s"))
	}
	said := m.Items[m.window.Cursor()].Notes
	for i := range notes {
		line := ""
		if i < len(said) {
			line = l.Warn.On(termtext.Line(said[i]))
		}
		lines = append(lines, line)
	}
	keys := []string{"enter", fmt.Sprintf("confirm %d of %d", selected, len(m.Items)), "esc", "cancel", "space", "select", "a", "all or none"}
	var foot strings.Builder
	for i := 0; i < len(keys); i += 2 {
		foot.WriteString(l.Key.On(keys[i]) + " " + keys[i+1] + "  ")
	}
	lines = append(lines, foot.String())
	for i := range lines {
		lines[i] = l.Fit(lines[i], m.width)
	}
	return strings.Join(lines[:min(len(lines), m.height)], "\n")
}

func (m *model) widths() []int {
	var widths []int
	for i := range m.Items {
		for c, cell := range m.Items[i].Cells {
			if c == len(widths) {
				widths = append(widths, 0)
			}
			widths[c] = max(widths[c], theme.Width(termtext.Line(cell)))
		}
	}
	for c := range widths { // the first column is a name, which is cut last
		widths[c] = min(widths[c], max(m.width*2/(len(widths)+1), 8))
	}
	return widths
}

func (m *model) row(i int, widths []int) string {
	it := &m.Items[i]
	line := box(it.On)
	for c, cell := range it.Cells {
		line += "  " + m.theme.Fit(termtext.Line(cell), widths[c])
	}
	return m.theme.Fit(line, m.width-2)
}

// box uses ASCII only, so that every terminal can draw it.
func box(on bool) string {
	if on {
		return "[x]"
	}
	return "[ ]"
}
