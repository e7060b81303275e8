//go:build e2e

package ui

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// showsMatch waits until the terminal matches an expression.
func showsMatch(p *e2e.Pane, expression string) string {
	found := regexp.MustCompile(expression)
	return p.Until(expression, found.MatchString)
}

func TestTheTimelineShowsWhatCallsWaitFor(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.AllowDaemon = true
	shop := w.Backend("shop", e2e.Obj{
		"tools": []e2e.Obj{
			e2e.Tool("ask"), e2e.Tool("slow"),
			{"name": "work", "inputSchema": e2e.Obj{"type": "object"}, "execution": e2e.Obj{"taskSupport": "optional"}},
		},
		"tasks": e2e.Obj{"work": e2e.Obj{}},
		"on": e2e.Obj{
			"tools/call ask": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers")),
			"tools/call slow": e2e.Actions(
				e2e.Do("progress", e2e.Obj{"n": 1}), e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("result", e2e.Obj{"result": e2e.Obj{"content": []any{}}})),
		},
	})
	c := w.Pipe("stdio")
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	c.Init()
	p := w.Pane(120, 40)
	p.Goblin("")
	p.Shows("goblin", "clients 1")
	p.Types(":timeline")
	p.Keys("Enter")
	p.Shows("[Time line]", "e2e", "initialize")

	// A call that waits for the user, from a script.
	id := c.Begin("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": `return shop.ask{}`}})
	question := c.WaitAsks(1)
	showsMatch(p, `> \w+ execute_lua .*░.* running \(user `)
	c.Answer(question, func(e2e.Message) (any, any) { return e2e.Accepted, nil })
	require.Nil(t, c.End(id).Error)
	showsMatch(p, `(?s)goblin execute_lua .*> +shop ask .*\(user .*← elicitation/create .*waits for the user`)

	// A task and its polls.
	task := e2e.Str(c.Ok("tools/call", e2e.Obj{"name": "shop_work", "arguments": e2e.Obj{}, "task": e2e.Obj{"ttl": 60000}}), "task", "taskId")
	for range 3 {
		c.Ok("tasks/get", e2e.Obj{"taskId": task})
	}
	showsMatch(p, `(?s) shop work .*\n│> +shop tasks/get .* 3 polls`)

	// A slow call with progress, which Enter opens while it runs.
	id = c.Begin("tools/call", e2e.Obj{"name": "shop_slow", "arguments": e2e.Obj{"path": "a.txt"}, "_meta": e2e.Obj{"progressToken": 1}})
	showsMatch(p, `(?s)> shop slow path=a.txt .*running.*← progress 1.*•`)
	p.Keys("Enter")
	p.Shows("No answer yet", "1/1")
	p.Keys("]")
	p.Shows(`"path": "a.txt"`)
	p.Keys("[", "Escape")
	p.Shows("[Time line]")

	// It is frozen, and continues.
	p.Types(" ")
	p.Shows("paused")
	shop.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Nil(t, c.End(id).Error)
	showsMatch(p, `> shop slow path=a.txt .* running`)
	p.Types(" ")
	showsMatch(p, `> shop slow path=a.txt .*█ [0-9.]+ m?s +│`)

	// A range filters the other tabs.
	p.Types("tt")
	p.Shows("All tabs show only")
	p.Types(":traffic")
	p.Keys("Enter")
	p.Shows("[Traffic", "shop_slow", " at:")
	p.Hides("execute_lua")
}
