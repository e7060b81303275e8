package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/e2e"
	"goblin/registry"
)

func TestRulesOfTheConfigChangeWhileCallsWait(t *testing.T) {
	t.Parallel()
	r := guard(t)
	state := func() []registry.RuleEntry { return r.i.Registry().Rules().Rules }
	configure := func(texts ...string) {
		t.Helper()
		cfg := *r.i.config()
		var err error
		cfg.Rules, err = config.ParseRules(texts)
		require.NoError(t, err)
		r.i.applyRules(&cfg)
	}
	const freeze = `{when: "name:s_read", then: freeze}`
	configure(stopDelete, freeze)
	open(t, r.i, nil)
	r.begin(1, "tools/call", deleteCall)
	stopped := r.stopped(1)
	r.begin(2, "tools/call", `{"name":"s_read"}`)
	require.Eventually(t, func() bool { return state()[1].Hits == 1 }, patience, time.Millisecond)
	before := state()[1]

	added := r.add(`{when: "server:other", then: drop}`)
	configure(freeze, `{when: "name:s_read client:x", then: deny}`)
	require.Equal(t, stopped, r.stopped(1), "the removed rule's stop stays")
	now := state()
	require.Len(t, now, 3)
	require.Equal(t, []string{registry.RuleFromUI, registry.RuleFromConfig, registry.RuleFromConfig}, []string{now[0].Origin, now[1].Origin, now[2].Origin})
	require.Equal(t, added, now[0].ID)
	require.Equal(t, "server:other matches no server of the config", now[0].Problem)
	require.Equal(t, before, now[1], "an unchanged rule keeps its state")
	require.Contains(t, now[2].Problem, "never applies, because rule ")
	require.NoError(t, r.i.SetRuleEnabled(now[1].ID, false))
	require.Empty(t, state()[2].Problem, "a disabled rule hides no other")
	require.Equal(t, "2", string(r.c.answer().ID), "the frozen call continues")

	configure()
	require.Len(t, state(), 1)
	r.decide(registry.Decision{Action: registry.DecideSend})
	require.Equal(t, "1", string(r.c.answer().ID))
	require.Equal(t, 2, r.reached("tools/call"))
}

// TestEditedRuleLeavesNoGap edits a rule during calls that each version of it denies.
func TestEditedRuleLeavesNoGap(t *testing.T) {
	t.Parallel()
	r := guard(t)
	versions := [2]config.Config{*r.i.config(), *r.i.config()}
	for n := range versions {
		var err error
		versions[n].Rules, err = config.ParseRules([]string{fmt.Sprintf(`{when: "name:s_delete body:x", then: deny, text: version %d}`, n)})
		require.NoError(t, err)
	}
	r.i.applyRules(&versions[0])
	done, edited := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(edited)
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			default:
				r.i.applyRules(&versions[n%2])
			}
		}
	}()
	params := `{"name":"s_delete","arguments":{"path":"` + strings.Repeat("x", 20_000) + `"}}`
	for range 300 {
		deniedResult(t, r.c.ask("tools/call", params), "s")
	}
	close(done)
	<-edited
	require.Zero(t, r.reached("tools/call"))
}

func TestArgumentsHideNothingFromARule(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "limits: {depth: 10000}", fake{name: "s", script: guarded})
	r := &rig{t: t, i: i, log: logs["s"], c: join(t, i)}
	r.c.ask("tools/list", `{}`)
	r.add(`{when: "arg.paths:/etc/*", then: deny}`)
	for _, others := range []string{strings.Repeat(`"/tmp/a",`, 5000), strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + ",", `"\ud800",`} {
		deniedResult(t, r.c.ask("tools/call", `{"name":"s_delete","arguments":{"paths":[`+others+`"\/etc\/passwd\udc00"]}}`), "s")
	}
	require.Zero(t, r.reached("tools/call"))
}

// TestFilterReplacesRuleWithoutGap replaces a rule by a filter of tools and back.
func TestFilterReplacesRuleWithoutGap(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "goblin.yaml")
	i, logs := startWith(t, "", func(o *Options) { o.Config.Path = path }, fake{name: "s", script: guarded})
	r := &rig{t: t, i: i, log: logs["s"], c: join(t, i)}
	edit := func(filter, rules string) {
		server := fmt.Sprintf("servers:\n  s: {command: %q, args: [%q]%s}\n", e2e.TestServer, strings.Replace(r.log, ".log", ".json", 1), filter)
		if os.WriteFile(path, []byte(server+rules), 0o600) != nil || i.ReloadAll(context.Background()) != nil {
			t.Error("cannot reload")
		}
	}
	const rule = "rules: [{when: name:s_delete, then: deny}]\n"
	edit("", rule)
	require.Len(t, i.Registry().Rules().Rules, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			edit(", tools: {deny: [delete]}", "")
			edit("", rule)
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			r.c.ask("tools/call", deleteCall)
		}
	}
	require.Zero(t, r.reached("tools/call"))
}
