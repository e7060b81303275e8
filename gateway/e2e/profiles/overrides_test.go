//go:build e2e

package profiles

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// tracker is a server with overrides.
func tracker() e2e.Obj {
	text := e2e.Obj{"type": "string"}
	return e2e.Obj{
		"capabilities": e2e.Obj{
			"tools": e2e.Obj{"listChanged": true}, "prompts": e2e.Obj{"listChanged": true},
			"resources": e2e.Obj{"listChanged": true, "subscribe": true}, "completions": e2e.Obj{},
		},
		"tools": []e2e.Obj{
			e2e.Tool("create_issue", e2e.Obj{
				"title": "Create", "description": "Creates.", "annotations": e2e.Obj{"destructiveHint": true, "openWorldHint": true}, "x-vendor": e2e.Obj{"n": 1.50},
				"inputSchema": e2e.Obj{
					"type": "object", "additionalProperties": false, "required": []string{"owner", "title"},
					"properties": e2e.Obj{"owner": text, "title": text, "limit": e2e.Obj{"type": "integer"}},
				},
			}),
			e2e.Tool("list_issues"), e2e.Tool("close_issue"),
		},
		"prompts":   []e2e.Obj{e2e.Prompt("review", e2e.Obj{"arguments": []e2e.Obj{{"name": "style", "required": true}, {"name": "of"}}})},
		"resources": []e2e.Obj{e2e.Resource("repo://readme"), e2e.Resource("repo://other")},
		"templates": []e2e.Obj{e2e.Template("repo://file/{path}")},
	}
}

// overrides are the server's overrides for all clients, and in a profile.
var (
	overrides = e2e.Obj{
		"tools": e2e.Obj{"create_issue": e2e.Obj{
			"name": "new_issue", "title": "New", "description": "Files an issue about pears.", "annotations": e2e.Obj{"destructiveHint": false},
			"arguments": e2e.Obj{"owner": "acme", "limit": "${LIMIT:-5}"},
		}},
		"prompts":   e2e.Obj{"review": e2e.Obj{"name": "critique", "arguments": e2e.Obj{"style": "brief"}}},
		"resources": e2e.Obj{"repo://readme": e2e.Obj{"name": "Read me", "title": "First"}, "repo://file/{path}": e2e.Obj{"description": "A file."}},
	}
	inProfile = e2e.Obj{"work": e2e.Obj{"overrides": e2e.Obj{"hub": e2e.Obj{
		"tools":     e2e.Obj{"create_issue": e2e.Obj{"name": "file_bug", "arguments": e2e.Obj{"owner": "work"}}, "close_issue": e2e.Obj{"name": "done"}},
		"resources": e2e.Obj{"repo://other": e2e.Obj{"name": "Another"}},
	}}}}
)

func overridden(t *testing.T) (*e2e.World, *e2e.Backend) {
	w := e2e.WithMeta(t)
	back := w.Backend("hub", tracker(), e2e.Obj{"overrides": overrides})
	w.Profiles = inProfile
	return w, back
}

// listedAs returns the definition that a client has listed under a name or URI.
func listedAs(c *e2e.Client, kind, name string) json.RawMessage {
	c.T.Helper()
	for _, d := range c.List(kind) {
		if slices.Contains([]string{e2e.Str(d, "uri"), e2e.Str(d, "uriTemplate"), e2e.Str(d, "name")}, name) {
			return d
		}
	}
	c.T.Fatalf("%s is not among the %s", name, kind)
	return nil
}

// sentTo returns the last params of a method that the server received.
func sentTo(b *e2e.Backend, method string) json.RawMessage {
	b.T.Helper()
	all := b.Received(method)
	require.NotEmpty(b.T, all, method)
	return e2e.At(all[len(all)-1].Msg, "params")
}

func TestOverridesAreWhatClientsSee(t *testing.T) {
	t.Parallel()
	for name, way := range ways() {
		if name == "rule" || name == "rule, stateless" || name == "default" {
			continue // they are other ways to the same views
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, back := overridden(t)
			c := way(w, "")
			c.WaitListed("tools", "hub_new_issue", true)

			tool := listedAs(c, "tools", "hub_new_issue")
			require.JSONEq(t, `{"name":"hub_new_issue","title":"New","description":"Files an issue about pears.","annotations":{"destructiveHint":false,"openWorldHint":true},"x-vendor":{"n":1.5},
				"inputSchema":{"type":"object","additionalProperties":false,"required":["title"],"properties":{"title":{"type":"string"}}}}`, string(tool))
			require.JSONEq(t, `[{"name":"of"}]`, string(e2e.At(listedAs(c, "prompts", "hub/critique"), "arguments")))
			require.Equal(t, "Read me", e2e.Str(listedAs(c, "resources", e2e.In("hub", "repo://readme")), "name"))
			require.Equal(t, "First", e2e.Str(listedAs(c, "resources", e2e.In("hub", "repo://readme")), "title"))
			require.Equal(t, "A file.", e2e.Str(listedAs(c, "templates", e2e.In("hub", "repo://file/{path}")), "description"))

			for _, name := range []string{"hub_new_issue", "hub/new_issue", "new_issue"} {
				c.Ok("tools/call", e2e.Obj{"name": name, "arguments": e2e.Obj{"title": "t"}})
				require.JSONEq(t, `{"name":"create_issue","arguments":{"title":"t","owner":"acme","limit":5}}`, without(sentTo(back, "tools/call"), "_meta"), name)
			}
			c.Ok("tools/call", e2e.Obj{"name": "hub_new_issue"})
			require.JSONEq(t, `{"owner":"acme","limit":5}`, string(e2e.At(sentTo(back, "tools/call"), "arguments")))
			c.Ok("tools/call", e2e.Obj{"name": "hub_new_issue", "arguments": e2e.Obj{"owner": "acme"}})
			asked := back.Count("tools/call")
			for _, args := range []e2e.Obj{{"owner": "evil"}, {"Owner": "acme"}, {"LIMIT": 5, "title": "t"}, {"owner\x00": "x"}} {
				fault := c.Fault("tools/call", e2e.Obj{"name": "hub_new_issue", "arguments": args})
				require.Equal(t, -32602, fault.Code)
				require.Equal(t, "ARGUMENT_FIXED", fault.Kind())
			}
			for _, name := range []string{"hub_create_issue", "hub/create_issue", "create_issue", "hub_new_issue_x"} {
				fault := c.Fault("tools/call", e2e.Obj{"name": name, "arguments": e2e.Obj{}})
				require.Equal(t, "TOOL_NOT_FOUND", fault.Kind(), name)
				require.Contains(t, fault.Message, `"hub_new_issue"`)
			}
			require.Equal(t, asked, back.Count("tools/call"), "no server is asked")

			for _, name := range []string{"hub/critique", "hub_critique", "critique"} {
				c.Ok("prompts/get", e2e.Obj{"name": name, "arguments": e2e.Obj{"of": "x"}})
				require.JSONEq(t, `{"name":"review","arguments":{"of":"x","style":"brief"}}`, without(sentTo(back, "prompts/get"), "_meta"), name)
			}
			require.Equal(t, "PROMPT_NOT_FOUND", c.Fault("prompts/get", e2e.Obj{"name": "hub/review"}).Kind())
			complete := func(argument string) e2e.Obj {
				return e2e.Obj{"ref": e2e.Obj{"type": "ref/prompt", "name": "hub/critique"}, "argument": e2e.Obj{"name": argument, "value": "x"}}
			}
			c.Ok("completion/complete", complete("of"))
			require.JSONEq(t, `{"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"of","value":"x"},"context":{"arguments":{"style":"brief"}}}`, without(sentTo(back, "completion/complete"), "_meta"))
			require.Equal(t, "ARGUMENT_FIXED", c.Fault("completion/complete", complete("style")).Kind())
			require.Contains(t, c.ReadText(e2e.In("hub", "repo://readme")), "repo://readme")

			// Goblin's own tools agree.
			require.Contains(t, c.CallText("search_tools", e2e.Obj{"query": "pears"}), "hub_new_issue")
			require.Contains(t, c.CallText("search_tools", e2e.Obj{"query": "create issue"}), "hub_new_issue", "by its original name")
			require.NotContains(t, c.CallText("search_tools", e2e.Obj{"query": "create issue"}), "create_issue")
			described := c.CallText("describe_tool", e2e.Obj{"name": "new_issue"})
			require.Contains(t, described, "Files an issue about pears.")
			require.NotContains(t, described, "owner")
			script := func(text string) string { return c.CallText("execute_lua", e2e.Obj{"script": text}) }
			require.Contains(t, script(`return hub.new_issue({title = "lua"})`), "create_issue")
			require.JSONEq(t, `{"title":"lua","owner":"acme","limit":5}`, string(e2e.At(sentTo(back, "tools/call"), "arguments")))
			require.Contains(t, c.CallText("execute_lua", e2e.Obj{"script": `local ok, why = pcall(hub.create_issue, {}) return tostring(why)`}), "new_issue")
		})
	}
}

// without returns an object without one of its members.
func without(obj json.RawMessage, name string) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(obj, &all) != nil {
		return string(obj)
	}
	delete(all, name)
	out, _ := json.Marshal(all)
	return string(out)
}

func TestFixedArgumentsAreThoseOfTasksAndOfHeaders(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	region := e2e.Obj{"type": "object", "properties": e2e.Obj{
		"region": e2e.Obj{"type": "string", "x-mcp-header": "Region"}, "zone": e2e.Obj{"type": "string", "x-mcp-header": "Zone"},
	}}
	fixed := e2e.Obj{"overrides": e2e.Obj{"tools": e2e.Obj{"t": e2e.Obj{"arguments": e2e.Obj{"region": "eu-1"}}}}}
	far := w.Remote("far", "/mcp", e2e.Obj{"era": "modern", "tools": []e2e.Obj{e2e.Tool("t", e2e.Obj{"inputSchema": region})}}, fixed)
	slow := w.Backend("slow", e2e.Obj{"tools": []e2e.Obj{tasked("t", "")}, "tasks": e2e.Obj{"t": e2e.Obj{}}}, fixed)
	s := w.Served()
	c := s.Client(false)

	// The client omits it in arguments and headers; the server receives it in both.
	got := s.Do("POST", "/mcp", map[string]string{
		"MCP-Protocol-Version": e2e.ModernRevision, "Mcp-Method": "tools/call", "Mcp-Name": "far_t", "Mcp-Param-Zone": "b",
	}, string(e2e.Marshal(e2e.Obj{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": e2e.Obj{
		"name": "far_t", "arguments": e2e.Obj{"zone": "b"},
		"_meta": e2e.Obj{e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{}},
	}})))
	require.Equal(t, 200, got.Status, got.Body)
	call := far.Received("tools/call")[0]
	require.Equal(t, []string{"eu-1", "b"}, []string{call.Headers["mcp-param-region"], call.Headers["mcp-param-zone"]})
	require.JSONEq(t, `{"region":"eu-1","zone":"b"}`, string(e2e.At(call.Msg, "params", "arguments")))

	id := e2e.Str(c.Ok("tools/call", e2e.Obj{"name": "slow_t", "arguments": e2e.Obj{"n": 1}, "task": e2e.Obj{"ttl": 60000}}), "task", "taskId")
	require.NotEmpty(t, id)
	require.JSONEq(t, `{"region":"eu-1","n":1}`, string(e2e.At(sentTo(slow, "tools/call"), "arguments")))
}

func TestTwoProfilesShowOneToolUnderTwoNames(t *testing.T) {
	t.Parallel()
	w, back := overridden(t)
	for name, way := range map[string]func(w *e2e.World, profile string) *e2e.Client{"legacy": ways()["flag"], "modern": ways()["flag, stateless"]} {
		plain, work := way(w, ""), way(w, "work")
		plain.WaitListed("tools", "hub_new_issue", true)
		work.WaitListed("tools", "hub_file_bug", true)
		require.Subset(t, work.Names("tools"), []string{"hub_file_bug", "hub_done", "hub_list_issues"}, name)
		require.NotContains(t, work.Names("tools"), "hub_new_issue")
		require.NotContains(t, work.Names("tools"), "hub_close_issue")
		require.Subset(t, plain.Names("tools"), []string{"hub_close_issue", "hub_list_issues"})
		require.Equal(t, "Files an issue about pears.", e2e.Str(listedAs(work, "tools", "hub_file_bug"), "description"), "the rest is the server's")
		require.Equal(t, "Another", e2e.Str(listedAs(work, "resources", e2e.In("hub", "repo://other")), "name"))
		require.Equal(t, "Read me", e2e.Str(listedAs(work, "resources", e2e.In("hub", "repo://readme")), "name"))
		require.NotEqual(t, "Another", e2e.Str(listedAs(plain, "resources", e2e.In("hub", "repo://other")), "name"))

		work.Ok("tools/call", e2e.Obj{"name": "file_bug", "arguments": e2e.Obj{"title": "t"}})
		require.JSONEq(t, `{"name":"create_issue","arguments":{"title":"t","owner":"work","limit":5}}`, without(sentTo(back, "tools/call"), "_meta"))
		plain.Ok("tools/call", e2e.Obj{"name": "new_issue", "arguments": e2e.Obj{"title": "t"}})
		require.Equal(t, "acme", e2e.Str(sentTo(back, "tools/call"), "arguments", "owner"))
		for _, other := range []string{"hub_new_issue", "hub/new_issue", "new_issue", "hub_create_issue", "create_issue", "hub/close_issue"} {
			require.Equal(t, "TOOL_NOT_FOUND", work.Fault("tools/call", e2e.Obj{"name": other}).Kind(), other)
		}
		require.Equal(t, "TOOL_NOT_FOUND", plain.Fault("tools/call", e2e.Obj{"name": "hub_file_bug"}).Kind())
		require.Contains(t, work.CallText("search_tools", e2e.Obj{"query": "pears"}), "hub_file_bug")
		require.NotContains(t, work.CallText("search_tools", e2e.Obj{"query": "pears"}), "hub_new_issue")
		require.Contains(t, work.CallText("describe_tool", e2e.Obj{"name": "file_bug"}), "hub_file_bug")
		require.Contains(t, work.CallText("execute_lua", e2e.Obj{"script": `return hub.done({})`}), "close_issue")
	}
	require.Equal(t, 1, back.Starts())

	// The names in the output of commands: server, original and listed name.
	listed := w.Succeeds("list", "tools", "--json")
	require.Contains(t, listed, `"originalName": "create_issue"`)
	require.Contains(t, listed, `"hub_new_issue"`)
	require.Contains(t, w.Succeeds("tools", "off", "hub/create_issue"), "hub_new_issue")
	require.Contains(t, w.Succeeds("tools", "on", "hub_new_issue"), "hub_new_issue")
	require.Contains(t, w.Succeeds("usage"), "hub_new_issue")
}

func TestOverridesChangeWithTheConfig(t *testing.T) {
	t.Parallel()
	w, back := overridden(t)
	plain, work := ways()["flag"](w, ""), ways()["flag"](w, "work")
	for _, c := range []*e2e.Client{plain, work} {
		c.WaitListed("tools", "hub_list_issues", true)
		c.Names("prompts")
		c.Names("resources")
		c.Settle()
		c.Forget()
	}
	w.Edit(func() {
		back.Conf["overrides"] = e2e.Obj{"tools": e2e.Obj{"create_issue": e2e.Obj{"name": "add", "arguments": e2e.Obj{"owner": "else"}}}}
	})
	listed(plain, "tools", "hub_add", true)
	require.Equal(t, "Creates.", e2e.Str(listedAs(plain, "tools", "hub_add"), "description"))
	require.NotContains(t, plain.Names("tools"), "hub_new_issue")
	require.Contains(t, plain.Names("prompts"), "hub/review")
	require.NotEqual(t, "Read me", e2e.Str(listedAs(plain, "resources", e2e.In("hub", "repo://readme")), "name"))
	plain.Ok("tools/call", e2e.Obj{"name": "hub_add"})
	require.JSONEq(t, `{"owner":"else"}`, string(e2e.At(sentTo(back, "tools/call"), "arguments")))
	work.WaitListed("tools", "hub_file_bug", true)
	work.Ok("tools/call", e2e.Obj{"name": "hub_file_bug"})
	require.JSONEq(t, `{"owner":"work"}`, string(e2e.At(sentTo(back, "tools/call"), "arguments")))

	// A value alone changes nothing that clients see.
	for _, c := range []*e2e.Client{plain, work} {
		c.Settle()
		c.Forget()
	}
	w.Edit(func() {
		back.Conf["overrides"] = e2e.Obj{"tools": e2e.Obj{"create_issue": e2e.Obj{"name": "add", "arguments": e2e.Obj{"owner": "third"}}}}
	})
	for range 1000 { // no notification reports a changed value
		plain.Ok("tools/call", e2e.Obj{"name": "hub_add"})
		if e2e.Str(sentTo(back, "tools/call"), "arguments", "owner") == "third" {
			break
		}
		w.Succeeds("status")
	}
	require.Equal(t, "third", e2e.Str(sentTo(back, "tools/call"), "arguments", "owner"))
	plain.Settle()
	require.Empty(t, plain.NotesOf("notifications/tools/list_changed"))
	require.Equal(t, 1, back.Starts(), "the server still runs")
}

func TestAnUnsetVariableInAProfileConcernsWhatItOverrides(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	back := w.Backend("hub", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("push"), e2e.Tool("pull")}})
	w.Profiles = e2e.Obj{"work": e2e.Obj{"overrides": e2e.Obj{"hub": e2e.Obj{"tools": e2e.Obj{
		"push": e2e.Obj{"arguments": e2e.Obj{"repo": "${WORK_REPO}"}}, "pull": e2e.Obj{"title": "Pull"},
	}}}}}
	out := w.Run("validate")
	require.Zero(t, out.Code, out.Stderr)
	require.Regexp(t, `goblin\.yaml:\d+: warning: \$\{WORK_REPO\} is not set, but "repo" in overrides.hub.tools.push.arguments of profile "work" needs it; set it or write \$\{WORK_REPO:-default\} \(until then clients of profile "work" do not see tool "push" of server "hub"\)`, out.Stderr)
	plain, work := ways()["flag"](w, ""), ways()["flag"](w, "work")
	plain.WaitListed("tools", "hub_push", true)
	require.Equal(t, []string{"hub_pull"}, work.Names("tools"))
	require.Equal(t, "Pull", e2e.Str(listedAs(work, "tools", "hub_pull"), "title"))
	require.Equal(t, "TOOL_NOT_FOUND", work.Fault("tools/call", e2e.Obj{"name": "hub_push", "arguments": e2e.Obj{"repo": "mine"}}).Kind())
	require.Zero(t, back.Count("tools/call"))
	require.Contains(t, plain.CallText("hub_push", e2e.Obj{}), "hub:push")
}

func TestOverridesThatMakeToolsEqualLoseNone(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Backend("hub", tracker(), e2e.Obj{"overrides": e2e.Obj{"tools": e2e.Obj{
		"create_issue": e2e.Obj{"name": "same"}, "close_issue": e2e.Obj{"name": "same", "description": "Ends."}, "nothing": e2e.Obj{"title": "x"},
	}}})
	out := w.Run("validate")
	require.Zero(t, out.Code)
	require.Contains(t, out.Stdout+out.Stderr, `the overrides of server "hub" give the tools "close_issue" and "create_issue" the same name "same", so "create_issue" keeps its own`)
	require.Regexp(t, `goblin\.\w+:\d+: .*the overrides of server`, out.Stdout+out.Stderr)
	c := w.Join()
	c.WaitListed("tools", "hub_same", true)
	require.Subset(t, c.Names("tools"), []string{"hub_same", "hub_create_issue", "hub_list_issues"})
	require.Equal(t, "Ends.", e2e.Str(listedAs(c, "tools", "hub_same"), "description"))
	require.Contains(t, c.CallText("hub_same", e2e.Obj{}), "close_issue")
	require.Contains(t, c.CallText("create_issue", e2e.Obj{}), "create_issue")

	told := w.Run("validate")
	require.True(t, strings.Contains(told.Stdout+told.Stderr, `tool "nothing"`), told.Stdout+told.Stderr)
	require.Contains(t, w.Succeeds("status"), `"nothing"`)
}

// A pin refers to the server's own definition.
func TestPinsAreAboutTheOriginal(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Gateway = e2e.Obj{"pin": "strict"}
	back := w.Backend("hub", tracker(), e2e.Obj{"overrides": overrides})
	c := w.Join()
	c.WaitListed("tools", "hub_new_issue", true)
	c.Settle()
	c.Forget()
	w.Edit(func() {
		back.Conf["overrides"] = e2e.Obj{"tools": e2e.Obj{"create_issue": e2e.Obj{"name": "other", "description": "Other."}}}
	})
	listed(c, "tools", "hub_other", true)
	require.NotContains(t, w.Succeeds("approve"), "create_issue")

	back.Remove("tools", "create_issue")
	back.Add("tools", e2e.Tool("create_issue", e2e.Obj{"description": "Now something else."}))
	back.ListChanged("tools")
	c.WaitListed("tools", "hub_other", false)
	for _, name := range []string{"hub_other", "hub/other", "other"} {
		require.Contains(t, c.Fault("tools/call", e2e.Obj{"name": name}).Message, "goblin approve hub create_issue", name)
	}
	w.Succeeds("approve", "hub", "create_issue")
	c.WaitListed("tools", "hub_other", true)
	require.Equal(t, "Other.", e2e.Str(listedAs(c, "tools", "hub_other"), "description"))
}
