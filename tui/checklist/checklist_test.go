package checklist

import (
	"bytes"
	"context"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/tui/theme"
)

func exampleChecklist() *List {
	return &List{
		Title: "Which?", About: []string{"found in a file", "and another"}, Switch: "keep secrets",
		Items: []Item{
			{Cells: []string{"files", "npx files", "Cursor"}, On: true},
			{Cells: []string{"db", "uvx db \x1b[31mred", "Kiro"}, Notes: []string{"needs \x1b[2JKEY"}, On: true},
			{Cells: []string{"web", "https://example.com", "Zed"}},
		},
	}
}

func TestAChecklistIsAnsweredByKeys(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		keys  string
		ok    bool
		taken string
		on    bool
	}{
		"as it is":              {"\r", true, "files db", false},
		"one left":              {" \r", true, "db", false},
		"space continues":       {"  \r", true, "", false},
		"down and up":           {"jjk \r", true, "files", false},
		"the last":              {"G \r", true, "files db web", false},
		"all, then none":        {"aa\r", true, "", false},
		"all":                   {"a\r", true, "files db web", false},
		"the switch":            {"s\r", true, "files db", true},
		"nothing":               {" q", false, "db", false},
		"nothing, by interrupt": {"\x03", false, "files db", false},
		"beyond the ends":       {"kkGjj \r", true, "files db web", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := exampleChecklist()
			ok, err := Ask(context.Background(), strings.NewReader(test.keys), new(bytes.Buffer), theme.New(theme.Options{}), list)
			require.NoError(t, err)
			require.Equal(t, test.ok, ok)
			var taken []string
			for _, it := range list.Items {
				if it.On {
					taken = append(taken, it.Cells[0])
				}
			}
			require.Equal(t, test.taken, strings.Join(taken, " "))
			require.Equal(t, test.on, list.On)
		})
	}
}

func TestAChecklistFitsItsTerminal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		w, h int
		want []string
	}{
		"usual":  {80, 24, []string{"Which?", "found in a file", "> [x]  files  npx files", "  [ ]  web", "[ ] keep secrets  s", "enter confirm 2 of 3"}},
		"small":  {30, 9, []string{"Which?", "> [x]  files", "enter confirm 2 of 3"}},
		"tiny":   {8, 3, []string{"Which?"}},
		"no row": {80, 1, []string{"Which?"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(theme.New(theme.Options{}), exampleChecklist())
			m.Update(tea.WindowSizeMsg{Width: test.w, Height: test.h})
			view := ansi.Strip(m.View())
			lines := strings.Split(view, "\n")
			require.LessOrEqual(t, len(lines), test.h)
			for _, line := range lines {
				require.Equal(t, test.w, ansi.StringWidth(line), line)
			}
			for _, want := range test.want {
				require.Contains(t, view, want)
			}
			m.Update(tea.KeyMsg{Type: tea.KeyDown})
			require.NotContains(t, m.View(), "\x1b[2J", "untrusted text must not reach the terminal raw")
			if test.h == 24 {
				require.Contains(t, ansi.Strip(m.View()), `needs \x1b[2JKEY`)
			}
		})
	}
}
