//go:build e2e

package security

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestADenialOfAnEditHoldsAtOnce(t *testing.T) {
	t.Parallel()
	for front, more := range map[string]e2e.Obj{
		"http":   {},
		"socket": {"tools": e2e.Obj{"allow": []string{"keep"}}, "prompts": e2e.Obj{"allow": []string{"k*"}}, "resources": e2e.Obj{"allow": []string{"file:///pub/*"}}},
	} {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			w := e2e.WithMeta(t)
			w.Gateway["startup_wait"] = "1s"
			b := w.Backend("b", listsOnce())
			c, modern := w.Pair(front)
			modern.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
			c.WaitListed("tools", "b_danger", true)
			secret, pub := e2e.In("b", "file:///secret/k"), e2e.In("b", "file:///pub/a")
			for _, uri := range []string{secret, pub} {
				c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
			}
			c.CallText("b_danger", e2e.Obj{})
			id, _ := modern.ListenTo(e2e.Obj{"toolsListChanged": true, "resourceSubscriptions": []string{secret, pub}})
			state, keys := e2e.InputRequests(t, modern.Request("tools/call", e2e.Obj{"name": "b_ask"}))

			w.Edit(func() { configure(b, denials); configure(b, more) })
			c.WaitListed("tools", "b_danger", false)
			modern.WaitNote("notifications/tools/list_changed", nil)
			calls := b.Count("tools/call")
			require.Equal(t, []string{"b_keep"}, own(c.Names("tools")))
			require.Equal(t, []string{"b/keep"}, c.Names("prompts"))
			require.Equal(t, []string{pub}, own(c.Names("resources")))
			require.Equal(t, []string{e2e.In("b", "file:///pub/{name}")}, c.Names("templates"))
			for _, c := range []*e2e.Client{c, modern} {
				for _, name := range []string{"b_danger", "b/danger", "danger"} {
					require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": name}).Kind())
				}
				for _, name := range []string{"b/danger", "b_danger", "danger"} {
					require.Equal(t, "PROMPT_NOT_FOUND", c.Fault("prompts/get", e2e.Obj{"name": name}).Kind())
					require.NotNil(t, c.Request("completion/complete", e2e.Obj{"ref": e2e.Obj{"type": "ref/prompt", "name": name}, "argument": e2e.Obj{"name": "a", "value": ""}}).Error)
				}
				for _, uri := range []string{secret, "file:///secret/k", "b_file_secret_k", e2e.In("b", "file:///%73ecret/k"), e2e.In("b", "file:///secret/other")} {
					require.Equal(t, "RESOURCE_NOT_FOUND", c.Fault("resources/read", e2e.Obj{"uri": uri}).Kind(), uri)
					require.NotNil(t, c.Request("completion/complete", e2e.Obj{"ref": e2e.Obj{"type": "ref/resource", "uri": uri}, "argument": e2e.Obj{"name": "a", "value": ""}}).Error)
				}
				require.Contains(t, string(c.Lua(`return b.danger{}`)), `"isError":true`)
				require.Contains(t, string(c.Lua(`return resources.read("`+secret+`")`)), `"isError":true`)
				for tool, args := range map[string]e2e.Obj{
					"search_tools": {"query": "danger"}, "catalog_tools": {}, "search_resources": {"query": "secret k"}, "catalog_resources": {}, "catalog_resource_templates": {}, "search_prompts": {"query": "danger"},
				} {
					text := string(e2e.At(c.Ok("tools/call", e2e.Obj{"name": tool, "arguments": args}), "content"))
					require.False(t, strings.Contains(text, "b_danger") || strings.Contains(text, "b/danger") || strings.Contains(text, "file:///secret"), "%s: %s", tool, text)
				}
			}
			require.Equal(t, "RESOURCE_NOT_FOUND", c.Fault("resources/subscribe", e2e.Obj{"uri": secret}).Kind())
			retry := e2e.Obj{"name": "b_ask", "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Obj{"action": "accept", "content": e2e.Obj{}}}}
			require.Equal(t, "TOOL_NOT_FOUND", modern.Fault("tools/call", retry).Kind(), "a waiting call is not resumed")
			require.Equal(t, calls, b.Count("tools/call"))

			// Allowed entries still work, with a process that lists nothing.
			b.WaitStarts(2)
			e2e.Eventually(t, "the new process", func() bool { return c.Works(e2e.Obj{"name": "b_keep"}) })
			require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "b_danger"}).Kind())
			second := b.WaitStarts(2)
			b.Wait("the subscription of the new process", func() bool {
				return slices.ContainsFunc(b.Pick("resources/subscribe"), func(e e2e.Event) bool { return e.Proc == second && strings.Contains(string(e.Msg), "pub/a") })
			})
			c.WaitUpdates(1) // it may have been missed meanwhile
			c.Forget()
			modern.Forget()
			for _, uri := range []string{"file:///secret/k", "file:///pub/a"} {
				b.DoAt(second, e2e.Do("notify", e2e.Obj{"method": "notifications/resources/updated", "params": e2e.Obj{"uri": uri}}))
			}
			require.Equal(t, []string{pub}, c.WaitUpdates(1))
			require.Equal(t, []string{pub}, modern.WaitUpdates(1))
			require.False(t, slices.ContainsFunc(b.Received("resources/subscribe"), func(e e2e.Event) bool {
				return e.Proc == second && strings.Contains(string(e.Msg), "secret")
			}))
			require.Empty(t, b.Received("prompts/get"))
			modern.StopListening(id)

			// When it is allowed again, it appears as soon as the server lists, and is
			// watched.
			w.Edit(func() {
				for k := range denials {
					delete(b.Conf, k)
				}
			})
			third := b.WaitStarts(3)
			for _, kind := range []string{"tools", "prompts", "resources", "templates"} {
				b.DoAt(third, e2e.Do("on", e2e.Obj{"key": e2e.ListMethod(kind)}))
			}
			for _, kind := range []string{"tools", "prompts", "resources"} {
				b.DoAt(third, e2e.Do("notify", e2e.Obj{"method": "notifications/" + kind + "/list_changed"}))
			}
			c.WaitListed("tools", "b_danger", true)
			c.WaitListed("resources", secret, true)
			c.CallText("b_danger", e2e.Obj{})
			c.ReadText(secret)
			b.Wait("the paused subscription", func() bool {
				return slices.ContainsFunc(b.Pick("resources/subscribe"), func(e e2e.Event) bool { return e.Proc == third && strings.Contains(string(e.Msg), "secret") })
			})
			c.WaitUpdates(2)
		})
	}
}

func TestServersThatAnEditTakesAwayAreNotCalled(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(w *e2e.World, b *e2e.Backend){
		"disabled": func(_ *e2e.World, b *e2e.Backend) { b.Conf["disabled"] = true },
		"removed":  func(w *e2e.World, b *e2e.Backend) { w.Drop(b) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("stays", e2e.CountingServer())
			b := w.Backend("b", listsOnce())
			c := w.Join()
			c.WaitListed("tools", "b_danger", true)
			c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("b", "file:///pub/a")})
			w.Edit(func() { edit(w, b) })
			c.WaitListed("tools", "b_danger", false)
			for method, params := range map[string]e2e.Obj{
				"tools/call": {"name": "b_danger"}, "prompts/get": {"name": "b/danger"}, "resources/read": {"uri": e2e.In("b", "file:///pub/a")}, "resources/subscribe": {"uri": e2e.In("b", "file:///secret/k")},
				"completion/complete": {"ref": e2e.Obj{"type": "ref/prompt", "name": "b/keep"}, "argument": e2e.Obj{"name": "a", "value": ""}},
			} {
				c.Fault(method, params)
			}
			b.WaitGone()
			require.Zero(t, len(b.Pick("tools/call"))+len(b.Pick("prompts/get"))+len(b.Pick("resources/read"))+len(b.Pick("completion/complete")))
			require.Equal(t, 1, len(b.Pick("resources/subscribe")))
			require.Equal(t, 1, b.Starts())
		})
	}
}

// own omits Goblin's own names.
func own(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "b_") && !strings.HasPrefix(name, "mcp://b/") })
}

func TestADenialOfAnEditEndsNoCallUnderWay(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := listsOnce()
	script["on"].(e2e.Obj)["tools/call danger"] = e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("text", e2e.Obj{"text": "done"}))
	b := w.Backend("b", script)
	c := w.Join()
	c.WaitListed("tools", "b_danger", true)
	call := c.Begin("tools/call", e2e.Obj{"name": "b_danger"})
	first := b.WaitEvent("wait", "go").Proc
	w.Edit(func() { configure(b, denials) })
	c.WaitListed("tools", "b_danger", false)
	require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "b_danger"}).Kind())
	b.DoAt(first, e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Equal(t, "done", e2e.Str(c.End(call).Result, "content", 0, "text"))
}

func configure(b *e2e.Backend, with e2e.Obj) {
	for k, v := range with {
		b.Conf[k] = v
	}
}

// The opposite case: URIs that are not a spelling of a denied file are allowed, even if
// they look similar.
func TestWhatIsNotDeniedIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("fs", reader(), e2e.Obj{"resources": e2e.Obj{"deny": []string{"file:///secret/*"}}})
	free := w.Backend("free", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("x:1")}}, e2e.Obj{"open_resources": true})
	c := w.Standalone()
	fine := []string{
		"file:///secrets", "file:///pub/secret/k", "file:///pub/100%25", "file:///pub/a%23b", "file:///pub/b%20c?x=%2F..", "file:///pub/%C3%BC", "file:///Secret/k",
		"db://secret/k?limit=1&x=y#z", "https://example.com/secret/k", "urn:isbn:0-1", "data:text/plain;base64,AA==", "x:a;b;c", "mcp://q/file:///pub/x",
	}
	for _, uri := range fine {
		require.NotEmpty(t, c.ReadText(e2e.In("fs", uri)), uri)
	}
	require.Equal(t, fine, b.Uris("resources/read"))
	for _, uri := range []string{"file:///%zz", "file:///%73ecret/k%"} {
		require.NotEmpty(t, c.ReadText(e2e.In("free", uri)), "without filters, URIs are the server's business")
	}
	require.Len(t, free.Uris("resources/read"), 2)
}
