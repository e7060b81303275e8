package tui

import (
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

func (r *testUI) mouse(b tea.MouseButton, a tea.MouseAction, x, y int) *testUI {
	r.t.Helper()
	r.send(tea.MouseMsg{X: x, Y: y, Button: b, Action: a}, 0)
	return r
}

// drag presses the left button at one cell and moves to others. It does not release it.
func (r *testUI) drag(cells ...[2]int) *testUI {
	r.t.Helper()
	r.mouse(tea.MouseButtonLeft, tea.MouseActionPress, cells[0][0], cells[0][1])
	for _, c := range cells[1:] {
		r.mouse(tea.MouseButtonLeft, tea.MouseActionMotion, c[0], c[1])
		r.screen()
	}
	return r
}

func (r *testUI) rightClick(text string) *testUI {
	r.t.Helper()
	for y, l := range strings.Split(r.screen(), "\n") {
		if at := strings.Index(l, text); at >= 0 && y > 3 {
			return r.mouse(tea.MouseButtonRight, tea.MouseActionPress, ansi.StringWidth(l[:at]), y)
		}
	}
	r.t.Fatalf("no %q in:\n%s", text, r.screen())
	return r
}

func TestTheBorderBesideIsDragged(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 160, 45, plainEnv).keys("2")
	x := r.app.Geometry().Detail.X
	r.drag([2]int{x, 10}, [2]int{x - 30, 12})
	require.InDelta(t, x-30, r.app.Geometry().Detail.X, 1)
	r.mouse(tea.MouseButtonLeft, tea.MouseActionMotion, -5, 400)
	require.Equal(t, leastPart, r.app.Split.ListPercent, "outside of the window")
	r.resize(80, 24).mouse(tea.MouseButtonLeft, tea.MouseActionMotion, 79, 0)
	r.resize(20, 5).mouse(tea.MouseButtonLeft, tea.MouseActionMotion, 19, 4)
	r.resize(160, 45).mouse(tea.MouseButtonLeft, tea.MouseActionMotion, 159, 4)
	require.Equal(t, leastPart, r.app.Split.ListPercent, "a tiny window ends the drag")
	r.drag([2]int{r.app.Geometry().Detail.X - 1, 10}, [2]int{120, 10})
	r.mouse(tea.MouseButtonNone, tea.MouseActionRelease, 120, 10).mouse(tea.MouseButtonLeft, tea.MouseActionMotion, 60, 10)
	require.InDelta(t, 120, r.app.Geometry().Detail.X, 1, "a release ends it")
}

func TestTheBorderBelowIsDragged(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 40, plainEnv).keys("4 enter")
	r.keys("esc enter")
	r.app.SetPlace("below")
	y := r.app.Geometry().Detail.Y
	require.Greater(t, y, 2)
	r.drag([2]int{40, y}, [2]int{40, y + 5})
	require.Equal(t, y+5, r.app.Geometry().Detail.Y)
	r.mouse(tea.MouseButtonNone, tea.MouseActionRelease, 40, y+5)
	r.drag([2]int{40, 5}, [2]int{40, 20})
	require.Equal(t, y+5, r.app.Geometry().Detail.Y, "only the border moves it")
}

func TestARightClickOpensTheRowsActions(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2").rightClick("github_delete_repo")
	require.Equal(t, "github_delete_repo", r.app.Panes[pane.PaneTools].Item().Listed)
	require.Contains(t, r.line("─ github_delete_repo ─"), "╭─")
	require.Regexp(t, `c +Call, get or expand`, r.screen())
	require.Regexp(t, `H +List past calls +\(not called in this UI`, r.screen())
	r.keys("c")
	require.Equal(t, "Call github_delete_repo", r.app.Dialogs[0].Heading(), "a key of an action runs it")
	r.keys("esc").rightClick("github_search").keys("esc")
	require.Empty(t, r.app.Dialogs)
	r.rightClick("github_search").click("Call, get or expand", "Call,")
	require.Equal(t, "Call github_search", r.app.Dialogs[0].Heading())
	r.keys("esc").rightClick("github_search").mouse(tea.MouseButtonLeft, tea.MouseActionPress, 0, 39)
	require.Empty(t, r.app.Dialogs, "a click outside closes it")
}

func TestTheMenuSaysWhyAnActionIsDisabled(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2").rightClick("github_search").keys("up")
	for range 40 {
		r.keys("j")
	}
	r.keys("enter")
	require.Len(t, r.app.Dialogs, 1)
	require.True(t, r.app.Flash.Bad)
	require.Contains(t, r.screen(), "("+r.app.Flash.Text+")")
}

func TestTheMenuFitsEverywhere(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{40, 10}, {80, 24}, {200, 50}} {
		r := newTestUI(t, size[0], size[1], "x").setReady("x")
		r.reg.SetList("x", registry.Tool, [][]byte{[]byte(`{"name":"evil\u001b[2J\u202e世界` + strings.Repeat("long", 100) + `"}`)})
		r.refresh(registry.AllChanges).keys("2")
		for y := range size[1] {
			for _, x := range []int{0, 1, size[0] - 1, size[0], -1} {
				r.mouse(tea.MouseButtonRight, tea.MouseActionPress, x, y)
				r.screen()
				require.NotContains(t, r.app.View(), "\x1b[2J")
				if len(r.app.Dialogs) > 0 {
					r.keys("esc")
				}
			}
		}
	}
}

func TestCountsOfTheHeaderAreLinks(t *testing.T) {
	t.Parallel()
	filter := func(part string) string {
		return newExampleUI(t, 120, 40, plainEnv).click("goblin", part).filterText()
	}
	require.Equal(t, "state:ready", filter("up"))
	require.Equal(t, "state:retrying", filter("down"))
	r := newExampleUI(t, 120, 40, plainEnv).click("goblin", "clients")
	require.Equal(t, "Clients", strings.Fields(r.app.Dialogs[0].Heading())[0])
	r.keys("esc").click("goblin", "req/s")
	require.True(t, r.app.Open == pane.PaneLogs && r.app.Logs().Open == pane.TabTraffic)
	r.keys("esc")
	require.Equal(t, pane.PaneResources, r.app.Open, "Esc goes back")
	for _, part := range []string{"goblin", "work.yaml"} {
		r.click("goblin", part)
		require.Equal(t, pane.PaneResources, r.app.Open)
	}
	for x := range 120 {
		r.mouse(tea.MouseButtonLeft, tea.MouseActionPress, x, 0).screen()
		r.app.Dialogs = nil
	}
}

func TestHeaderMarksAreLinks(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.reg.SetMistakes([]registry.Mistake{{File: "/c.yaml", Line: 3, Text: "bad"}})
	r.refresh(registry.Servers).click("goblin", "config invalid")
	require.Contains(t, r.app.Dialogs[0].Heading(), "Config not reloaded")
	r.keys("esc").ask("elicitation/create", `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)
	r.passGrace().app.Dialogs = nil
	r.click("goblin", "answers")
	require.NotEmpty(t, r.app.Dialogs)
}

func TestWithoutTheMouseNothingHappens(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 160, 45, plainEnv).keys("2 M")
	before, x := r.app.Split, r.app.Geometry().Detail.X
	r.drag([2]int{x, 10}, [2]int{40, 10}).rightClick("github_search").click("goblin", "clients")
	require.Empty(t, r.app.Dialogs)
	require.Equal(t, before, r.app.Split)
}
