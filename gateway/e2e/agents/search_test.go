//go:build agents && !windows

package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// The user's wish in a trial, the keywords that models derive from it, and the right
// tool. A search for the user's own words doesn't find it.
const (
	wish     = "put the finished column of the board away"
	keywords = "archive list board trello"
	right    = "trello_archive_list"
)

// corpus returns the tools that searches are measured with.
func corpus(t *testing.T) (tools []e2e.Obj) {
	text, err := os.ReadFile("../../../meta/search/testdata/tools.json")
	require.NoError(t, err)
	var servers []struct {
		Server string
		Tools  []struct {
			Name, Title, Description string
			Arguments                []string
		}
	}
	require.NoError(t, json.Unmarshal(text, &servers))
	for _, s := range servers {
		for _, one := range s.Tools {
			properties := e2e.Obj{}
			for _, name := range one.Arguments {
				properties[name] = e2e.Obj{"type": "string"}
			}
			tools = append(tools, e2e.Tool(s.Server+"_"+one.Name, e2e.Obj{
				"title": one.Title, "description": one.Description, "inputSchema": e2e.Obj{"type": "object", "properties": properties},
			}))
		}
	}
	return tools
}

// Each agent first sees hundreds of tools, then only Goblin's. Its model must find and
// call one of the others.
func TestAgentsFindToolsThatAreNotListed(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.search(t)
		})
	}
}

func (p program) search(t *testing.T) {
	w, desk, tools := p.desk(t)
	all := newModel(t, nil)
	out, err := p.run(t, w, all, wish)
	require.NoError(t, err, out)

	var found string
	arguments := obj{"listId": "l-7", "boardId": "b-3"}
	lean := newModel(t, []step{
		{tool: "search_tools", args: func(u turn) obj { return obj{"query": asked(u)} }},
		{tool: "describe_tool", args: func(u turn) obj {
			found = first(u)
			return obj{"name": found}
		}},
		{tool: "call_tool", args: func(turn) obj { return obj{"name": found, "arguments": arguments} }},
		{tool: "desk_" + right, beside: "call_tool", args: func(turn) obj { return arguments }},
	})
	out, err = p.run(t, w, lean, wish, "--profile", "lean")
	calls := desk.Received("tools/call")

	// All other tools in both runs are the agent's own.
	var goblins []struct{ Name string }
	decode([]byte(w.Succeeds("list", "tools", "--json", "--profile", "lean")), &goblins)
	own := slices.DeleteFunc(lean.names(), func(name string) bool {
		return slices.ContainsFunc(goblins, func(g struct{ Name string }) bool { return strings.HasSuffix(name, g.Name) })
	})
	before, after := all.sent(own), lean.sent(own)
	byName := "refused by the agent"
	if len(calls) > 1 {
		byName = "yes"
	}
	for _, check := range []struct {
		what  string
		holds bool
	}{
		{"all tools without the profile", before.tools == len(tools)+len(goblins)-1}, // call_tool is only for clients that need it
		{"own tools alone with it", after.tools == len(goblins) && !slices.ContainsFunc(lean.names(), func(name string) bool { return strings.Contains(name, "desk_") })},
		{"a small part of the bytes", after.bytes*20 < before.bytes},
		{"the tool is found", found == "desk_"+right},
		{"its definition", strings.Contains(lean.after(1), "listId")},
		{"its result", strings.Contains(lean.after(2), "desk:"+right)},
		{"called with its arguments", len(calls) >= 1 && e2e.Str(calls[0].Msg, "params", "name") == right && equal(e2e.At(calls[0].Msg, "params", "arguments"), arguments)},
		{"by its name, if at all", len(calls) == 1 || len(calls) == 2 && e2e.Str(calls[1].Msg, "params", "name") == right && equal(e2e.At(calls[1].Msg, "params", "arguments"), arguments)},
	} {
		t.Run(check.what, func(t *testing.T) { require.True(t, check.holds) })
	}
	t.Logf("| %s | %d, %d bytes | %d, %d bytes | %s |", p.name, before.tools, before.bytes, after.tools, after.bytes, byName)
	if t.Failed() {
		t.Logf("%v\n%s\nstrange: %v\nown: %v\ntools: %v\nfound: %q\ncalls: %d\nafter each step:", err, e2e.Tail(out, 3000), lean.strange, own, lean.names(), found, len(calls))
		for i := range lean.texts {
			t.Logf("%d: …%s", i, e2e.Tail(lean.texts[i], 1500))
		}
	}
}

// desk returns a world with a server of those tools and a profile that lists only
// Goblin's.
func (p program) desk(t *testing.T) (*e2e.World, *e2e.Backend, []e2e.Obj) {
	w := p.world(t)
	tools := corpus(t)
	require.Greater(t, len(tools), 500)
	desk := w.Backend("desk", e2e.Obj{"tools": tools})
	delete(w.Gateway, "meta_tools") // auto is the default
	w.Profiles = e2e.Obj{"lean": e2e.Obj{"expose": "search"}}
	w.Write()
	return w, desk, tools
}

// The test justifies why models are asked for keywords other than the user's words.
func TestAgentsNeedOtherWordsThanUsers(t *testing.T) {
	t.Parallel()
	w, _, _ := program{}.desk(t)
	require.NotContains(t, w.Succeeds("search", "--limit", "5", wish), right)
	require.Contains(t, w.Succeeds("search", "--limit", "5", keywords), right)
}

func equal(raw json.RawMessage, want obj) bool {
	var got obj
	decode(raw, &got)
	return reflect.DeepEqual(got, want)
}

// sent is the size of Goblin's tools that a model received.
type sent struct{ tools, bytes int }

// sent returns the size of the first tools that the model received, except an agent's own
// tools.
func (m *model) sent(own []string) (s sent) {
	for _, t := range m.tools {
		if !slices.Contains(own, t.full()) {
			s.tools++
			s.bytes += len(t.raw)
		}
	}
	return s
}

// asked returns the model's search text: keywords if the argument's description demands
// them.
func asked(u turn) string {
	at := slices.IndexFunc(u.tools, func(t tool) bool { return strings.HasSuffix(t.Name, "search_tools") })
	if at < 0 || !strings.Contains(aboutArgument(u.tools[at].raw, "query"), "Keywords") {
		return wish
	}
	return keywords
}

// aboutArgument returns the description of an argument for any interface.
func aboutArgument(raw json.RawMessage, name string) string {
	var v any
	decode(raw, &v)
	var find func(v any) string
	find = func(v any) string {
		o, _ := v.(map[string]any)
		if one, ok := o[name].(map[string]any); ok {
			return fmt.Sprint(one["description"])
		}
		for _, inner := range o {
			if text := find(inner); text != "" {
				return text
			}
		}
		return ""
	}
	return find(v)
}

var named = regexp.MustCompile(`"name":\s*"(desk_[A-Za-z0-9_-]+)"`)

// first returns the first tool in the last result, at any depth of quoting.
func first(u turn) string {
	if len(u.results) == 0 {
		return ""
	}
	if m := named.FindStringSubmatch(strings.ReplaceAll(u.results[len(u.results)-1], `\`, "")); m != nil {
		return m[1]
	}
	return ""
}
