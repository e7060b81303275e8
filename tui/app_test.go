package tui

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

func TestKeysTypedFastAreTakenApart(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4").typeText("jjj")
	require.Contains(t, r.line(">"), "day-01.md", "three keys in one message move three rows")
	r.typeText("/day-1")
	require.Contains(t, r.line("/ day-1"), "/ day-1", "runes after a key that opens a text field are text")
	require.Equal(t, 3, r.app.Panes[pane.PaneResources].Rows().Len())
}

func TestCursorFollowsItsItem(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / day-07 enter").keys("esc")
	require.Contains(t, r.line("> "), "day-07.md", "clearing the filter must keep the row")
	r.setList("files", registry.Resource, `{"uri":"file:///srv/aaa","name":"a"}`, `{"uri":"file:///srv/notes/day-07.md","name":"day-07.md"}`, `{"uri":"file:///srv/zzz","name":"z"}`)
	require.Contains(t, r.line("> "), "day-07.md", "a changed list must keep the row")
	r.setList("files", registry.Resource, `{"uri":"file:///srv/aaa","name":"a"}`, `{"uri":"file:///srv/zzz","name":"z"}`)
	require.Contains(t, r.line("> "), "zzz", "removing the row must keep the cursor position")
}

func TestQuittingTheDaemonsOwnScreenAsksWhenClientsAreConnected(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("q")
	require.Contains(t, r.screen(), "2 clients use this daemon.")
	r.keys("n")
	require.False(t, r.app.quitting)
	r.reg.DropSession("c1")
	r.reg.DropSession("c2")
	r.refresh(registry.Sessions).keys("q")
	require.True(t, r.app.quitting, "no client is affected, so nothing is asked")
}

func TestQuittingSaysWhoGoesOnWithoutThisProcess(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("q")
	require.NotContains(t, r.screen(), "goblin stdio", "no client is connected, so nothing is asked")
	r.keys("n")
	r.reg.DropSession("c1")
	r.reg.DropSession("c2")
	r.reg.SetSession(registry.Session{ID: "c3", Transport: "socket", Client: "cursor"})
	r.refresh(registry.Sessions).keys("q")
	require.Contains(t, r.screen(), "1 client uses this daemon.")
	require.Contains(t, r.screen(), "The next goblin stdio starts a new daemon.")
}

func TestQuittingAnotherDaemonsScreenNeverAsks(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.app.o.Daemon.Owner = false
	r.keys("ctrl+c")
	require.True(t, r.app.quitting)
}

func TestControlZIsNotBound(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	before := r.screen()
	r.keys("ctrl+z")
	require.Equal(t, before, r.screen())
	for _, b := range newTestUI(t, 80, 24, "files").app.keys {
		require.NotContains(t, b.Keys, "ctrl+z")
	}
}

func TestForeignTextCannotReachTheTerminalAsControl(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, colourEnv)
	r.setAnswer("resources/read", `{"contents":[{"uri":"x","mimeType":"text/plain","text":"a\u001b[2Jb\u0007c\u202ed\u009b5m\u200b"}]}`)
	r.keys("4 / evil enter enter")
	r.tick(time.Second)
	view := r.app.View()
	for _, bad := range []string{"\x1b]0", "\x07", "\u202e", "\x1b[2J", "\u009b", "\u200b"} {
		require.NotContains(t, view, bad)
	}
	require.Contains(t, view, `\x1b`, "shown instead")
}

func TestMouse(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	press := func(x, y int) {
		r.send(tea.MouseMsg{X: x, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
	}
	r.keys("4").screen()
	press(10, 6)
	require.Contains(t, r.line("> "), "evi", "a click selects a row")
	require.Equal(t, 2, r.app.Panes[pane.PaneResources].(*pane.Resources).All.Table.Cursor())
	r.send(tea.MouseMsg{X: 10, Y: 6, Button: tea.MouseButtonWheelDown, Action: tea.MouseActionPress}, 0)
	press(2, 1)
	require.Equal(t, pane.PaneServers, r.app.Open, "a click on a tab goes there")
	require.Contains(t, r.screen(), "[1 Servers")
	r.keys("M")
	require.Contains(t, r.screen(), "no mouse")
}

func TestDoubleClickOpens(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4").screen()
	for range 2 {
		r.send(tea.MouseMsg{X: 10, Y: 5, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
	}
	require.Equal(t, []string{`resources/read {"uri":"mcp://files/file:///srv/config.json"}`}, r.backend.sentRequests())
}

func TestDumbTerminalGetsNoStyles(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, map[string]string{"TERM": "dumb"})
	require.NotContains(t, r.app.View(), "\x1b")
}

func TestThemesCanBeWalked(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, colourEnv)
	var seen []string
	for range 4 {
		r.keys("T")
		seen = append(seen, r.app.Theme.Variant)
	}
	require.Equal(t, []string{"dark", "light", "none", "auto"}, seen)
	r = newExampleUI(t, 120, 40, plainEnv).keys("T")
	require.Equal(t, "none", r.app.Theme.Variant, "NO_COLOR still applies")
}

func TestChangesAreReadAtMostOncePerFrame(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	for range 10_000 {
		r.reg.ResourceUpdated("files", "file:///srv/config.json")
	}
	waiting := 0
	for {
		select {
		case <-r.app.changes:
			waiting++
			continue
		default:
		}
		break
	}
	require.LessOrEqual(t, waiting, 1)
	r.reg.ResourceUpdated("files", "file:///srv/config.json")
	cmd := r.app.Update(r.app.waitChanges()())
	require.NotNil(t, cmd, "the next wait must follow a pause")
	require.Contains(t, strings.Join(strings.Fields(r.screen()), " "), "Δ10k")
}

func TestEntriesOfAServerThatIsAwaySayForHowLong(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.reg.SetState("files", registry.ServerState{State: registry.StateRetrying, Since: r.clock.now()})
	r.refresh(registry.Servers).tick(40 * time.Second)
	require.Contains(t, r.keys("4").line("day-02.md"), "stale 40 s")
	require.Contains(t, r.line("srv/{+path}"), "stale 40 s")
	r.reg.SetState("github", registry.ServerState{State: registry.StateFailed, Since: r.clock.now()})
	r.refresh(registry.Servers)
	require.Contains(t, r.keys("2").line("github_search"), "stale 0 s")
	require.NotContains(t, r.line("weather_forecast"), "stale")
	require.Contains(t, r.keys("3").line("url* tone"), "stale 0 s")
}

func TestABurstAnswersNoQuestionThatNobodyHasSeen(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.typeText("qy")
	require.False(t, r.app.quitting)
	require.Len(t, r.app.Dialogs, 1)
	r.keys("n 1").typeText("xy")
	require.Empty(t, r.backend.acts)
}

func TestQuitsAtTheTopOnly(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.app.o.Daemon.Owner = false
	r.keys("4 l q")
	require.False(t, r.app.quitting)
	require.False(t, r.app.Inside)
	r.keys("q")
	require.True(t, r.app.quitting)
}

func TestTheSpinnerTurnsOnAfterTheThemeChanged(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.reg.SetState("legacy", registry.ServerState{State: registry.StateConnecting})
	r.app.Update(laterMsg(r.app.refreshClocks))
	require.True(t, r.app.isSpinning)
	tick := r.app.Spin.Tick()
	r.app.themeName = "light"
	r.app.SetTheme()
	require.NotNil(t, r.app.Update(tick), "a pending tick must stay valid")
}

func TestWhatIsHiddenInANameIsCopiedVisibly(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / evil enter y")
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(strings.TrimPrefix(r.term.written.String(), "\x1b]52;c;"), "\a"))
	require.NoError(t, err)
	require.Contains(t, string(decoded), `\u202e`)
	require.NotContains(t, string(decoded), "\u202e")
}

func TestTwoEscapesAtOnceAreTwo(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 / day enter l")
	r.send(tea.KeyMsg{Type: tea.KeyEsc, Alt: true}, 0)
	require.False(t, r.app.Inside)
	typed, _ := r.app.Panes[pane.PaneResources].Rows().FilterQuery()
	require.Empty(t, typed)
}

func TestKeysTypedAheadChooseInListsAndAnswerNothing(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4").typeText("Vj").keys("enter")
	require.Equal(t, "coding", r.app.Context.Profile)
	require.Empty(t, r.app.Dialogs)
	r.typeText("0jj")
	require.Equal(t, "Clients", strings.Fields(r.app.Dialogs[0].Heading())[0])
	r.keys("esc 1").typeText("xy")
	require.Contains(t, r.screen(), "Disable files?")
	require.Empty(t, r.backend.acts, "the dialog was never drawn")
	r.keys("n").typeText("0Dy")
	require.Len(t, r.app.Dialogs, 2)
	require.Empty(t, r.backend.acts, "this one was never drawn either")
}
