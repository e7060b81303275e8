//go:build e2e

package calls

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// dangerous is a server whose tool a rule guards.
func dangerous() e2e.Obj {
	return e2e.Obj{
		"tools": []e2e.Obj{taskTool("wipe", "optional"), e2e.Tool("stat")}, "prompts": []e2e.Obj{e2e.Prompt("p")},
		"tasks": e2e.Obj{"wipe": e2e.Obj{}},
	}
}

// TestNoPathToAServerAvoidsARule covers paths of the real program; see also package stack.
func TestNoPathToAServerAvoidsARule(t *testing.T) {
	t.Parallel()
	for _, front := range []string{"stdio", "http"} {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["meta_tools"] = []string{"call_tool", "execute_lua"}
			b := w.Backend("b", dangerous())
			w.Rules = []string{`{when: "name:=b_wipe", then: deny, text: Ask first.}`}
			var c *e2e.Client
			if front == "http" {
				c = w.Served().Client(true)
			} else {
				c = w.Bridged()
			}
			wipe := func(name string, more ...e2e.Obj) e2e.Message {
				return c.Request("tools/call", e2e.Merge(e2e.Obj{"name": name, "arguments": e2e.Obj{}}, more))
			}
			script := e2e.Obj{"arguments": e2e.Obj{"script": "local ok, err = pcall(b.wipe, {}) return tostring(ok) .. tostring(err)"}}
			for what, m := range map[string]e2e.Message{
				"listed":    wipe("b_wipe"),
				"bare":      wipe("wipe"),
				"slash":     wipe("b/wipe"),
				"task":      wipe("b_wipe", e2e.Obj{"task": e2e.Obj{"ttl": 1000}}),
				"call_tool": wipe("call_tool", e2e.Obj{"arguments": e2e.Obj{"name": "wipe", "arguments": e2e.Obj{}}}),
				"script":    wipe("execute_lua", script),
			} {
				require.Contains(t, string(m.Result)+string(m.Error), "Ask first.", what)
				if what == "task" {
					require.Equal(t, "DENIED", e2e.ParseError(t, m).Kind(), what)
				} else if what != "script" {
					require.Equal(t, "DENIED", e2e.Str(m.Result, "_meta", "goblin/error", "code"), what)
				}
			}
			require.Zero(t, b.Count("tools/call"))
			c.Ok("tools/call", e2e.Obj{"name": "b_stat", "arguments": e2e.Obj{}})
			require.Contains(t, w.Succeeds("traffic", "b_wipe"), "[rule 1: denied]")
		})
	}
}

func TestUIThatIsKilledLeavesTheDefault(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", dangerous())
	w.Rules = []string{
		`{when: "name:=b_wipe", then: stop, timeout: 10m, text: Ask first.}`,
		`{when: "name:=b_stat", then: stop, timeout: 10m, default: send}`,
	}
	c := w.Bridged()
	p := w.Pane(100, 30)
	p.Goblin("")
	p.Shows("clients 1")
	w.WaitUIs(1)
	wipe := c.Begin("tools/call", e2e.Obj{"name": "b_wipe", "arguments": e2e.Obj{}, "_meta": e2e.Obj{"progressToken": "wipe"}})
	stat := c.Begin("tools/call", e2e.Obj{"name": "b_stat", "arguments": e2e.Obj{}, "_meta": e2e.Obj{"progressToken": "stat"}})
	gone := c.Begin("tools/call", e2e.Obj{"name": "b_wipe", "arguments": e2e.Obj{}})
	c.Wait("progress of both", func() bool {
		seen := map[string]bool{}
		for _, n := range c.Notes {
			if strings.Contains(n.Raw, "waiting for the user") {
				seen[e2e.Str(n.Params, "progressToken")] = true
			}
		}
		return seen["wipe"] && seen["stat"]
	})
	c.Ok("prompts/get", e2e.Obj{"name": "b/p"})
	c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(gone)})
	require.Zero(t, b.Count("tools/call"))
	p.Signal(syscall.SIGKILL)
	require.Equal(t, "DENIED", e2e.Str(c.End(wipe).Result, "_meta", "goblin/error", "code"))
	require.Nil(t, c.End(stat).Error)
	require.Equal(t, 1, b.Count("tools/call"))
	e2e.Eventually(t, "the records", func() bool {
		steps := strings.Join(ruleSteps(t, w), ", ")
		return strings.Contains(steps, "stopped, the UI closed, denied by default") && strings.Contains(steps, "sent by default") && strings.Contains(steps, "the client no longer waits")
	})
}

// TestRequestsWithoutAnAnswerDoNotHoldUpTheEnd waits less than a drain of requests takes.
func TestRequestsWithoutAnAnswerDoNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", dangerous())
	s := w.Serve("--rule", `{when: "name:=b_wipe", then: drop}`, "--rule", `{when: "name:=b_stat", then: freeze}`)
	c := s.RawClient()
	c.Init()
	c.Begin("tools/call", e2e.Obj{"name": "b_wipe", "arguments": e2e.Obj{}})
	frozen := c.Begin("tools/call", e2e.Obj{"name": "b_stat", "arguments": e2e.Obj{}})
	e2e.Eventually(t, "both", func() bool { return strings.Contains(w.Succeeds("status"), "2 matches") })
	s.Signal(syscall.SIGTERM)
	s.Ends(20 * time.Second)
	require.Equal(t, "CONNECTION_ERROR", e2e.Str(c.End(frozen).Result, "_meta", "goblin/error", "code"))
}

func TestTruncatedAnswerPassesTheBridge(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", dangerous())
	w.Rules = []string{`{when: "name:=b_stat", then: truncate}`}
	c := w.Bridged()
	c.Begin("tools/call", e2e.Obj{"name": "b_stat", "arguments": e2e.Obj{}})
	c.Wait("half a line", func() bool { return len(c.Stray) == 1 })
	c.Ok("ping", nil)
	c.Update(func() { c.Stray = nil })
}

func TestTheDefaultAppliesIfTheClientCannotAsk(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", dangerous())
	w.Rules = []string{`{when: "name:=b_stat", then: stop, ask: client, default: send}`, `{when: "name:=b_wipe", then: stop, ask: client}`}
	c := w.Pipe("stdio", "--standalone")
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	c.Reply = func(e2e.Message) (any, any) { return nil, e2e.Obj{"code": -32603, "message": "no window"} }
	c.Init()
	c.Ok("tools/call", stat)
	m := c.Request("tools/call", e2e.Obj{"name": "b_wipe", "arguments": e2e.Obj{}})
	require.Equal(t, "DENIED", e2e.Str(m.Result, "_meta", "goblin/error", "code"), "%s", m.Result)
}

// TestScriptsDoNotLoseTimeToQuestions answers later than the limit of the script.
func TestScriptsDoNotLoseTimeToQuestions(t *testing.T) {
	t.Parallel()
	e2e.WithGrowingLimit(t, func(limit time.Duration) string {
		w := e2e.NewWorld(t)
		w.Gateway["meta_tools"] = []string{"execute_lua"}
		w.Lua = e2e.Obj{"timeout": limit.String()}
		b := w.Backend("b", e2e.Filesystem())
		w.Rules = []string{`{when: "name:=b_stat", then: stop, ask: client}`}
		c := w.Pipe("stdio", "--standalone")
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		c.Reply = func(ask e2e.Message) (any, any) {
			time.Sleep(2 * limit)
			return e2e.Obj{"action": "accept", "content": e2e.Obj{"decision": "allow for this session"}}, nil
		}
		c.Init()
		for range 2 {
			if m := c.Request("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": "return b.stat{}"}}); m.Failed() {
				return m.Raw
			}
		}
		require.Len(t, c.Asks, 1)
		require.Equal(t, 2, b.Count("tools/call"))
		return ""
	})
}
