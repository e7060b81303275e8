//go:build e2e

package eras

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// acme is a server with an extension that Goblin does not know.
func acme(settings e2e.Obj) e2e.Obj {
	ext := e2e.Obj{"acme/things": settings, "goblin/own": e2e.Obj{}}
	return e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("t")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("x:1")},
		"capabilities": e2e.Obj{
			"tools": e2e.Obj{}, "prompts": e2e.Obj{}, "resources": e2e.Obj{}, "extensions": ext,
		},
		"on": e2e.Obj{"acme/thing": e2e.Actions(e2e.Do("echo"))},
	}
}

// listed waits until a client without notifications has a tool in its list.
func listed(t *testing.T, c *e2e.Client, tool string) {
	t.Helper()
	e2e.Eventually(t, tool+" in the list", func() bool { return slices.Contains(c.Names("tools"), tool) })
}

// declaring returns clients of both eras of one daemon that declare the extension.
func declaring(w *e2e.World) (legacy, modern *e2e.Client) {
	s := w.Served()
	legacy, modern = s.RawClient(), s.Stateless()
	legacy.Caps = e2e.Obj{"extensions": e2e.Obj{"acme/things": e2e.Obj{"level": 3}}}
	modern.Caps = legacy.Caps
	return legacy, modern
}

func TestExtensionsPassBothWays(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	one := w.Backend("one", acme(e2e.Obj{"same": []int{1}, "v": 1}))
	other := acme(e2e.Obj{"same": []int{1}, "v": 2, "more": true})
	other["era"], other["prompts"] = "modern", []e2e.Obj{}
	two := w.Backend("two", other)
	w.Backend("plain", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	legacy, modern := declaring(w)
	listed(t, modern, "two_t")
	listed(t, modern, "one_t")

	want := `{"same":[1],"more":true}`
	hello := legacy.Init()
	require.JSONEq(t, want, string(e2e.At(hello, "capabilities", "extensions", "acme/things")))
	require.Nil(t, e2e.At(hello, "capabilities", "extensions", "goblin/own"))
	found := modern.Ok("server/discover", e2e.Obj{})
	require.JSONEq(t, want, string(e2e.At(found, "capabilities", "extensions", "acme/things")))
	require.JSONEq(t, `{}`, string(e2e.At(found, "capabilities", "extensions", "io.modelcontextprotocol/tasks")))

	// Goblin itself is a host of apps, or servers hide them from lists.
	const ui = `{"mimeTypes":["text/html;profile=mcp-app"]}`
	require.JSONEq(t, ui, string(e2e.At(one.Received("initialize")[0].Msg, "params", "capabilities", "extensions", "io.modelcontextprotocol/ui")))
	require.JSONEq(t, ui, string(e2e.At(json.RawMessage(e2e.ProtocolMeta(two.Received("tools/list")[0], "clientCapabilities")), "extensions", "io.modelcontextprotocol/ui")))

	for era, c := range map[string]*e2e.Client{"legacy": legacy, "modern": modern} {
		for _, row := range []struct{ member, asked, own, server string }{
			{"name", "one_t", "t", "one"},
			{"name", "one/p", "p", "one"},
			{"name", "p", "p", "one"},
			{"uri", "mcp://two/x:1", "x:1", "two"},
			{"name", "two/t", "t", "two"},
		} {
			got := c.Ok("acme/thing", e2e.Obj{row.member: row.asked, "more": "one_t"})
			require.Equal(t, row.own, e2e.Str(json.RawMessage(e2e.Str(got, "content", 0, "text")), row.member), "%s %v: %s", era, row, got)
		}
		require.Equal(t, "AMBIGUOUS", c.Fault("acme/thing", e2e.Obj{"uri": "x:1"}).Kind(), era)
		for _, params := range []e2e.Obj{{"uri": "mcp://one/none:1"}, {"name": "plain_t"}, {"name": "nobody"}, {"taskId": "none"}, {}} {
			fault := c.Fault("acme/thing", params)
			require.Equal(t, -32601, fault.Code, "%s %v", era, params)
			require.Contains(t, fault.Message, "acme/thing")
		}
		require.Equal(t, -32602, c.Fault("acme/thing", e2e.Obj{"name": "one_t", "Name": "one_u"}).Code)
	}
	caps := json.RawMessage(e2e.ProtocolMeta(two.Received("acme/thing")[0], "clientCapabilities"))
	require.JSONEq(t, `{"acme/things":{"level":3}}`, string(e2e.At(caps, "extensions")), "what the client itself declares")

	legacy.Notify("tools/call", e2e.Obj{"name": "one_t"})
	legacy.Notify("notifications/acme", e2e.Obj{"uri": "mcp://one/x:1", "n": 1})
	told := one.WaitReceived("notifications/acme", 1)
	require.JSONEq(t, `{"uri":"x:1","n":1}`, string(e2e.At(told.Msg, "params")))
	require.Zero(t, one.Count("tools/call"), "a request without an id is of no extension")

	bare := w.Served().Client(false)
	require.Equal(t, -32601, bare.Fault("acme/thing", e2e.Obj{"name": "one_t"}).Code, "clients that declare nothing get nothing")
	require.Len(t, one.Received("acme/thing"), 6)
	e2e.Eventually(t, "the log of the ignored extensions", func() bool {
		log := w.Served().Stderr.String()
		return strings.Contains(log, `servers \"one\" and \"two\" differ`) && strings.Contains(log, `\"goblin/own\"`)
	})
}

func TestMethodsOfAnotherRevisionAreOfNoExtension(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := acme(e2e.Obj{})
	script["capabilities"].(e2e.Obj)["resources"] = e2e.Obj{"subscribe": true}
	b := w.Backend("one", script)
	s := w.Served()
	legacy, modern := s.RawClient(), s.Stateless()
	modern.Caps = e2e.Obj{"extensions": e2e.Obj{"acme/things": e2e.Obj{}}}
	listed(t, modern, "one_t")
	legacy.Init()
	legacy.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("one", "x:1")})
	for _, method := range []string{"resources/subscribe", "resources/unsubscribe"} {
		answer := modern.Request(method, e2e.Obj{"uri": e2e.In("one", "x:1")})
		require.Contains(t, string(answer.Error), "-32601", method)
	}
	require.Zero(t, b.Count("resources/unsubscribe"), "the other client is subscribed")
	require.Equal(t, 1, b.Count("resources/subscribe"))
}

// Messages about a task go to its server, with the server's own task id.
func TestExtensionsReachTheServerOfATask(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	for _, name := range []string{"one", "two"} { // both give their first task the same name
		script := acme(e2e.Obj{})
		script["tools"] = []e2e.Obj{e2e.Tool("t", e2e.Obj{"execution": e2e.Obj{"taskSupport": "optional"}})}
		script["tasks"] = e2e.Obj{"t": e2e.Obj{}}
		script["on"] = e2e.Obj{"task t": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"})), "acme/thing": e2e.Actions(e2e.Do("echo"))}
		script["capabilities"].(e2e.Obj)["tasks"] = e2e.Obj{"cancel": e2e.Obj{}, "requests": e2e.Obj{"tools": e2e.Obj{"call": e2e.Obj{}}}}
		w.Backend(name, script)
	}
	legacy, _ := declaring(w)
	legacy.Init()
	listed(t, legacy, "one_t")
	listed(t, legacy, "two_t")
	var ids []string
	for _, tool := range []string{"one_t", "two_t"} {
		created := legacy.Ok("tools/call", e2e.Obj{"name": tool, "arguments": e2e.Obj{}, "task": e2e.Obj{"ttl": 60000}})
		ids = append(ids, e2e.Str(created, "task", "taskId"))
	}
	for i, id := range ids {
		got := legacy.Ok("acme/thing", e2e.Obj{"taskId": id})
		require.Equal(t, "task-1", e2e.Str(json.RawMessage(e2e.Str(got, "content", 0, "text")), "taskId"))
		require.Len(t, w.Backends[i].Received("acme/thing"), 1)
	}
}

func TestExtensionsOfAnIsolatedClientAreItsOwn(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("one", acme(e2e.Obj{}), e2e.Obj{"isolation": "session"})
	legacy, _ := declaring(w)
	legacy.Init()
	listed(t, legacy, "one_t")
	legacy.CallText("one_t", nil)
	hellos := b.Received("initialize")
	require.Len(t, hellos, 2, "the first one was opened before the first client")
	require.JSONEq(t, `{"acme/things":{"level":3},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}`,
		string(e2e.At(hellos[1].Msg, "params", "capabilities", "extensions")))
}

// A server that declares too many extensions works, and the log lists the ignored ones.
func TestExtensionsAreBounded(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	many := e2e.Obj{"big/one": e2e.Obj{"x": strings.Repeat("y", 10<<20)}}
	for i := range 1000 {
		many[fmt.Sprintf("x/%03d", i)] = e2e.Obj{}
	}
	w.Backend("large", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "capabilities": e2e.Obj{"tools": e2e.Obj{}, "extensions": many}})
	s := w.Served()
	modern := s.Stateless()
	modern.Caps = e2e.Obj{}
	listed(t, modern, "large_t")
	found := modern.Ok("server/discover", e2e.Obj{})
	var got map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(e2e.At(found, "capabilities", "extensions"), &got))
	require.Len(t, got, 65, "64 of the server, and tasks")
	require.Equal(t, "large:t:{}", modern.CallText("large_t", e2e.Obj{}))
}
