//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestR3_03_UpstreamPagesAreFollowed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	var all []e2e.Obj
	for i := range 6 {
		all = append(all, e2e.Resource(fmt.Sprintf("p:///%d", i)))
	}
	b := w.Backend("paged", e2e.Obj{
		"resources": all, "pagesize": 2, "tools": []e2e.Obj{e2e.Tool("a"), e2e.Tool("b"), e2e.Tool("c")},
		"prompts": []e2e.Obj{e2e.Prompt("a"), e2e.Prompt("b"), e2e.Prompt("c")}, "templates": []e2e.Obj{e2e.Template("t:///a{x}"), e2e.Template("t:///b{x}"), e2e.Template("t:///c{x}")},
	})
	c := w.Standalone()
	require.Len(t, c.Names("resources"), 6)
	require.Len(t, c.Names("tools"), 3)
	require.Len(t, c.Names("prompts"), 3)
	require.Len(t, c.Names("templates"), 3)
	var cursors []string
	for _, m := range b.Received("resources/list") {
		cursors = append(cursors, e2e.Str(m.Msg, "params", "cursor"))
	}
	require.Equal(t, []string{"", "c1", "c2"}, cursors)
}

func TestR3_16_ClientPagination(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["page_size"] = 2
	b := w.Backend("p", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("a"), e2e.Tool("b"), e2e.Tool("c"), e2e.Tool("d"), e2e.Tool("e")}})
	c := w.Standalone()
	var sizes []int
	var names []string
	var cursor json.RawMessage
	for {
		params := e2e.Obj{}
		if cursor != nil {
			params["cursor"] = cursor
		}
		page := c.Ok("tools/list", params)
		entries := e2e.Each(page, "tools")
		sizes = append(sizes, len(entries))
		for _, e := range entries {
			names = append(names, e2e.Str(e, "name"))
		}
		if cursor = e2e.At(page, "nextCursor"); cursor == nil {
			break
		}
	}
	require.Equal(t, []int{2, 2, 1}, sizes)
	require.Equal(t, []string{"p_a", "p_b", "p_c", "p_d", "p_e"}, names)

	for _, bad := range []any{"garbage", "%%%", 7, e2e.Obj{}} {
		require.Equal(t, -32602, c.Fault("tools/list", e2e.Obj{"cursor": bad}).Code, "cursor %v", bad)
	}
	for _, kind := range []string{"resources", "prompts", "templates"} {
		require.Equal(t, -32602, c.Fault(e2e.ListMethod(kind), e2e.Obj{"cursor": "garbage"}).Code, kind)
	}

	// An entry that is inserted meanwhile doesn't shift the following pages.
	first := c.Ok("tools/list", nil)
	b.Add("tools", e2e.Tool("aa"))
	b.Add("tools", e2e.Tool("cc"))
	b.ListChanged("tools")
	c.WaitListed("tools", "p_cc", true)
	rest := []string{}
	for cursor := e2e.At(first, "nextCursor"); cursor != nil; {
		page := c.Ok("tools/list", e2e.Obj{"cursor": cursor})
		for _, e := range e2e.Each(page, "tools") {
			rest = append(rest, e2e.Str(e, "name"))
		}
		cursor = e2e.At(page, "nextCursor")
	}
	require.Subset(t, rest, []string{"p_c", "p_d", "p_e"})
	require.NotContains(t, rest, "p_b")
}
