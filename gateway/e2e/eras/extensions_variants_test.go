//go:build e2e

package eras

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A task is its server's, so what is said of it goes there, by the server's own name.
func TestExtensionsReachTheServerOfATask(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	for _, name := range []string{"one", "two"} { // both call their first task the same
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
	require.Len(t, hellos, 2, "the first one was opened before anybody came")
	require.JSONEq(t, `{"acme/things":{"level":3},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}`,
		string(e2e.At(hellos[1].Msg, "params", "capabilities", "extensions")))
}

// A server that declares too much works, and the log says what is left out.
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
