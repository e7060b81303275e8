//go:build e2e

package ui

import (
	"fmt"
	"strings"
	"testing"

	"goblin/gateway/e2e"
)

func TestReadingInASmallTerminal(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.AllowDaemon = true
	var long strings.Builder
	for i := range 500 {
		fmt.Fprintf(&long, "step %d\n", i+1)
	}
	w.Backend("shop", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("first"), e2e.Tool("second")},
		"on": e2e.Obj{"tools/call first": e2e.Actions(e2e.Do("result", e2e.Obj{"result": e2e.Obj{
			"content": []e2e.Obj{{"type": "text", "text": long.String()}},
		}}))},
	})
	c := w.Pipe("stdio")
	c.Init()
	c.Ok("tools/call", e2e.Obj{"name": "shop_first", "arguments": e2e.Obj{"word": "hello"}})
	c.Ok("tools/call", e2e.Obj{"name": "shop_second", "arguments": e2e.Obj{"word": "bye"}})
	p := w.Pane(80, 24)
	p.Goblin("")
	p.Shows("goblin", "clients 1")
	p.Types(":traffic")
	p.Keys("Enter")
	p.Shows("[Traffic")
	p.Types("/method:tools/call")
	p.Keys("Enter")
	p.Shows("shop_second")
	p.Keys("g", "Enter")
	showsMatch(p, `╭─ tools/call .* 1 of 2, `)
	p.Shows("[Answer] Request  Timing  Headers  Raw", "step 1 ")
	p.Types("/step 49")
	p.Keys("Enter", "&")
	showsMatch(p, `step 49 +│\n│ step 490 `)
	p.Keys("&", "Escape")
	p.Shows("shop_second")
	p.Keys("Enter", "#")
	p.Types("312")
	p.Keys("Enter")
	p.Shows(">step 312 ")
	p.Keys("]")
	p.Shows("[Request]", `"word": "hello"`)
	p.Keys("J")
	showsMatch(p, `╭─ tools/call .* 2 of 2`)
	p.Shows("[Request]", `"word": "bye"`)
	p.Keys("K", "]")
	p.Shows("[Timing]", "server works")
	p.Keys("F")
	showsMatch(p, `(?s)Traffic 2.*\[Timing\]`)
	p.Keys("F", "J")
	showsMatch(p, `╭─ tools/call .* 2 of 2`)
	p.Keys("]", "]")
	p.Shows("[Raw]", `"jsonrpc": "2.0"`)
	p.Keys("Escape")
	showsMatch(p, `> .*shop_second`)
}
