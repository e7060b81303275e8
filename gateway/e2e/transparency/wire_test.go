//go:build e2e

package transparency

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// exchangeLine sends a raw line and returns n answers. A ping shows that no further one
// arrived. It forgets the answers, because several may have no id.
func exchangeLine(c *e2e.Client, text string, n int) []e2e.Message {
	c.T.Helper()
	c.Update(func() { clear(c.Replies) })
	c.Write([]byte(text))
	var out []e2e.Message
	collect := func() bool {
		out = nil
		for _, all := range c.Replies {
			out = append(out, all...)
		}
		return len(out) >= n
	}
	c.Wait("an answer to "+text[:min(len(text), 200)], collect)
	pong := c.Request("ping", nil)
	c.Update(func() {
		delete(c.Replies, string(pong.ID))
		collect()
		clear(c.Replies)
	})
	require.Len(c.T, out, n, text[:min(len(text), 200)])
	return out
}

func TestC01_to_C09_C17_OddLinesGetTheRightCodeAndTheConnectionLives(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Standalone()
	c.Names("tools")
	oddLinesGetTheRightCode(t, c)
	linesThatNeedNoAnswer(c)
	idsAreEchoedExactly(t, c)
	invalidUTF8AndDepth(t, c)
	require.JSONEq(t, `{}`, string(exchangeLine(c, `{"extra":{"id":5},"method":"ping","id":"x","jsonrpc":"2.0"}`, 1)[0].Result), "unknown fields")
}

func oddLinesGetTheRightCode(t *testing.T, c *e2e.Client) {
	t.Helper()
	for _, odd := range []struct {
		name, line, id string
		code           int
	}{
		{"no json", `not json`, `null`, -32700},
		{"cut off", `{"jsonrpc":"2.0","id":"cut","method":"ping"`, ``, -32700},
		{"two values", `{} {}`, `null`, -32700},
		{"batch", `[{"jsonrpc":"2.0","id":"in-batch","method":"ping"}]`, `"in-batch"`, -32600},
		{"empty batch", `[]`, `null`, -32600},
		{"a number", `7`, `null`, -32600},
		{"null", `null`, `null`, -32600},
		{"no version", `{"id":"v0","method":"ping"}`, `"v0"`, -32600},
		{"other version", `{"jsonrpc":"1.0","id":"v1","method":"ping"}`, `"v1"`, -32600},
		{"method no text", `{"jsonrpc":"2.0","id":"m7","method":7}`, `"m7"`, -32600},
		{"params no object", `{"jsonrpc":"2.0","id":"p7","method":"ping","params":7}`, `"p7"`, -32600},
		{"unknown method", `{"jsonrpc":"2.0","id":"um","method":"no/such"}`, `"um"`, -32601},
		{"name no text", `{"jsonrpc":"2.0","id":"n7","method":"tools/call","params":{"name":7}}`, `"n7"`, -32602},
		{"name missing", `{"jsonrpc":"2.0","id":"nm","method":"tools/call","params":{}}`, `"nm"`, -32602},
		{"no params", `{"jsonrpc":"2.0","id":"np","method":"tools/call"}`, `"np"`, -32602},
		{"uri no text", `{"jsonrpc":"2.0","id":"u7","method":"resources/read","params":{"uri":["x"]}}`, `"u7"`, -32602},
		{"uri missing", `{"jsonrpc":"2.0","id":"ur","method":"resources/subscribe","params":{}}`, `"ur"`, -32602},
		{"prompt missing", `{"jsonrpc":"2.0","id":"pm","method":"prompts/get","params":{}}`, `"pm"`, -32602},
		{"params an array", `{"jsonrpc":"2.0","id":"pa","method":"tools/call","params":["b_t"]}`, `"pa"`, -32602},
	} {
		got := exchangeLine(c, odd.line, 1)
		e := e2e.ParseError(t, got[0])
		require.Equal(t, odd.code, e.Code, "%s: %s", odd.name, got[0].Raw)
		if odd.id == "null" {
			require.Contains(t, []string{"", "null"}, string(got[0].ID), odd.name)
		} else if odd.id != "" {
			require.Equal(t, odd.id, string(got[0].ID), odd.name)
		}
	}
}

func linesThatNeedNoAnswer(c *e2e.Client) {
	c.T.Helper()
	for _, line := range []string{
		``, ` `, "\t\r", `{"jsonrpc":"2.0","method":"notifications/unknown"}`, `{"jsonrpc":"2.0","method":"no/such"}`,
		`{"jsonrpc":"2.0","id":"alien","result":{}}`, `{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}`,
	} {
		exchangeLine(c, line, 0)
	}
	exchangeLine(c, " {\"jsonrpc\":\"2.0\",\"id\":\"crlf\",\"method\":\"ping\"} \r", 1)
}

func idsAreEchoedExactly(t *testing.T, c *e2e.Client) {
	t.Helper()
	for _, id := range []string{`9007199254740993`, `-9223372036854775808`, `0`, `""`, `"7"`, `"a\u0041\"ü"`, `"` + strings.Repeat("x", 5000) + `"`} {
		c.Write([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"b_t","arguments":{}}}`))
		require.NotNil(t, c.End(id).Result, id)
	}
	for _, id := range []string{`null`, `{}`, `[1]`, `true`} {
		got := exchangeLine(c, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`, 1)
		require.Equal(t, -32600, e2e.ParseError(t, got[0]).Code)
	}
}

func invalidUTF8AndDepth(t *testing.T, c *e2e.Client) {
	t.Helper()
	got := exchangeLine(c, "{\"jsonrpc\":\"2.0\",\"id\":\"utf\",\"method\":\"no/such\xff\xfe\"}", 1)
	require.NotNil(t, got[0].Error)
	require.NotContains(t, got[0].Raw, "\xff")
	const depth = 200_000
	deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	exchangeLine(c, `{"jsonrpc":"2.0","id":"deep","method":"ping","params":{"x":`+deep+`}}`, 1) // an answer or an error, and the next line works
}

func TestInitializeIsAnsweredWhateverTheBackendsDo(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	hang := e2e.Filesystem()
	hang["on"] = e2e.Obj{"initialize": e2e.Actions(e2e.Do("hang"))}
	b := w.Backend("hang", hang)
	w.Backend("missing", e2e.Obj{}, e2e.Obj{"command": "/no/such/program"})
	w.Backend("crash", e2e.Obj{"on": e2e.Obj{"start": e2e.Actions(e2e.Do("crash", e2e.Obj{"code": 1}))}})
	c := w.Pipe("stdio", "--standalone")
	result := c.Init() // startup_wait is 20 s here: only lists may wait for it
	require.Equal(t, e2e.Revision, e2e.Str(result, "protocolVersion"))
	require.Equal(t, "goblin", strings.ToLower(e2e.Str(result, "serverInfo", "name")))
	for _, path := range [][]any{
		{"tools", "listChanged"}, {"prompts", "listChanged"}, {"resources", "listChanged"}, {"resources", "subscribe"},
	} {
		require.Equal(t, "true", string(e2e.At(e2e.At(result, "capabilities"), path...)), path)
	}
	require.NotNil(t, e2e.At(result, "capabilities", "logging"))
	require.NotNil(t, e2e.At(result, "capabilities", "completions"))
	b.WaitEvent("wait", "hang")
	require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
}

func TestC19_EndOfInputWaitsForTheAnswer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}))}})
	c := w.Standalone()
	id := c.Begin("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{}})
	b.WaitEvent("wait", "go")
	c.Close()
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Equal(t, "b:t:{}", e2e.Str(c.End(id).Result, "content", 0, "text"))
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	b.WaitGone()
}

func TestC10_OversizedLineCostsOnlyItself(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["limits"] = e2e.Obj{"frame": "1MiB"}
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Standalone()
	got := exchangeLine(c, `{"jsonrpc":"2.0","id":"big","method":"ping","params":{"x":"`+strings.Repeat("x", 3<<20)+`"}}`, 1)
	e := e2e.ParseError(t, got[0])
	require.Contains(t, []int{-32700, -32600}, e.Code)
	require.Equal(t, "b:t:{}", c.CallText("b_t", e2e.Obj{}))
}

func TestC17_DuplicateIdsAreEachAnswered(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}))}})
	c := w.Standalone()
	for i := range 2 {
		c.Write([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":"same","method":"tools/call","params":{"name":"b_t","arguments":{"i":%d}}}`, i)))
	}
	b.WaitEvent("wait", "go")
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	c.Wait("both answers", func() bool { return len(c.Replies[`"same"`]) == 2 })
	c.Update(func() { delete(c.Replies, `"same"`) })
}
