//go:build e2e

package calls

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/e2e"
	"goblin/gateway/state"
	"goblin/registry"
)

var stat = e2e.Obj{"name": "b_stat", "arguments": e2e.Obj{}}

// denied returns the text of a refused call.
func denied(c *e2e.Client) string {
	m := c.Request("tools/call", stat)
	require.Equal(c.T, "DENIED", e2e.Str(m.Result, "_meta", "goblin/error", "code"), "%s", m.Result)
	return e2e.Str(m.Result, "content", 0, "text")
}

// ruleSteps returns the steps of rules in the traffic of the daemon.
func ruleSteps(t *testing.T, w *e2e.World) (steps []string) {
	t.Helper()
	for line := range strings.Lines(w.Succeeds("traffic", "--json", "method:tools/call")) {
		var l struct{ Rules []registry.RuleEvent }
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		for _, s := range l.Rules {
			steps = append(steps, s.Text)
		}
	}
	return steps
}

func TestRulesOfTheCommandLineApplyOverHTTP(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	w.Rules = []string{`{when: "name:b_stat", then: deny, text: By the config.}`}
	c := w.Serve(
		"--rule", `{when: "name:stat server:=b", then: fail, code: -32000, text: Index is down, count: 1}`,
		"--rule", `{when: "name:b_stat", then: answer, result: {content: [{type: text, text: canned}]}, count: 1}`,
		"--rule", `{when: "name:move", then: delay, delay: 30ms}`,
		"--rule", `{when: "name:b_stat", on: answer, then: drop}`,
	).Client(false)

	fault := c.Fault("tools/call", stat)
	require.Equal(t, -32000, fault.Code)
	require.Equal(t, "Index is down", fault.Message)
	require.Equal(t, "canned", c.CallText("b_stat", e2e.Obj{}))
	require.Contains(t, denied(c), "By the config.")
	require.Zero(t, b.Count("tools/call"), "no call reached the server")

	c.Ok("tools/call", e2e.Obj{"name": "b_move", "arguments": e2e.Obj{}})
	require.Contains(t, ruleSteps(t, w), "delayed 30 ms")

	e2e.Eventually(t, "the status", func() bool {
		var status struct {
			Rules struct{ Total, Disabled, Matches int }
		}
		require.NoError(t, json.Unmarshal([]byte(w.Succeeds("status", "--json")), &status))
		return status.Rules == struct{ Total, Disabled, Matches int }{5, 2, 4}
	})
	require.Contains(t, w.Succeeds("status"), "rules    5 rules (2 disabled), 4 matches")
}

func TestRulesOfTheCommandLineApplyOverStdio(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	c := w.Pipe("stdio", "--standalone", "--rule", `{when: "client:e2e method:tools/call", then: fail, count: 2}`,
		"--rule", `{when: "client:raw method:initialize", then: deny}`)
	require.Equal(t, -32603, c.Fault("initialize", json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}`)).Code)
	c.Init()
	for range 2 {
		require.Equal(t, -32603, c.Fault("tools/call", stat).Code)
	}
	c.Ok("tools/call", stat)
}

func TestRulesAnswerWithATextOrThePreviousAnswer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Merge(e2e.Filesystem(), []e2e.Obj{{"on": e2e.Obj{"tools/call stat": []e2e.Obj{{"do": "count"}}}}}))
	c := w.Pipe("stdio", "--standalone", "--rule", `{when: "name:b_stat method:tools/call", then: answer, text: canned, count: 1}`,
		"--rule", `{when: "method:tools/list", then: answer, text: canned}`, "--rule", `{when: "name:b_stat", on: answer, then: stale}`)
	c.Init()
	require.Equal(t, "canned", c.CallText("b_stat", e2e.Obj{}))
	require.Contains(t, c.Fault("tools/list", nil).Message, "results of tools/list have none. Add a result to the rule.")
	first := c.CallText("b_stat", e2e.Obj{})
	require.Equal(t, first, c.CallText("b_stat", e2e.Obj{}), "the answer to the previous call")
	require.NotEqual(t, first, c.CallText("b_stat", e2e.Obj{}))
	require.Equal(t, 3, b.Count("tools/call"))
}

func TestWrongRulesPreventTheStart(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	const good = `{when: "name:x", then: deny}`
	for _, c := range []struct {
		want string
		args []string
	}{
		{`--rule: column 13: unknown key "thn" in the rule; did you mean "then"?`, []string{"serve", "--rule", `{when: "x", thn: deny}`}},
		{`--rule: rule 2: column 19: "then" in the rule must be stop`, []string{"serve", "--rule", good, "--rule", `{when: "x", then: deni}`}},
		{`--rule: line 1: not valid YAML`, []string{"serve", "--rule", `{when: "x"`}},
		{`--rule: column 8: "when" in the rule is wrong in column 1: "client:" has no value`, []string{"serve", "--rule", `{when: "client: x", then: deny}`}},
		{`--rule needs --standalone`, []string{"stdio", "--rule", good}},
		{`--rule and --replay exclude each other`, []string{"serve", "--replay", "x.jsonl", "--rule", good}},
	} {
		out := w.Run(c.args...)
		require.Equal(t, e2e.ExitUsage, out.Code, out.Stderr)
		require.Contains(t, out.Stderr, c.want)
	}

	w.Edit(func() { w.Rules = []string{good, `{when: "name:y", then: deny, p: 2}`} })
	for _, args := range [][]string{{"serve"}, {"stdio", "--standalone"}, {"validate"}, {"call", "b_stat"}} {
		out := w.Run(args...)
		require.Equal(t, e2e.ExitConfig, out.Code, "%v: %s", args, out.Stderr)
		require.Contains(t, out.Stderr, w.Config+`:6: "p" in rules[1] must be from 0 to 1`)
	}
}

func TestRulesThatCannotWorkAreReported(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	w.Rules = []string{`{when: "server:bb", then: deny}`, `{when: "name:x", then: stop}`, `{when: "name:x client:y", then: deny}`}
	out := w.Run("validate")
	require.Zero(t, out.Code)
	require.Contains(t, out.Stderr, w.Config+`:5: warning: rules[0] server:bb matches no server of the config; did you mean "b"?`)
	require.Contains(t, out.Stderr, w.Config+`:7: warning: rules[2] never applies, because rules[1] on line 6 selects the same requests first`)

	w.Edit(func() {
		w.Rules = append(w.Rules, `{when: "name:=b_stat name:stat name:sat name:stat* -name:none", then: deny}`)
	})
	s := w.Serve("--rule", `{then: drop}`)
	e2e.Eventually(t, "the log", func() bool { return strings.Contains(s.Stderr.String(), "rule warning") })
	unknown := w.Config + `:8: rule: name:sat matches no tool or prompt; did you mean "stat"?`
	e2e.Eventually(t, "the lists", func() bool { return strings.Contains(w.Succeeds("status"), unknown) })
	status := w.Succeeds("status")
	require.Equal(t, 1, strings.Count(status, "rule: name:"), status)
	require.Contains(t, w.Run("validate").Stderr, `:8: warning: rule: name:sat matches no tool or prompt`)
	require.Contains(t, status, w.Config+`:5: rule 2 server:bb matches no server of the config`)
	require.Contains(t, status, `--rule: rule 1 matches every request`)
}

func TestEditedRulesApplyAtOnce(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.Ok("tools/call", stat)
	reloads := 0
	edit := func(rules ...string) {
		t.Helper()
		w.Edit(func() { w.Rules = rules })
		reloads++
		e2e.Eventually(t, "the reload", func() bool { return strings.Count(w.DaemonLog(), "config reloaded") == reloads })
	}
	const first, second = `{when: "name:move", then: deny}`, `{when: "name:b_stat", then: deny, text: No. 2}`
	edit(first, second)
	require.Contains(t, denied(c), "No. 2")
	sent := b.Count("tools/call")

	// A mistake changes nothing.
	w.Edit(func() { w.Rules = []string{first, `{when: "name:b_stat", then: deny, text: No. 3, dely: 1s}`} })
	e2e.Eventually(t, "the mistake", func() bool { return strings.Contains(w.Status().Notice, "config not reloaded") })
	require.Contains(t, w.Status().Notice, `:6: unknown key "dely" in rules[1]; did you mean "delay"?`)
	require.Contains(t, denied(c), "No. 2")

	// An unchanged rule keeps its matches at another line.
	edit(second)
	require.Contains(t, denied(c), "No. 2")
	e2e.Eventually(t, "the status", func() bool { return strings.Contains(w.Succeeds("status"), "rules    1 rule, 3 matches") })
	require.Equal(t, sent, b.Count("tools/call"))

	edit()
	c.Ok("tools/call", stat)
	require.Equal(t, sent+1, b.Count("tools/call"))
	require.NotContains(t, w.Succeeds("status"), "rules  ")
}

// approve remembers the approval of a call, as the user does in the UI.
func approve(t *testing.T, w *e2e.World, name string) (id string) {
	t.Helper()
	path, err := config.Canonical(w.Config)
	require.NoError(t, err)
	store, err := state.OpenCallApprovals(state.CallApprovalsPath(filepath.Join(w.Dir, "home", ".local", "state", "goblin"), path))
	require.NoError(t, err)
	a := registry.CallApproval{When: "name:b_*", Client: "e2e", Server: "b", Kind: "tool", Name: name, Since: time.Now().UTC().Truncate(time.Second)}
	require.NoError(t, store.Add(a))
	return state.CallApprovalID(&a)
}

func TestRememberedApprovalsAreListedAndRevoked(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	w.Rules = []string{`{when: "name:b_*", then: stop}`}
	w.Write()
	require.Equal(t, "No approvals of calls are remembered.\n", w.Succeeds("approve", "--calls"))
	id, other := approve(t, w, "stat"), approve(t, w, "move")
	table := w.Succeeds("approve", "--calls")
	require.Regexp(t, `(?m)^ID +CLIENT +SERVER +KIND +NAME +VALID +SINCE +RULE$`, table)
	require.Regexp(t, `(?m)^`+id+` +e2e +b +tool +stat +always +\S+ s ago +name:b_\*$`, table)
	require.Zero(t, b.Starts(), "no server is needed")

	for want, args := range map[string][]string{
		"need --calls":              {"approve", "--revoke", id},
		"takes no servers or tools": {"approve", "--calls", "b"},
		"exclude each other":        {"approve", "--calls", "--revoke", id, "--revoke-all"},
	} {
		out := w.Run(args...)
		require.Equal(t, e2e.ExitUsage, out.Code)
		require.Contains(t, out.Stderr, want)
	}

	// The daemon applies approvals and revocations of other processes.
	c := w.Bridged()
	c.Ok("tools/call", stat)
	require.Equal(t, 1, b.Count("tools/call"))
	out := w.Run("approve", "--calls", "--revoke", id, "--revoke", "0123456789ab")
	require.Equal(t, e2e.ExitNotFound, out.Code)
	require.Contains(t, out.Stderr, `no remembered approval "0123456789ab"; nothing was revoked`)
	require.JSONEq(t, `{"revoked": ["`+id+`"]}`, w.Succeeds("approve", "--calls", "--revoke", id, "--json"))
	require.NotEmpty(t, denied(c))
	require.Equal(t, 1, b.Count("tools/call"))

	w.Succeeds("stop")
	var left []registry.CallApproval
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("approve", "--calls", "--json")), &left))
	require.Len(t, left, 1)
	require.Equal(t, other, left[0].ID)
	require.Equal(t, "Revoked 1 approval.\n", w.Succeeds("approve", "--calls", "--revoke-all"))
	require.JSONEq(t, `[]`, w.Succeeds("approve", "--calls", "--json"))
}
