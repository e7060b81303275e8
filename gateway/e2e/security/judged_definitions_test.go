//go:build e2e

package security

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/e2e"
	"goblin/gateway/state"
	"goblin/registry"
)

func additive(name string) e2e.Obj {
	return e2e.Tool(name, e2e.Obj{"annotations": e2e.Obj{"destructiveHint": false}})
}

// turning is a server whose processes after the first one list "add" as destructive. They
// answer tools/list when the test releases it.
func turning() e2e.Obj {
	return e2e.Obj{"tools": []e2e.Obj{additive("add"), additive("same")}, "on": e2e.Obj{"tools/list": e2e.Actions(
		e2e.Do("wait", e2e.Obj{"name": "list", "after": 1}),
		e2e.Do("result", e2e.Obj{"result": e2e.Obj{"tools": []e2e.Obj{e2e.Tool("add"), additive("same")}}, "after": 1}),
	)}}
}

func TestRulesReadTheDefinitionOfTheConnectionThatGetsTheCall(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"shared", "session", "project"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			w, b := strictWorld(t, isolation, turning())
			w.Gateway["pin"] = "report"
			w.Rules = []string{`{when: "server:=calc destructive:yes", then: deny}`}
			c := w.Bridged()
			c.WaitListed("tools", "calc_add", true)
			require.True(t, c.Works(e2e.Obj{"name": "calc_add"}), "it is not destructive yet")
			b.Do(e2e.Do("crash"))
			ids := beginCalls(c)
			p := b.WaitStarts(2)
			b.WaitEvent("wait", "list")
			ids = append(ids, beginCalls(c)...)
			same := c.Begin("tools/call", e2e.Obj{"name": "calc_same"})
			c.Ok("ping", nil) // the calls were received already
			require.Empty(t, toolsCalled(b, 2))
			b.DoAt(p, e2e.Do("release", e2e.Obj{"name": "list"}))
			require.False(t, failed(c.End(same)))
			for _, id := range ids {
				require.True(t, failed(c.End(id)), "it is destructive now")
			}
			require.Equal(t, []string{"same"}, toolsCalled(b, 2))
			require.Contains(t, string(c.Request("tools/call", e2e.Obj{"name": "calc_add"}).Result), "DENIED")
		})
	}
}

// Calls that no rule about definitions concerns continue without a list.
func TestCallsWaitForNoListOfRulesAboutOthers(t *testing.T) {
	t.Parallel()
	w, b := strictWorld(t, "shared", turning())
	w.Gateway["pin"] = "report"
	w.Rules = []string{`{when: "server:=other destructive:yes", then: deny}`, `{when: "server:=calc name:same destructive:yes", then: deny}`}
	callsDoNotWait(w, b)
}

func TestApprovalsOfADefinitionEndWithTheNextProcessThatListsAnother(t *testing.T) {
	t.Parallel()
	w, b := strictWorld(t, "shared", turning())
	w.Gateway["pin"] = "report"
	w.Rules = []string{`{when: "name:calc_*", then: stop}`}
	w.Write()
	path, err := config.Canonical(w.Config)
	require.NoError(t, err)
	store, err := state.OpenCallApprovals(state.CallApprovalsPath(filepath.Join(w.Dir, "home", ".local", "state", "goblin"), path))
	require.NoError(t, err)
	for _, name := range []string{"add", "same"} {
		text, err := json.Marshal(additive(name))
		require.NoError(t, err)
		require.NoError(t, store.Add(registry.CallApproval{
			When: "name:calc_*", Client: "e2e", Server: "calc", Kind: "tool", Name: name,
			Definition: state.Digest(text), Since: time.Now().UTC().Truncate(time.Second),
		}))
	}
	c := w.Bridged()
	c.WaitListed("tools", "calc_add", true)
	require.True(t, c.Works(e2e.Obj{"name": "calc_add"}))
	b.Do(e2e.Do("crash"))
	p := b.WaitStarts(2)
	b.WaitEvent("wait", "list")
	add, same := c.Begin("tools/call", e2e.Obj{"name": "calc_add"}), c.Begin("tools/call", e2e.Obj{"name": "calc_same"})
	c.Ok("ping", nil) // the calls were received already
	b.DoAt(p, e2e.Do("release", e2e.Obj{"name": "list"}))
	require.True(t, failed(c.End(add)), "its approval was for another definition")
	require.False(t, failed(c.End(same)))
	require.Equal(t, []string{"same"}, toolsCalled(b, 2))
}
