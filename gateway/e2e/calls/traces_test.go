//go:build e2e

package calls

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const clientTrace, clientSpan = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

const clientContext = "00-" + clientTrace + "-" + clientSpan + "-01"

func tracedMeta() e2e.Obj {
	return e2e.Obj{"traceparent": clientContext, "tracestate": "vendor=1", "baggage": "user=1", "k": 1}
}

// has checks attributes of a span. An empty value means that it has none.
func has(t *testing.T, s e2e.Span, want map[string]string) {
	t.Helper()
	for name, v := range want {
		require.Equal(t, v, s.Attributes[name], "%s of %s %s: %v", name, s.Kind, s.Name, s.Attributes)
	}
}

// everyTracedWorld runs a test with both eras and transports on both sides.
func everyTracedWorld(t *testing.T, test func(t *testing.T, w *e2e.World, r *e2e.Traces, x e2e.Combination)) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) { test(t, w, w.TracesTo(), x) })
}

func TestACallIsATraceFromTheClientToTheServer(t *testing.T) {
	everyTracedWorld(t, func(t *testing.T, w *e2e.World, r *e2e.Traces, x e2e.Combination) {
		b := x.Backend(w, e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("add")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("db://u:secret1@h/t?key=secret2")},
		})
		c := x.Client(w, e2e.Obj{}, 0, nil).Client
		c.Ok("tools/call", e2e.Obj{"name": "b_add", "arguments": e2e.Obj{"a": "argument"}, "_meta": tracedMeta()})
		server, hop := r.Wait("SERVER", "tools/call b_add"), r.Wait("CLIENT", "tools/call add")
		require.Equal(t, []string{clientTrace, clientSpan, "vendor=1"}, []string{server.Trace, server.Parent, server.State})
		require.Equal(t, []string{clientTrace, server.ID, "vendor=1"}, []string{hop.Trace, hop.Parent, hop.State})
		require.False(t, server.Failed || hop.Failed)
		require.LessOrEqual(t, server.Start, hop.Start)
		require.GreaterOrEqual(t, server.End, hop.End)
		has(t, server, map[string]string{
			"mcp.method.name": "tools/call", "gen_ai.tool.name": "b_add", "gen_ai.operation.name": "execute_tool",
			"error.type": "", "rpc.response.status_code": "", "goblin.server": "b",
		})
		has(t, hop, map[string]string{
			"mcp.method.name": "tools/call", "gen_ai.tool.name": "add", "gen_ai.operation.name": "execute_tool", "goblin.server": "b",
		})
		for _, name := range []string{"mcp.protocol.version", "network.transport", "jsonrpc.request.id"} {
			require.NotEmpty(t, server.Attributes[name], name)
			require.NotEmpty(t, hop.Attributes[name], name)
		}
		meta := e2e.At(b.WaitReceived("tools/call", 1).Msg, "params", "_meta")
		require.Equal(t, hop.Context(), e2e.Str(meta, "traceparent"))
		require.Equal(t, "vendor=1", e2e.Str(meta, "tracestate"))
		require.Equal(t, "user=1", e2e.Str(meta, "baggage"))
		require.Equal(t, "1", string(e2e.At(meta, "k")))
		require.NotNil(t, e2e.At(meta, "progressToken"))
		require.Equal(t, "argument", e2e.Str(b.WaitReceived("tools/call", 1).Msg, "params", "arguments", "a"))

		c.Ok("prompts/get", e2e.Obj{"name": "b/p"})
		has(t, r.Wait("SERVER", "prompts/get b/p"), map[string]string{"gen_ai.prompt.name": "b/p", "gen_ai.operation.name": "", "gen_ai.tool.name": ""})
		c.Ok("resources/read", e2e.Obj{"uri": e2e.In("b", "db://u:secret1@h/t?key=secret2")})
		read := r.Wait("CLIENT", "resources/read")
		has(t, read, map[string]string{"mcp.resource.uri": "db://h/t"})
		require.NotEqual(t, clientTrace, read.Trace, "without a context it is a trace of its own")
		require.Equal(t, read.Context(), e2e.Str(b.WaitReceived("resources/read", 1).Msg, "params", "_meta", "traceparent"))
		require.NotContains(t, r.String(), "secret")
		require.NotContains(t, r.String(), "argument")
	})
}

func TestFailuresOfCallsAreInTheirSpans(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	r := w.TracesTo()
	w.Backend("b", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("wrong"), e2e.Tool("broken"), e2e.Tool("picky"), e2e.Tool("hang"), e2e.Tool("die")},
		"calls": e2e.Obj{"wrong": e2e.Obj{"isError": true, "content": []e2e.Obj{{"type": "text", "text": "private text"}}}},
		"on": e2e.Obj{
			"tools/call broken": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32050, "message": "it broke"}})),
			"tools/call picky":  e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32602, "message": "bad"}})),
			"tools/call hang":   e2e.Actions(e2e.Do("hang")),
			"tools/call die":    e2e.Actions(e2e.Do("exit")),
		},
	})
	c := w.Socket()
	c.Init()
	for _, tt := range []struct {
		tool, kind, code, status string
		clientOnly               bool
	}{
		{"wrong", "tool_error", "", "", false},
		{"broken", "-32050", "-32050", "it broke", false},
		{"picky", "-32602", "-32602", "bad", true}, // the caller's error does not fail the server's span
	} {
		c.Request("tools/call", e2e.Obj{"name": "b_" + tt.tool})
		for _, s := range []e2e.Span{r.Wait("CLIENT", "tools/call "+tt.tool), r.Wait("SERVER", "tools/call b_"+tt.tool)} {
			if s.Kind == "SERVER" && tt.clientOnly {
				require.False(t, s.Failed)
				has(t, s, map[string]string{"error.type": "", "rpc.response.status_code": tt.code})
				continue
			}
			require.True(t, s.Failed)
			require.Equal(t, tt.status, s.Status)
			has(t, s, map[string]string{"error.type": tt.kind, "rpc.response.status_code": tt.code})
		}
	}
	id := c.Begin("tools/call", e2e.Obj{"name": "b_hang"})
	w.Backends[0].WaitReceived("tools/call", 4)
	c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.Number(id)})
	has(t, r.Wait("CLIENT", "tools/call hang"), map[string]string{"error.type": "cancelled"})
	gone := r.Wait("SERVER", "tools/call b_hang")
	has(t, gone, map[string]string{"error.type": "cancelled"})
	require.Contains(t, gone.Events, "notifications/cancelled")

	c.Request("tools/call", e2e.Obj{"name": "b_die"})
	has(t, r.Wait("CLIENT", "tools/call die"), map[string]string{"error.type": "CONNECTION_ERROR"})
	has(t, r.Wait("SERVER", "tools/call b_die"), map[string]string{"error.type": "tool_error", "goblin.error.code": "CONNECTION_ERROR"})

	c.Fault("tools/call", e2e.Obj{"name": "nothing"})
	has(t, r.Wait("SERVER", "tools/call nothing"), map[string]string{"rpc.response.status_code": "-32602", "goblin.error.code": "TOOL_NOT_FOUND"})
	require.NotContains(t, r.String(), "private text")
}

func TestCallsOfAScriptAreInItsSpan(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	r := w.TracesTo()
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("one"), e2e.Tool("two")}})
	c := w.Socket()
	c.Init()
	c.Ok("tools/call", e2e.Obj{
		"name": "execute_lua", "arguments": e2e.Obj{"script": `b.one{} b.two{}`}, "_meta": tracedMeta(),
	})
	script := r.Wait("SERVER", "tools/call execute_lua")
	require.Equal(t, clientSpan, script.Parent)
	has(t, script, map[string]string{"goblin.server": "goblin"})
	for i, name := range []string{"one", "two"} {
		hop := r.Wait("CLIENT", "tools/call "+name)
		require.Equal(t, script.ID, hop.Parent)
		meta := e2e.At(b.WaitReceived("tools/call", i+1).Msg, "params", "_meta")
		require.Equal(t, hop.Context(), e2e.Str(meta, "traceparent"))
		require.Equal(t, "user=1", e2e.Str(meta, "baggage"), "of the client's call")
	}
	require.Len(t, r.WaitAll("SERVER", "tools/call execute_lua", 1), 1)
}

func TestRequestsOfAServerAreSpansOfBothSides(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	r := w.TracesTo()
	w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form))
	c := w.Socket()
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	c.Reply = func(e2e.Message) (any, any) { return e2e.Accepted, nil }
	c.Init()
	c.Ok("tools/call", e2e.Obj{"name": "b_ask", "_meta": tracedMeta()})
	hop := r.Wait("CLIENT", "tools/call ask")
	from, to := r.Wait("SERVER", "elicitation/create"), r.Wait("CLIENT", "elicitation/create")
	require.Equal(t, hop.ID, from.Parent)
	require.Equal(t, from.ID, to.Parent)
	require.Equal(t, clientTrace, to.Trace)
	require.Equal(t, to.Context(), e2e.Str(c.WaitAsks(1).Params, "_meta", "traceparent"))
	has(t, from, map[string]string{"goblin.server": "b", "network.transport": "pipe"})
	has(t, to, map[string]string{"network.transport": "unix"})
	require.NotEmpty(t, r.Wait("SERVER", "tools/call b_ask").Attributes["goblin.wait.user"])
}

func TestEachMessageOfAStatelessClientHasASpan(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	r := w.TracesTo()
	w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form))
	c := w.Socket().Stateless()
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	first := c.Request("tools/call", e2e.Obj{"name": "b_ask", "_meta": tracedMeta()})
	state, keys := e2e.InputRequests(t, first)
	require.Equal(t, clientTrace, strings.Split(e2e.Str(first.Result, "inputRequests", keys["elicitation/create"], "params", "_meta", "traceparent"), "-")[1])
	const second = "00-11111111111111111111111111111111-2222222222222222-01"
	c.Ok("tools/call", e2e.Obj{
		"name": "b_ask", "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}, "_meta": e2e.Obj{"traceparent": second},
	})
	both := r.WaitAll("SERVER", "tools/call b_ask", 2)
	require.Equal(t, []string{clientSpan, "2222222222222222"}, []string{both[0].Parent, both[1].Parent})
	hop := r.Wait("CLIENT", "tools/call ask")
	require.Equal(t, both[0].ID, hop.Parent, "the call began with the first message")
}

func TestHTTPHeadersCarryTheContext(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	r := w.TracesTo()
	b := w.Remote("b", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Served()
	s.Client(false).Ok("tools/list", e2e.Obj{}) // the lists are there
	session := s.Session()
	session["traceparent"], session["tracestate"], session["baggage"] = clientContext, "vendor=1", "user=1"
	s.Do("POST", "/mcp", session, `{"jsonrpc":"2.0","id":"seven","method":"tools/call","params":{"name":"b_t"}}`)
	server, hop := r.Wait("SERVER", "tools/call b_t"), r.Wait("CLIENT", "tools/call t")
	require.Equal(t, []string{clientTrace, clientSpan}, []string{server.Trace, server.Parent})
	has(t, server, map[string]string{
		"network.transport": "tcp", "network.protocol.name": "http", "client.address": "127.0.0.1", "jsonrpc.request.id": "seven",
	})
	require.NotEmpty(t, server.Attributes["mcp.session.id"])
	require.NotEqual(t, session["Mcp-Session-Id"], server.Attributes["mcp.session.id"], "an id of HTTP admits to the session")
	has(t, hop, map[string]string{"network.transport": "tcp", "server.address": "127.0.0.1"})
	require.NotEmpty(t, hop.Attributes["server.port"])
	got := b.WaitReceived("tools/call", 1)
	require.Equal(t, hop.Context(), got.Headers["traceparent"])
	require.Equal(t, "user=1", e2e.Str(got.Msg, "params", "_meta", "baggage"))

	// The context of the message wins, and that of HTTP becomes a link.
	s.Do("POST", "/mcp", session, `{"jsonrpc":"2.0","id":8,"method":"ping","params":{"_meta":{"traceparent":"00-11111111111111111111111111111111-2222222222222222-01"}}}`)
	ping := r.Wait("SERVER", "ping")
	require.Equal(t, "2222222222222222", ping.Parent)
	require.Equal(t, []string{clientSpan}, ping.Links)
}

func TestWithoutTracesNothingIsAdded(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	hits := make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits <- struct{}{} }))
	t.Cleanup(s.Close)
	w.Env = append(w.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+s.URL, "OTEL_BSP_SCHEDULE_DELAY=1") // the environment alone starts nothing
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Pipe("stdio", "--standalone")
	c.Init()
	c.Ok("tools/call", e2e.Obj{"name": "b_t", "_meta": tracedMeta()})
	require.JSONEq(t, string(e2e.Marshal(tracedMeta())), e2e.WithoutProgressToken(t, e2e.At(b.WaitReceived("tools/call", 1).Msg, "params", "_meta")))
	c.Ok("tools/call", e2e.Obj{"name": "b_t"})
	require.JSONEq(t, "{}", e2e.WithoutProgressToken(t, e2e.At(b.WaitReceived("tools/call", 2).Msg, "params", "_meta")))
	require.Empty(t, hits)
}

func TestTracesFollowTheConfig(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	r := w.TracesTo()
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	w.OTel = nil
	c := w.Socket()
	c.Init()
	call := func() string {
		c.Ok("tools/call", e2e.Obj{"name": "b_t"})
		n := len(b.Received("tools/call"))
		return e2e.Str(b.WaitReceived("tools/call", n).Msg, "params", "_meta", "traceparent")
	}
	require.Empty(t, call())
	before, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	edit := func(more string) { require.NoError(t, os.WriteFile(w.Config, []byte(string(before)+more), 0o600)) }
	edit("otel: {endpoint: " + r.URL + "}\n")
	e2e.Eventually(t, "traces", func() bool { return call() != "" })
	r.Wait("SERVER", "tools/call b_t")
	edit("otel: {protocol: grpc}\n")
	e2e.Eventually(t, "the mistake", func() bool {
		return strings.Contains(w.Run("status").Stdout, `must be http/protobuf`) || strings.Contains(w.DaemonLog(), `must be http/protobuf`)
	})
	require.NotEmpty(t, call(), "a mistake changes nothing")
	edit("otel: off\n")
	e2e.Eventually(t, "no traces", func() bool { return call() == "" })
}

func TestTheLastSpansAreSentAtTheEnd(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	r := w.TracesTo()
	w.Env = append(w.Env, "OTEL_BSP_SCHEDULE_DELAY=3600000")
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Served()
	s.Client(false).Ok("tools/call", e2e.Obj{"name": "b_t"})
	s.Signal(syscall.SIGTERM)
	require.Zero(t, s.Ends(e2e.Patience))
	r.Wait("SERVER", "tools/call b_t")
}

func TestACallThatIsRepeatedHasASpanForEachAttempt(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	r := w.TracesTo()
	b := w.Remote("b", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Socket()
	c.Init()
	c.Ok("tools/call", e2e.Obj{"name": "b_t"})
	first := r.Wait("CLIENT", "tools/call t")
	b.Do(e2e.Do("forget"))
	c.Ok("tools/call", e2e.Obj{"name": "b_t"})
	attempts := r.WaitAll("CLIENT", "tools/call t", 3)[1:]
	has(t, attempts[0], map[string]string{"error.type": "CONNECTION_ERROR"})
	require.False(t, attempts[1].Failed)
	request := r.WaitAll("SERVER", "tools/call b_t", 2)[1]
	require.False(t, request.Failed)
	for _, s := range attempts {
		require.Equal(t, request.ID, s.Parent)
		require.NotEqual(t, first.Trace, s.Trace)
	}
	got := b.Received("tools/call")
	require.Equal(t, attempts[1].Context(), e2e.Str(got[len(got)-1].Msg, "params", "_meta", "traceparent"))
}
