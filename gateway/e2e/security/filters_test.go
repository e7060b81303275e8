//go:build e2e

package security

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// reader is a server that reads any URI.
func reader() e2e.Obj {
	return e2e.Obj{
		"resources": []e2e.Obj{
			e2e.Resource("file:///pub/a"), e2e.Resource("file:///pub/b%20c"), e2e.Resource("file:///pub/../secret/k"), e2e.Resource("file:///%73ecret/k"), e2e.Resource("FILE:///secret/k"), e2e.Resource(`file:///secret\k`),
		},
		"templates": []e2e.Obj{e2e.Template("file:///pub/{name}"), e2e.Template("{+any}"), e2e.Template("file:///pub/../secret/{name}"), e2e.Template("file:///%73ecret/{name}"), e2e.Template("FILE:/secret/{name}")},
		"tools":     []e2e.Obj{e2e.Tool("links")},
	}
}

// listsOnce is a server that lists once: later processes refuse it.
func listsOnce() e2e.Obj {
	on := e2e.Obj{
		"tools/call ask": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers")),
	}
	for _, kind := range []string{"tools", "prompts", "resources", "templates"} {
		on[e2e.ListMethod(kind)] = e2e.Actions(e2e.Do("error", e2e.Obj{"after": 1, "error": e2e.Obj{"code": -32603, "message": "not again"}}))
	}
	return e2e.Obj{
		"tools":     []e2e.Obj{e2e.Tool("keep"), e2e.Tool("danger"), e2e.Tool("ask")},
		"prompts":   []e2e.Obj{e2e.Prompt("keep"), e2e.Prompt("danger")},
		"resources": []e2e.Obj{e2e.Resource("file:///pub/a"), e2e.Resource("file:///secret/k")},
		"templates": []e2e.Obj{e2e.Template("file:///pub/{name}"), e2e.Template("file:///secret/{name}")},
		"on":        on,
	}
}

// denials are the entries that an edit denies.
var denials = e2e.Obj{
	"tools": e2e.Obj{"deny": []string{"danger", "ask"}}, "prompts": e2e.Obj{"deny": []string{"danger"}}, "resources": e2e.Obj{"deny": []string{"file:/secret/*"}},
}

func TestFiltersHoldWhateverTheListSays(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ok")}, "resources": []e2e.Obj{e2e.Resource("file:///pub/a")}}, denials)
	c := w.Standalone()
	c.WaitListed("tools", "b_ok", true)
	b.Add("tools", e2e.Tool("danger"))
	b.Add("resources", e2e.Resource("file:///pub/..%2fsecret/k"))
	b.Add("resources", e2e.Resource("file:///pub/%zz"))
	b.Add("resources", e2e.Resource("file:///pub/\x00"))
	b.Add("resources", e2e.Resource("file:///pub/b"))
	b.ListChanged("tools")
	b.ListChanged("resources")
	c.WaitListed("resources", e2e.In("b", "file:///pub/b"), true)
	require.ElementsMatch(t, []string{e2e.In("b", "file:///pub/a"), e2e.In("b", "file:///pub/b")}, c.Names("resources"))
	require.Equal(t, []string{"b_ok"}, c.Names("tools"))
	require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "b_danger"}).Kind())
	require.Zero(t, b.Count("tools/call"))
}
