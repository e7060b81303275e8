package tui

import (
	"fmt"
	"testing"

	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/uicontext"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// command types a line into the palette and runs it.
func (r *rig) command(line string) *rig {
	r.t.Helper()
	return r.keys(":").text(line).keys("enter")
}

func TestPaletteRunsCommandsByNameAndAlias(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]func(*app) bool{
		"servers": func(a *app) bool { return a.Open == pane.PaneServers },
		"srv":     func(a *app) bool { return a.Open == pane.PaneServers },
		"res":     func(a *app) bool { return a.Open == pane.PaneResources },
		"RES":     func(a *app) bool { return a.Open == pane.PaneResources },
		"too":     func(a *app) bool { return a.Open == pane.PaneTools },
		"q":       func(a *app) bool { return len(a.Dialogs) == 1 && a.Dialogs[0].Heading() == "Quit?" },
		"quit":    func(a *app) bool { return len(a.Dialogs) == 1 && a.Dialogs[0].Heading() == "Quit?" },
		"help":    func(a *app) bool { return len(a.Dialogs) == 1 && a.Dialogs[0].Heading() == "Help: Prompts" },
		"setup":   func(a *app) bool { return len(a.Dialogs) == 1 && a.Dialogs[0].Heading() == "Setup" },
		"traffic": func(a *app) bool { return a.Open == pane.PaneLogs && a.Logs().Open == pane.TabTraffic },
		"stderr":  func(a *app) bool { return a.Open == pane.PaneLogs && a.Logs().Open == pane.TabStderr },
		"goblin":  func(a *app) bool { return a.Open == pane.PaneLogs && a.Logs().Open == pane.TabGoblin },
		"events":  func(a *app) bool { return a.Open == pane.PaneLogs && a.Logs().Open == pane.TabEvents },
	} {
		r := office(t, 120, 40, plainEnv).keys("3")
		require.True(t, want(r.command(line).app), "%s\n%s", line, r.screen())
	}
}

func TestPaletteShowsKeysAndReasons(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("2 :").text("subscribe")
	require.Contains(t, r.line("> subscribe  "), "(only in Resources and Detail)")
	r.keys("enter")
	require.Contains(t, r.screen(), "! only in Resources and Detail", "and stays open")
	require.Len(t, r.app.Dialogs, 1)
	r.keys("esc 4 :").text("subscribe")
	require.Regexp(t, `Subscribe to the resource.* s `, r.line("Subscribe to the resource"))
}

func TestPaletteListsWhatCanBeRunFirst(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 60, plainEnv).keys("2 ctrl+p")
	d := r.app.Dialogs[0].(*palette)
	last := 0
	for _, c := range d.list {
		require.GreaterOrEqual(t, c.listRank(), last)
		last = c.listRank()
	}
	require.Equal(t, 2, last)
	require.Greater(t, len(d.list), 60)
}

func TestPalettePrefersWhatCanBeRunAmongEquals(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("5 :").text("c")
	require.Contains(t, r.screen(), "│> copy ", "call does not work here")
	r.keys("esc :").text("call")
	require.Contains(t, r.screen(), "│> call ", "but is meant by its name")
}

func TestPaletteFindsByExplanation(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys(":").text("terminal select")
	require.Contains(t, r.screen(), "│> mouse ")
}

func TestPaletteSaysWhatIsNearestToAnUnknownCommand(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4").command("subscirbe")
	require.Contains(t, r.screen(), "! no such command: subscirbe; the nearest is subscribe (tab takes it)")
	require.Len(t, r.app.Dialogs, 1)
	r.keys("tab")
	require.Contains(t, r.screen(), "│> subscribe ")
	r.keys("esc").command("zzzzzzzz")
	require.Contains(t, r.screen(), "no such command: zzzzzzzz")
	require.NotContains(t, r.screen(), "nearest")
}

func TestPaletteCompletes(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys(":").text("templ").keys("tab")
	require.Equal(t, "templates", r.app.Dialogs[0].(*palette).input.Value())
	r.keys("esc :").text("disa").keys("tab")
	require.Equal(t, "disable ", r.app.Dialogs[0].(*palette).input.Value())
	r.keys("down tab")
	require.Equal(t, "disable github", r.app.Dialogs[0].(*palette).input.Value())
}

func TestPaletteFilters(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4").command("server github")
	require.Equal(t, "server:github", r.typed())
	r.command("mime text/*")
	require.Equal(t, "server:github mime:text/*", r.typed())
	r.command("srv files")
	require.Equal(t, "server:files mime:text/*", r.typed(), "one value takes the place of the other")
	r.keys("2").command("mime text/plain")
	require.Contains(t, r.screen(), "! the filter of Tools has no field mime")
}

func TestPaletteChoosesThemes(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, colourEnv).command("theme light")
	require.Equal(t, "light", r.app.Theme.Variant)
	r.command("theme purple")
	require.Contains(t, r.screen(), "no theme purple; there are auto, dark, light, none")
	require.Equal(t, "light", r.app.Theme.Variant)
	r = office(t, 120, 40, plainEnv).command("theme dark")
	require.Contains(t, r.screen(), "this terminal shows no colours")
}

func TestPaletteActsOnServers(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 40, "files", "github")
	r.ready("files").ready("github")
	r.reg.SetState("github", registry.ServerState{State: registry.StateDisabled})
	r.changed(registry.Servers)
	r.command("restart files").command("disable files").keys("y").command("enable github").keys("y")
	require.Equal(t, []string{"restart files", "enable files false", "enable github true"}, r.backend.acts)
	r.command("restart github")
	require.Contains(t, r.screen(), "! github is disabled; :enable enables it")
	r.keys("esc").command("restart nobody")
	require.Contains(t, r.screen(), "! no server is called nobody")
	r.keys("esc").command("enable files")
	require.Contains(t, r.screen(), "! files is enabled already")
	require.Len(t, r.backend.acts, 3)
	r.keys("esc 1 j").command("enable").keys("y")
	require.Equal(t, "enable github true", r.backend.acts[3], "without a name, that of the selected row")
}

func TestPaletteAsksBeforeItDisturbsClients(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).command("disable files")
	require.Empty(t, r.backend.acts)
	require.Equal(t, "Disable files?", r.app.Dialogs[0].Heading())
	r.keys("y")
	require.Equal(t, []string{"enable files false"}, r.backend.acts)
}

func TestPaletteClearsWhatIsKept(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4 enter j enter")
	require.NotNil(t, uicontext.CachedInvocation(r.reg, r.app.Panes[pane.PaneResources].Item()))
	r.command("clear")
	require.Nil(t, uicontext.CachedInvocation(r.reg, r.app.Panes[pane.PaneResources].Item()))
	r.keys("k")
	require.NotNil(t, uicontext.CachedInvocation(r.reg, r.app.Panes[pane.PaneResources].Item()), "of the selected item only")
	r.command("clear all")
	require.Nil(t, uicontext.CachedInvocation(r.reg, r.app.Panes[pane.PaneResources].Item()))
	require.Contains(t, r.screen(), "Forgot 1 kept result")
}

func TestPaletteOpensThingsByName(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("1").command("open delete_repo")
	require.Equal(t, pane.PaneTools, r.app.Open)
	require.Equal(t, "github_delete_repo", r.app.Panes[pane.PaneTools].Item().Listed)
	r.command("open standup")
	require.Equal(t, "github/standup", r.app.Panes[pane.PanePrompts].Item().Listed)
	r.command("open repo://")
	require.Equal(t, registry.Template, r.app.Panes[pane.PaneResources].Item().Kind)
	require.Equal(t, "github", r.app.Panes[pane.PaneResources].Item().Server)
	r.command("open confjson")
	require.Equal(t, "file:///srv/config.json", r.app.Panes[pane.PaneResources].Item().Name)
	r.command("open zzzzz")
	require.Contains(t, r.screen(), "Nothing is called zzzzz.")
}

func TestPaletteOpensWhatAFilterHides(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4 /").text("day-01").keys("enter").command("open config.json")
	require.Equal(t, "file:///srv/config.json", r.app.Panes[pane.PaneResources].Item().Name)
	require.Empty(t, r.typed())
}

func TestPaletteSearchesManyThingsInACommand(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 40, "a")
	r.ready("a")
	items := make([]string, list.MaxSyncRows+500)
	for i := range items {
		items[i] = fmt.Sprintf(`{"uri":"x://thing-%05d","name":"n"}`, i)
	}
	r.list("a", registry.Resource, items...)
	r.keys("4 /").text("00001").keys("enter :").text("open ")
	slow := r.app.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("thing-0")})
	require.Contains(t, r.screen(), "searching…")
	cmd := r.app.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("2999")})
	d := r.app.Dialogs[0].(*palette)
	r.run(slow)
	require.Empty(t, d.list, "an answer to what was typed before is dropped")
	r.app.Update(keyOf("enter"))
	require.Len(t, r.app.Dialogs, 1, "it waits for the answer")
	r.run(cmd)
	require.Empty(t, r.app.Dialogs)
	require.Equal(t, "x://thing-02999", r.app.Panes[pane.PaneResources].Item().Name, "also behind a filter that runs in a command")
	r.keys(":").text("open thing")
	require.Len(t, r.app.Dialogs[0].(*palette).list, maxFoundEntries)
}

func TestPaletteRemembersCommands(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).command("tools").command("server github").command("tools")
	value := func() string { return r.app.Dialogs[0].(*palette).input.Value() }
	r.keys(": up")
	require.Equal(t, "tools", value())
	r.keys("up")
	require.Equal(t, "server github", value(), "each is there once")
	r.keys("down down")
	require.Empty(t, value())
	r.text("x").press(tea.KeyCtrlUp)
	require.Equal(t, "tools", value())
	r.keys("enter")
	require.Equal(t, pane.PaneTools, r.app.Open)
}

func TestPaletteTakesClicks(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys(":").text("prompts")
	r.screen()
	rect := r.app.FrontRect
	r.take(tea.MouseMsg{X: rect.X + 5, Y: rect.Y + 2, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
	require.Equal(t, pane.PanePrompts, r.app.Open)
	require.Empty(t, r.app.Dialogs)
}

func TestPaletteEndsWithEscape(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4 :").text("tools").keys("esc")
	require.Empty(t, r.app.Dialogs)
	require.Equal(t, pane.PaneResources, r.app.Open)
}

func TestDialogsFitEveryScreen(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{40, 10}, {41, 12}, {80, 24}, {120, 40}, {250, 60}} {
		r := office(t, size[0], size[1], asciiEnv)
		for _, keys := range []string{"? G", ": s e r", ": o p e n space e", "f j", "m", "5 ] m"} {
			r.keys(keys).screen()
			require.NotEmpty(t, r.app.Dialogs, keys)
			r.keys("esc esc 4")
		}
	}
}
