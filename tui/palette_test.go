package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/report"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/list"
	"goblin/tui/palette"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
)

func TestPaletteRunsCommandsByNameAndAlias(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]func(*app) bool{
		"servers":  func(a *app) bool { return a.Open == pane.PaneServers },
		"srv":      func(a *app) bool { return a.Open == pane.PaneServers },
		"res":      func(a *app) bool { return a.Open == pane.PaneResources },
		"RES":      func(a *app) bool { return a.Open == pane.PaneResources },
		"too":      func(a *app) bool { return a.Open == pane.PaneTools },
		"q":        func(a *app) bool { return len(a.Dialogs) == 1 && a.Dialogs[0].Heading() == "Quit?" },
		"quit":     func(a *app) bool { return len(a.Dialogs) == 1 && a.Dialogs[0].Heading() == "Quit?" },
		"help":     func(a *app) bool { return len(a.Dialogs) == 1 && a.Dialogs[0].Heading() == "Help: Prompts" },
		"setup":    func(a *app) bool { return len(a.Dialogs) == 1 && a.Dialogs[0].Heading() == "Setup" },
		"traffic":  func(a *app) bool { return a.Open == pane.PaneLogs && a.Logs().Open == pane.TabTraffic },
		"timeline": func(a *app) bool { return a.Open == pane.PaneLogs && a.Logs().Open == pane.TabTimeline },
		"stderr":   func(a *app) bool { return a.Open == pane.PaneLogs && a.Logs().Open == pane.TabStderr },
		"goblin":   func(a *app) bool { return a.Open == pane.PaneLogs && a.Logs().Open == pane.TabGoblin },
		"events":   func(a *app) bool { return a.Open == pane.PaneLogs && a.Logs().Open == pane.TabEvents },
	} {
		r := newExampleUI(t, 120, 40, plainEnv).keys("3")
		require.True(t, want(r.runCommand(line).app), "%s\n%s", line, r.screen())
	}
}

func TestPaletteShowsKeysAndReasons(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2 :").typeText("subscribe")
	require.Contains(t, r.line("> command  subscribe  "), "(only in Resources and Detail)")
	r.keys("enter")
	require.Contains(t, r.screen(), "! only in Resources and Detail", "it must stay open")
	require.Len(t, r.app.Dialogs, 1)
	r.keys("esc 4 :").typeText("subscribe")
	require.Regexp(t, `Subscribe to the resource.* s `, r.line("Subscribe to the resource"))
}

func TestPaletteListsWhatCanBeRunFirst(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv).keys("2 ctrl+p")
	var all strings.Builder
	for range 100 {
		all.WriteString(r.line("│> "))
		r.keys("down")
	}
	require.Regexp(t, `(?s)│> command  servers .*│> command  half-down .*│> command  subscribe `, all.String(), "keys that work, keys of the cursor, disabled keys")
}

func TestPalettePrefersWhatCanBeRunAmongEquals(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("5 :").typeText("c")
	require.Contains(t, r.screen(), "│> command  copy ", "call does not work here")
	r.keys("esc :").typeText("call")
	require.Contains(t, r.screen(), "│> command  call ", "but its full name must find it")
}

func TestPaletteFindsByExplanation(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys(":").typeText("select text")
	require.Contains(t, r.screen(), "│> setting  mouse ")
}

func TestPaletteSaysWhatIsNearestToAnUnknownCommand(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4").runCommand("subscirbe")
	require.Contains(t, r.screen(), "! unknown command: subscirbe; did you mean subscribe? (tab)")
	require.Len(t, r.app.Dialogs, 1)
	r.keys("tab")
	require.Contains(t, r.screen(), "│> command  subscribe ")
	r.keys("esc").runCommand("zzzzzzzz")
	require.Contains(t, r.screen(), "unknown command: zzzzzzzz")
	require.NotContains(t, r.screen(), "nearest")
}

func TestPaletteCompletes(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys(":").typeText("templ").keys("tab")
	require.Equal(t, "templates", r.app.Dialogs[0].(*palette.Dialog).Input.Value())
	r.keys("esc :").typeText("disa").keys("tab")
	require.Equal(t, "disable ", r.app.Dialogs[0].(*palette.Dialog).Input.Value())
	r.keys("down tab")
	require.Equal(t, "disable github", r.app.Dialogs[0].(*palette.Dialog).Input.Value())
}

func TestPaletteFilters(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4").runCommand("server github")
	require.Equal(t, "server:github", r.filterText())
	r.runCommand("mime text/*")
	require.Equal(t, "server:github mime:text/*", r.filterText())
	r.runCommand("srv files")
	require.Equal(t, "server:files mime:text/*", r.filterText(), "one value must replace the other")
	r.keys("2").runCommand("mime text/plain")
	require.Contains(t, r.screen(), "! Tools has no filter field mime")
}

func TestPaletteChoosesThemes(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, colourEnv).runCommand("theme light")
	require.Equal(t, "light", r.app.Theme.Variant)
	r.runCommand("theme purple")
	require.Contains(t, r.screen(), "unknown theme purple; choose auto, dark, light, none")
	require.Equal(t, "light", r.app.Theme.Variant)
	r = newExampleUI(t, 120, 40, plainEnv).runCommand("theme dark")
	require.Contains(t, r.screen(), "colors are disabled")
}

func TestPaletteTogglesTheRecording(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv)
	require.NotContains(t, r.screen(), "REC")
	r.runCommand("record")
	require.Contains(t, r.screen(), "Recording to /state/recordings")
	require.Contains(t, r.line("goblin"), "REC")
	r.backend.recorded.Dropped = 1200
	r.app.header.refresh(r.app)
	require.Contains(t, r.line("goblin"), "REC, 1200 lost")
	r.runCommand("record")
	require.Contains(t, r.screen(), "Recording stopped: 2.1 MB in /state/recordings")
	require.NotContains(t, r.line("goblin"), "REC")

	r.backend.recorded = &report.Recording{Folder: "/state/recordings", Error: "disk full"}
	r.app.header.refresh(r.app)
	require.Contains(t, r.line("goblin"), "REC stopped")
}

func TestPaletteActsOnServers(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "files", "github")
	r.setReady("files").setReady("github")
	r.reg.SetState("github", registry.ServerState{State: registry.StateDisabled})
	r.refresh(registry.Servers)
	r.runCommand("restart files").runCommand("disable files")
	require.Equal(t, "Disable files?", r.app.Dialogs[0].Heading())
	r.keys("y").runCommand("enable github").keys("y")
	require.Equal(t, []string{"restart files", "enable files false", "enable github true"}, r.backend.acts)
	r.runCommand("restart github")
	require.Contains(t, r.screen(), "! github is disabled; :enable enables it")
	r.keys("esc").runCommand("restart nobody")
	require.Contains(t, r.screen(), `! no server "nobody"`)
	r.keys("esc").runCommand("enable files")
	require.Contains(t, r.screen(), "! files is already enabled")
	require.Len(t, r.backend.acts, 3)
	r.keys("esc 1 j").runCommand("enable").keys("y")
	require.Equal(t, "enable github true", r.backend.acts[3], "without a name, that of the selected row")
}

func TestPaletteClearsWhatIsKept(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 enter j enter")
	require.NotNil(t, uicontext.CachedInvocation(r.reg, r.app.Panes[pane.PaneResources].Item()))
	r.runCommand("clear")
	require.Nil(t, uicontext.CachedInvocation(r.reg, r.app.Panes[pane.PaneResources].Item()))
	require.NotContains(t, r.screen(), `"name": "office"`)
	r.keys("k")
	require.NotNil(t, uicontext.CachedInvocation(r.reg, r.app.Panes[pane.PaneResources].Item()), "of the selected item only")
	r.runCommand("clear all")
	require.Nil(t, uicontext.CachedInvocation(r.reg, r.app.Panes[pane.PaneResources].Item()))
	require.Contains(t, r.screen(), "Removed 1 cached result")
}

func TestPaletteOpensThingsByName(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("1").runCommand("open delete_repo")
	require.Equal(t, pane.PaneTools, r.app.Open)
	require.Equal(t, "github_delete_repo", r.app.Panes[pane.PaneTools].Item().Listed)
	r.runCommand("open standup")
	require.Equal(t, "github/standup", r.app.Panes[pane.PanePrompts].Item().Listed)
	r.runCommand("open repo://")
	require.Equal(t, registry.Template, r.app.Panes[pane.PaneResources].Item().Kind)
	require.Equal(t, "github", r.app.Panes[pane.PaneResources].Item().Server)
	r.runCommand("open confjson")
	require.Equal(t, "file:///srv/config.json", r.app.Panes[pane.PaneResources].Item().Name)
	r.runCommand("open zzzzz")
	require.Contains(t, r.screen(), "No entry named zzzzz.")
}

func TestPaletteSearchesManyThingsInACommand(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "a")
	r.setReady("a")
	items := make([]string, list.MaxSyncRows+500)
	for i := range items {
		items[i] = fmt.Sprintf(`{"uri":"x://thing-%05d","name":"n"}`, i)
	}
	r.setList("a", registry.Resource, items...)
	r.keys("4 /").typeText("00001").keys("enter :").typeText("open ")
	slow := r.app.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("thing-0")})
	require.Contains(t, r.screen(), "searching…")
	cmd := r.app.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("2999")})
	r.run(slow)
	require.NotContains(t, r.screen(), "thing-00002", "outdated answers must be ignored")
	r.app.Update(keyOf("enter"))
	require.Len(t, r.app.Dialogs, 1, "it waits for the answer")
	r.run(cmd)
	require.Empty(t, r.app.Dialogs)
	require.Equal(t, "x://thing-02999", r.app.Panes[pane.PaneResources].Item().Name, "also behind a filter that runs in a command")
	r.keys(":").typeText("open thing")
	r.pressKeys(slices.Repeat([]tea.KeyType{tea.KeyDown}, dialog.MaxFoundEntries-1)...)
	last := r.line("│> ")
	r.pressKeys(tea.KeyDown)
	require.Equal(t, last, r.line("│> "))
}

func TestPaletteRemembersCommands(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).runCommand("tools").runCommand("server github").runCommand("tools")
	value := func() string { return r.app.Dialogs[0].(*palette.Dialog).Input.Value() }
	r.keys(": up")
	require.Equal(t, "tools", value())
	r.keys("up")
	require.Equal(t, "server github", value(), "each must be listed once")
	r.keys("down down")
	require.Empty(t, value())
	r.typeText("x").pressKeys(tea.KeyCtrlUp)
	require.Equal(t, "tools", value())
	r.keys("enter")
	require.Equal(t, pane.PaneTools, r.app.Open)
}

func TestPaletteTakesClicks(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys(":").typeText("prompts")
	r.screen()
	rect := r.app.FrontRect
	r.send(tea.MouseMsg{X: rect.X + 5, Y: rect.Y + 2, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
	require.Equal(t, pane.PanePrompts, r.app.Open)
	require.Empty(t, r.app.Dialogs)
}

func TestOpenTakesNoLettersOfTwoNames(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "memory").setReady("memory")
	r.setList("memory", registry.Tool, `{"name":"open_nodes"}`)
	r.keys("1").runCommand("open nope")
	require.Contains(t, r.screen(), "No entry named nope.")
	require.Equal(t, pane.PaneServers, r.app.Open)
	r.keys("esc").runCommand("open opnod")
	require.Equal(t, "memory_open_nodes", r.app.Panes[pane.PaneTools].Item().Listed)
}

func TestOpenAsksBeforeItOpensWhatWasHardlyMeant(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "notes").setReady("notes")
	r.setList("notes", registry.Prompt, `{"name":"improve_note"}`, `{"name":"improve_all"}`)
	r.keys("1").runCommand("open nope")
	require.Contains(t, r.screen(), "! no entry named nope; press enter again for notes/")
	require.Equal(t, pane.PaneServers, r.app.Open)
	r.keys("enter")
	require.Equal(t, pane.PanePrompts, r.app.Open)
	r.keys("1 :").typeText("open nope").keys("down enter")
	require.Equal(t, pane.PanePrompts, r.app.Open, "an explicit choice must be used")
}

// cursorRow returns the row under the palette's cursor.
func cursorRow(r *testUI) string { return strings.Trim(r.line("│> "), "│ ") }

func newPaletteUI(t *testing.T) *testUI { return newExampleUI(t, 80, 24, plainEnv) }

func TestPaletteOpensAToolsFormFromAnywhere(t *testing.T) {
	t.Parallel()
	r := newPaletteUI(t).keys("5 :").typeText("delete_repo")
	require.Regexp(t, `^> tool +github_delete_repo +github$`, cursorRow(r))
	r.keys("enter")
	require.Equal(t, "Call github_delete_repo", r.app.Dialogs[0].Heading())
	require.Equal(t, "github_delete_repo", r.app.Panes[pane.PaneTools].Item().Listed)
	r.keys("esc esc")
	require.Equal(t, pane.PaneLogs, r.app.Open, "Esc must go back")
}

func TestPaletteOpensAFormFromDialogs(t *testing.T) {
	t.Parallel()
	r := newPaletteUI(t).keys("2 / forecast enter c").typeText("Oslo").keys("ctrl+s esc esc")
	for _, keys := range []string{"0", "w", "B", "H", "H F", "V"} {
		r.keys(keys + " ctrl+p").typeText("github_delete_repo").keys("enter")
		require.Len(t, r.app.Dialogs, 1, keys)
		require.Equal(t, "Call github_delete_repo", r.app.Dialogs[0].Heading(), keys)
		r.keys("esc esc 2")
	}
	r.keys("0 : esc")
	require.Equal(t, "Clients 3", r.app.Dialogs[0].Heading(), "esc goes back to the dialog")
	r.keys("esc c").typeText("Ber").keys("ctrl+p")
	require.Len(t, r.app.Dialogs, 1, "a form with input stays in front")
}

func TestPaletteSaysWhyNoCallIsPossible(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv, ofRecording).keys(":").typeText("github_delete_repo").keys("enter")
	require.Contains(t, r.screen(), "recording")
	require.NotContains(t, r.screen(), "[ call ]")
}

func TestPaletteReadsGetsAndExpandsByName(t *testing.T) {
	t.Parallel()
	r := newPaletteUI(t).keys("1 :").typeText("config.json")
	require.Regexp(t, `^> resource mcp://files/file:///srv/config.json +files$`, cursorRow(r))
	r.keys("enter")
	require.Contains(t, strings.Join(r.backend.sentRequests(), "\n"), "resources/read")
	r.keys("1").runCommand("github/standup")
	require.Equal(t, pane.PanePrompts, r.app.Open)
	r = newPaletteUI(t).runCommand("repo://")
	require.Contains(t, r.app.Dialogs[0].Heading(), "Expand ")
	r = newPaletteUI(t).keys("2 :").typeText("github")
	require.Regexp(t, `^> server +github`, cursorRow(r))
	r.keys("enter")
	require.Equal(t, pane.PaneServers, r.app.Open)
}

func TestPaletteListsTheLastUsedFirst(t *testing.T) {
	t.Parallel()
	r := newPaletteUI(t).runCommand("prompts").runCommand("server github").runCommand("delete_repo").keys("esc esc :")
	var rows []string
	for range 4 {
		rows = append(rows, strings.Join(strings.Fields(cursorRow(r))[1:4], " "))
		r.keys("down")
	}
	require.Equal(t, []string{"tool github_delete_repo github", "command server github", "command prompts Go", "command servers Go"}, rows)
	r.keys("esc : enter")
	require.Equal(t, "Call github_delete_repo", r.app.Dialogs[0].Heading())
}

func TestPalettePrefersTheLastUsedAmongEquals(t *testing.T) {
	t.Parallel()
	r := newPaletteUI(t).keys("2 :").typeText("s")
	first := cursorRow(r)
	require.NotContains(t, first, "setup")
	r.keys("esc").runCommand("setup").keys("esc :").typeText("s")
	require.Contains(t, cursorRow(r), "setup")
}

func TestPaletteChangesSettingsOfTheUI(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, colourEnv).keys(":").typeText("light")
	require.Regexp(t, `^> setting +theme light`, cursorRow(r))
	r.keys("enter")
	require.Equal(t, "light", r.app.Theme.Variant)
	r.runCommand("layout hidden")
	require.Equal(t, "hidden", r.app.PlaceName())
	r.runCommand("layout nowhere")
	require.Contains(t, r.screen(), "! unknown place nowhere; choose auto, beside, below, hidden")
}

func TestPaletteFindsKeysOfTheConfig(t *testing.T) {
	t.Parallel()
	r := newPaletteUI(t)
	r.app.o.ConfigKeys = func() []report.ConfigKey {
		return []report.ConfigKey{
			{Path: "record", Text: "Recordings.", Example: "record: true\n"},
			{
				Path: "servers.NAME.call_timeout", Text: "Maximum time.", Values: "duration", Default: "10m", Example: "servers:\n  NAME:\n    call_timeout: 10m\n",
				Set: []report.ConfigLine{{Path: "servers.web\x1b[2J.call_timeout", Line: 12}},
			},
		}
	}
	r.keys(":").typeText("call_timeout")
	require.Contains(t, cursorRow(r), "line 12: Maximum time.")
	require.NotContains(t, r.app.View(), "\x1b[2J")
	r.keys("enter")
	require.Equal(t, []string{"file /etc/goblin/work.yaml:12: "}, r.term.opened)
	r.keys(":").typeText("record").keys("down")
	require.Regexp(t, `^> config +record +Recordings.`, cursorRow(r), "the command of that name must come first")
	r.keys("esc :").typeText("call_timeout").keys("down enter")
	require.Contains(t, r.screen(), "Maximum time.")
	r.keys("c")
	require.Equal(t, "servers:\n  NAME:\n    call_timeout: 10m\n", r.clipboard())
	r.keys("enter")
	require.Equal(t, "file /etc/goblin/work.yaml:1: ", r.term.opened[1])
}

func TestPaletteDrawsHostileNames(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 40, 10, "x\x1b[31m").setReady("x\x1b[31m")
	r.reg.SetList("x\x1b[31m", registry.Tool, [][]byte{[]byte(`{"name":"evil\u001b[2J\u202e世界\nline ` + strings.Repeat("long", 200) + `"}`)})
	r.keys(":").typeText("evil")
	require.NotContains(t, r.app.View(), "\x1b[2J")
	require.Contains(t, r.screen(), "> x__31m_evil_")
}

func TestAClosedPaletteRunsNothing(t *testing.T) {
	t.Parallel()
	r := newPaletteUI(t).keys("1 :")
	search := r.app.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("promp")})
	answer := search()
	r.keys("enter esc")
	require.Empty(t, r.app.Dialogs)
	r.send(answer, 0)
	require.Equal(t, pane.PaneServers, r.app.Open, "Enter waited for the search")
}

func TestColorsOfTheConfigApplyAtOnce(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, colourEnv)
	r.runCommand("theme dark")
	r.reg.SetStyleColors(map[string]termtext.StyleColor{"accent": {Dark: "201", Light: "54"}})
	r.refresh(registry.Servers)
	require.Contains(t, r.app.View(), "\x1b[1;38;5;201mgoblin")
	r.runCommand("theme light")
	require.Contains(t, r.app.View(), "\x1b[1;38;5;54mgoblin")
	r.runCommand("theme none")
	require.NotContains(t, r.app.View(), "38;5;")
}
