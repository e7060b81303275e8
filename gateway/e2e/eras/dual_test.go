//go:build e2e

package eras

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Servers that speak both eras: each client is served over a connection of its own era.

func dualBackend(w *e2e.World, kind, era string, script e2e.Obj, conf ...e2e.Obj) *e2e.Backend {
	w.T.Helper()
	script["era"] = era
	if kind == "http" {
		return w.Remote("b", "/mcp", script, conf...)
	}
	return w.Backend("b", script, append(conf, e2e.Obj{"era": "both"})...)
}

// duals are servers that speak both eras, by how their processes choose one. They also
// name the fronts that tests use.
var duals = []struct {
	name, kind, era, front string
	processes              int // once both eras have been used
}{
	{"stdio", "stdio", "dual", "http", 2},
	{"stdio that chooses by the first message", "stdio", "either", "socket", 3}, // one was probed first
	{"http", "http", "dual", "socket", 1},
}

// eachDual runs a test with a client of each era in front of each of those servers.
func eachDual(t *testing.T, script func() e2e.Obj, test func(t *testing.T, b *e2e.Backend, legacy, modern *e2e.Client, processes int)) {
	t.Helper()
	t.Parallel()
	for _, d := range e2e.Variants(1, duals...) {
		t.Run(d.front+" before "+d.name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := dualBackend(w, d.kind, d.era, script())
			legacy, modern := w.Pair(d.front)
			test(t, b, legacy, modern, d.processes)
		})
	}
}

// ofEra returns the calls that arrived in the modern era, or in the other.
func ofEra(b *e2e.Backend, method string, modern bool) (calls []e2e.Event) {
	b.T.Helper()
	for _, m := range b.Received(method) {
		if (e2e.ProtocolMeta(m, "protocolVersion") != "") == modern {
			calls = append(calls, m)
		}
	}
	return calls
}

// An input request as a server writes it, with its own names, order, numbers and escapes.
const (
	demands = `{"z\u0041":{"method":"elicitation/create","params":{"requestedSchema":{"type":"object"},"message":"who","n":1.50}},"a":{"method":"roots/list"}}`
	opaque  = `"st\u0061te/+="`
)

func TestEachClientIsServedInItsOwnEra(t *testing.T) {
	script := func() e2e.Obj {
		return e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask"), e2e.Tool("raw"), e2e.Tool("lacks")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("x:1")}, "on": e2e.Obj{
			"tools/call ask": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers")),
			"prompts/get p":  e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form})),
			"resources/read": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form})),
			"tools/call raw": e2e.Actions(e2e.Do("result", e2e.Obj{"times": 1, "result": json.RawMessage(`{"resultType":"input_required","vendor":12345678901234567890,"inputRequests":` + demands + `,"requestState":` + opaque + `}`)}), e2e.Do("echo")),
			"tools/call lacks": e2e.Actions(e2e.Do("error", e2e.Obj{"error": json.RawMessage(
				`{"code":-32021,"message":"no","data":{"requiredCapabilities":{"sampling":{"tools":{}}}}}`)})),
		}}
	}
	eachDual(t, script, func(t *testing.T, b *e2e.Backend, legacy, modern *e2e.Client, processes int) {
		legacy.Reply = func(e2e.Message) (any, any) {
			return e2e.Obj{"action": "accept", "content": e2e.Obj{"name": "Lea"}}, nil
		}
		id := legacy.Begin("tools/call", e2e.Obj{"name": "b_ask"})

		m := modern.Request("tools/call", e2e.Obj{"name": "b_ask"})
		_, keys := e2e.InputRequests(t, m)
		require.Equal(t, "ask-0", keys["elicitation/create"], "the server's own name for its question: %s", m.Raw)
		for method, params := range map[string]e2e.Obj{
			"tools/call": {"name": "b_ask"}, "prompts/get": {"name": "b/p"}, "resources/read": {"uri": e2e.In("b", "x:1")},
		} {
			m := modern.Request(method, params)
			params["requestState"] = e2e.At(m.Result, "requestState")
			params["inputResponses"] = e2e.Obj{"ask-0": e2e.Accepted, "more": e2e.Obj{"n": json.RawMessage("1.50")}}
			m = modern.Request(method, params)
			require.Nil(t, m.Error, m.Raw)
			require.Equal(t, `"complete"`, string(e2e.At(m.Result, "resultType")), m.Raw)
			calls := ofEra(b, method, true)
			last := calls[len(calls)-1].Msg
			require.Equal(t, string(params["requestState"].(json.RawMessage)), string(e2e.At(last, "params", "requestState")))
			require.Equal(t, `{"ask-0":`+string(e2e.Marshal(e2e.Accepted))+`,"more":{"n":1.50}}`, string(e2e.At(last, "params", "inputResponses")))
		}

		m = modern.Request("tools/call", e2e.Obj{"name": "b_raw"})
		require.Equal(t, demands, string(e2e.At(m.Result, "inputRequests")))
		require.Equal(t, opaque, string(e2e.At(m.Result, "requestState")))
		require.Equal(t, "12345678901234567890", string(e2e.At(m.Result, "vendor")))
		m = modern.Request("tools/call", e2e.Obj{"name": "b_raw", "requestState": e2e.At(m.Result, "requestState")})
		require.Contains(t, e2e.Str(m.Result, "content", 0, "text"), `"requestState":"state/+="`)
		m = modern.Request("tools/call", e2e.Obj{"name": "b_lacks"})
		require.Equal(t, -32021, e2e.ParseError(t, m).Code)
		require.JSONEq(t, `{"requiredCapabilities":{"sampling":{"tools":{}}}}`, string(e2e.At(m.Error, "data")))

		end := legacy.End(id)
		require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), "Lea", end.Raw)
		require.Len(t, legacy.Asks, 1)
		require.Empty(t, modern.Asks)
		require.Len(t, ofEra(b, "tools/call", false), 1)
		require.JSONEq(t, string(e2e.Marshal(modern.Caps)), e2e.ProtocolMeta(ofEra(b, "tools/call", true)[0], "clientCapabilities"))
		require.Equal(t, processes, b.Starts())
		b.WaitLive(min(processes, 2))
		require.Empty(t, ofEra(b, "tools/list", true), "the catalog is listed once")
	})
}
