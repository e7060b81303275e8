package tui

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/report"
	"goblin/tui/pane"
)

func TestNothingIsSavedOrCopiedOfWhatWasNotReadYet(t *testing.T) {
	t.Parallel()
	for where, why := range map[string]string{
		"4 / config enter": "it was not read yet; enter reads it",
		"4 t":              "it was not read yet; enter reads it",
		"2":                "it was not called yet; c calls it",
		"3":                "it was not fetched yet; enter gets it",
	} {
		for _, key := range []string{"W", "Y"} {
			r := office(t, 120, 40, plainEnv).keys(where + " " + key)
			require.Contains(t, r.screen(), "! "+why, where)
			require.Empty(t, r.app.Dialogs)
			require.Empty(t, r.term.written.String())
		}
	}
	r := office(t, 120, 40, plainEnv)
	delete(r.backend.answers, "resources/read")
	r.keys("4 / config enter enter W")
	require.Contains(t, r.screen(), "! there is only an error; r tries again")
}

func TestKeysTypedAheadChooseInListsAndAnswerNothing(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4").text("Vj").keys("enter")
	require.Equal(t, "coding", r.app.Context.Profile)
	require.Empty(t, r.app.Dialogs)
	r.text("0jj")
	require.Equal(t, "Clients", strings.Fields(r.app.Dialogs[0].Heading())[0])
	r.keys("esc 1").text("xy")
	require.Contains(t, r.screen(), "Disable files?")
	require.Empty(t, r.backend.acts, "nobody has seen the question")
	r.keys("n").text("0Dy")
	require.Len(t, r.app.Dialogs, 2)
	require.Empty(t, r.backend.acts, "nor that")
}

func TestADisabledServerSaysWhatEnablesIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 40, "notes")
	r.reg.SetState("notes", registry.ServerState{State: registry.StateDisabled})
	r.changed(registry.Servers).keys("1 enter")
	require.Regexp(t, `x enables it\. *│`, r.screen())
	require.NotContains(t, r.screen(), "as long as")
}

func TestWhatOnlyPeopleWereAskedInHasNoTime(t *testing.T) {
	t.Parallel()
	r := office(t, 200, 45, plainEnv)
	r.backend.usage.All.P50, r.backend.usage.All.P95 = 0, 0
	r.backend.usage.Clients = r.backend.usage.Clients[:1]
	c := &r.backend.usage.Clients[0]
	c.P50, c.P95 = 0, 0
	r.keys("6 ]")
	require.Regexp(t, `claude-code.*1100`, r.screen())
	require.NotContains(t, r.screen(), "0.0 ms")
	require.Contains(t, r.line("spread"), "no call was timed yet")
}

func TestTheRangeOfTheSpreadIsThereWhole(t *testing.T) {
	t.Parallel()
	for _, w := range []int{80, 100, 120, 160, 200, 250} {
		r := office(t, w, 40, plainEnv)
		r.backend.usage.All.P95, r.backend.usage.Latency = 1377, []report.Bin{{UpTo: 2, Calls: 1}, {UpTo: 1638, Calls: 9}}
		require.Regexp(t, `█( 2 ms to 1638 ms)? +half within 12 ms, 95 of 100 1377 ms +│`, r.keys("6").line("spread"), w)
		require.Contains(t, r.keys("F").line("spread"), map[bool]string{true: "▂█ 2 ms to 1638 ms  "}[w > 80], w)
	}
}

func TestAnItemWithoutRequestsSaysSo(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 120, 40).keys("2 / list enter i")
	require.Contains(t, r.screen(), "There are no requests about it yet.")
	require.Contains(t, r.screen(), "esc goes back.")
	require.NotContains(t, r.screen(), "Nothing matches")
	r.keys("/").text("nonsense").keys("enter")
	require.Contains(t, r.screen(), "Nothing matches")
	r.keys("esc esc 2 esc / list enter i esc")
	require.Equal(t, pane.PaneTools, r.app.Open)
}

func TestOpenTakesNoLettersOfTwoNames(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 40, "memory").ready("memory")
	r.list("memory", registry.Tool, `{"name":"open_nodes"}`)
	r.keys("1").command("open nope")
	require.Contains(t, r.screen(), "Nothing is called nope.")
	require.Equal(t, pane.PaneServers, r.app.Open)
	r.keys("esc").command("open opnod")
	require.Equal(t, "memory_open_nodes", r.app.Panes[pane.PaneTools].Item().Listed)
}

func TestOpenAsksBeforeItOpensWhatWasHardlyMeant(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 40, "notes").ready("notes")
	r.list("notes", registry.Prompt, `{"name":"improve_note"}`, `{"name":"improve_all"}`)
	r.keys("1").command("open nope")
	require.Contains(t, r.screen(), "! nothing is called nope; enter once more opens notes/")
	require.Equal(t, pane.PaneServers, r.app.Open)
	r.keys("enter")
	require.Equal(t, pane.PanePrompts, r.app.Open)
	r.keys("1 :").text("open nope").keys("down enter")
	require.Equal(t, pane.PanePrompts, r.app.Open, "who chooses means it")
}

func TestWhatANoticeLeavesOutIsInSight(t *testing.T) {
	t.Parallel()
	const more = " (and 2 more: goblin validate)"
	for _, w := range []int{80, 90, 120} {
		r := office(t, w, 30, plainEnv)
		r.reg.SetNotice(`config not reloaded: /etc/goblin/work.yaml:3: unknown key "comand" in server "files"; did you mean "command"? Keys are described in the manual` + more)
		r.changed(registry.Servers)
		line := r.line("config not reloaded: work.yaml:3:")
		require.True(t, strings.HasSuffix(line, "…"+more), line)
	}
}

func TestReasonsInHelpAreWhole(t *testing.T) {
	t.Parallel()
	r := office(t, 80, 24, plainEnv)
	r.app.Demo = true
	r.keys("1 ?").text("add a server")
	require.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(r.screen(), "│", "")), " "), "(the demo has no config; goblin add NAME -- COMMAND makes one)")
}

func TestSetupTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	r := office(t, 80, 24, plainEnv).command("setup")
	require.Regexp(t, `─ 20/\d+ ─`, r.line(" Setup "))
	r.keys("G")
	require.Regexp(t, `─ (\d+)/(\d+) ─`, r.line(" Setup "))
	require.NotRegexp(t, `─ 20/\d+ ─`, r.line(" Setup "))
	require.NotRegexp(t, `\d/\d`, office(t, 120, 60, plainEnv).command("setup").line(" Setup "))
}
