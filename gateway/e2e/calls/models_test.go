//go:build e2e

package calls

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Agents treat an error as a broken connection: they stop the process and call again.
func TestModelsSeeWhyAToolWasNotAnswered(t *testing.T) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		w.Gateway["meta_tools"] = true
		tools := []e2e.Obj{}
		for _, name := range []string{"hang", "wrong", "own", "dies"} {
			tools = append(tools, e2e.Tool(name))
		}
		x.Backend(w, e2e.Obj{"tools": tools, "prompts": []e2e.Obj{e2e.Prompt("p")}, "on": e2e.Obj{
			"tools/call hang":  e2e.Actions(e2e.Do("hang")),
			"prompts/get p":    e2e.Actions(e2e.Do("hang")),
			"tools/call wrong": e2e.Actions(e2e.Do("result", e2e.Obj{"result": []int{1}})),
			"tools/call own":   e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32603, "message": "mine"}})),
		}}, e2e.Obj{"timeout": "1s"})
		c := x.Client(w, e2e.Obj{}, 0, nil).Client
		call := func(tool string) e2e.Message { return c.Request("tools/call", e2e.Obj{"name": tool}) }
		told := func(m e2e.Message, code string) {
			t.Helper()
			e := e2e.ParseFailure(t, m)
			require.JSONEq(t, `{"code":"`+code+`","server":"b"}`, string(e.Data))
			require.True(t, strings.HasPrefix(e.Message, `server "b": `), e.Message)
			if x.ModernClient() {
				require.Equal(t, `"complete"`, string(e2e.At(m.Result, "resultType")))
			}
		}
		hangs := c.Begin("tools/call", e2e.Obj{"name": "b_hang"})
		prompt := c.Begin("prompts/get", e2e.Obj{"name": "b/p"})
		told(call("b_wrong"), "BAD_REPLY")
		told(c.End(hangs), "REQUEST_TIMEOUT")
		require.Equal(t, "REQUEST_TIMEOUT", e2e.ParseError(t, c.End(prompt)).Kind(), "other methods are unchanged")
		require.JSONEq(t, `{"code":-32603,"message":"mine"}`, string(call("b_own").Error), "the server's own errors are unchanged")
		require.Equal(t, "TOOL_NOT_FOUND", e2e.ParseError(t, call("b_none")).Kind(), "so do unknown names")
		require.Equal(t, -32602, e2e.ParseError(t, c.Request("tools/call", e2e.Obj{"name": 7})).Code, "and bad requests")
		require.Equal(t, "[-32603, REQUEST_TIMEOUT, b]",
			c.LuaText(`local ok, e = pcall(function() return b.hang{} end) return string.format("[%d, %s, %s]", e.code, e.data.code, e.data.server)`), "scripts catch errors")

		// One without a limit that a busy machine may reach first.
		w = e2e.NewWorld(t)
		x.Backend(w, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("dies")}, "on": e2e.Obj{"tools/call dies": e2e.Actions(e2e.Do("crash"))}})
		c = x.Client(w, e2e.Obj{}, 0, nil).Client
		told(call("b_dies"), "CONNECTION_ERROR")
	})
}

func TestInstructionsHoldAnExcerptOfEveryServers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	long := strings.Repeat("äbcde fghi", 300)
	w.Backend("zed", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "instructions": "Call t\r\n first.\u0000\u001b[31m\u202e "})
	w.Backend("quiet", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	w.Backend("long", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "instructions": long, "era": "modern"})
	c := w.Standalone()
	require.NotEmpty(t, c.Names("tools"))
	modern := e2e.Obj{"_meta": e2e.Obj{e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{}}}
	text := e2e.Str(c.Ok("server/discover", modern), "instructions")
	require.Contains(t, text, "Goblin serves")
	require.Contains(t, text, "\n\nserver zed: Call t first. [31m\n\nserver long: äbcde fghiäbcde")
	require.NotContains(t, text, "quiet:")
	_, excerpt, _ := strings.Cut(text, "server long: ")
	require.Equal(t, 2047, len([]rune(text)), "the whole limit is used")
	require.True(t, strings.HasSuffix(excerpt, "…"), excerpt)
	require.Equal(t, text, e2e.Str(c.Ok("server/discover", modern), "instructions"), "in the same order")
}
