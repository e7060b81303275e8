package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// line sends a raw line, waits for n answers, then shows by a ping that no
// further one came, and gives the answers. It forgets them, as several may
// carry no id.
func (c *client) line(text string, n int) []message {
	c.t.Helper()
	c.update(func() { clear(c.replies) })
	c.write([]byte(text))
	var out []message
	collect := func() bool {
		out = nil
		for _, all := range c.replies {
			out = append(out, all...)
		}
		return len(out) >= n
	}
	c.wait("an answer to "+text[:min(len(text), 200)], collect)
	pong := c.request("ping", nil)
	c.update(func() {
		delete(c.replies, string(pong.ID))
		collect()
		clear(c.replies)
	})
	require.Len(c.t, out, n, text[:min(len(text), 200)])
	return out
}

func TestC01_C04_C05_C06_OddLinesGetTheRightCodeAndTheConnectionLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	c := w.standalone()
	c.names("tools")
	for _, odd := range []struct {
		name, line, id string
		code           int
	}{
		{"no json", `not json`, `null`, -32700},
		{"cut off", `{"jsonrpc":"2.0","id":"cut","method":"ping"`, ``, -32700},
		{"two values", `{} {}`, `null`, -32700},
		{"batch", `[{"jsonrpc":"2.0","id":"in-batch","method":"ping"}]`, `null`, -32600},
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
		got := c.line(odd.line, 1)
		e := parseError(t, got[0])
		require.Equal(t, odd.code, e.Code, "%s: %s", odd.name, got[0].raw)
		if odd.id == "null" {
			require.Contains(t, []string{"", "null"}, string(got[0].ID), odd.name)
		} else if odd.id != "" {
			require.Equal(t, odd.id, string(got[0].ID), odd.name)
		}
	}
}

func TestC02_C03_C17_LinesThatNeedNoAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.standalone()
	for _, line := range []string{
		``, ` `, "\t\r", `{"jsonrpc":"2.0","method":"notifications/unknown"}`, `{"jsonrpc":"2.0","method":"no/such"}`,
		`{"jsonrpc":"2.0","id":"alien","result":{}}`, `{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}`,
	} {
		c.line(line, 0)
	}
	c.line(" {\"jsonrpc\":\"2.0\",\"id\":\"crlf\",\"method\":\"ping\"} \r", 1)
}

// What a line brings about does not wait behind the blank ones that follow it.
func TestC02_B17_BlankLinesHoldNothingUp(t *testing.T) {
	t.Parallel()
	for mode, end := range map[string]string{"ignore-cancel": "\n\n \r", "blank-lines": ""} { // of the client, of the server
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.backends = append(w.backends, &backend{t: t, name: "bad", conf: obj{"command": badserver, "args": []string{mode}}})
			c := w.standalone()
			c.waitListed("tools", "bad_echo", true)
			for i := range 3 {
				id := strconv.Itoa(100 + i)
				c.write([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"bad_echo"}}` + end))
				require.NotNil(t, c.end(id).Result, id)
			}
		})
	}
}

func TestC07_IdsAreEchoedExactly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	c := w.standalone()
	for _, id := range []string{`9007199254740993`, `-9223372036854775808`, `0`, `""`, `"7"`, `"a\u0041\"ü"`, `"` + strings.Repeat("x", 5000) + `"`} {
		c.write([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"b_t","arguments":{}}}`))
		require.NotNil(t, c.end(id).Result, id)
	}
	for _, id := range []string{`null`, `{}`, `[1]`, `true`} {
		got := c.line(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`, 1)
		require.Equal(t, -32600, parseError(t, got[0]).Code)
	}
}

// Progress is passed on by the read loop of a server that others use too.
func TestC07_LongProgressTokensAreNotRepeated(t *testing.T) {
	eachCombination(t, func(t *testing.T, w *world, x combination) {
		x.backend(w, obj{"tools": []obj{tool("t")}, "on": obj{"tools/call t": actions(do("progress", obj{"n": 3}), do("text", obj{"text": "over"}))}})
		h := x.client(w, obj{}, 0, nil)
		for size, want := range map[int]int{1000: 3, 1100: 0} {
			token := strings.Repeat("t", size)
			m := h.call("tools/call", obj{"name": "b_t", "_meta": obj{"progressToken": token}})
			require.Nil(t, m.Error, m.raw)
			got := 0
			for _, n := range h.notesOf("notifications/progress") {
				if str(n.Params, "progressToken") == token {
					got++
				}
			}
			require.Equal(t, want, got, "of %d bytes", size)
		}
	})
}

func TestC08_C09_InvalidUTF8AndDepth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	c := w.standalone()
	got := c.line("{\"jsonrpc\":\"2.0\",\"id\":\"utf\",\"method\":\"no/such\xff\xfe\"}", 1)
	require.NotNil(t, got[0].Error)
	require.NotContains(t, got[0].raw, "\xff")
	const depth = 200_000
	deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	c.line(`{"jsonrpc":"2.0","id":"deep","method":"ping","params":{"x":`+deep+`}}`, 1) // an answer or an error, and the next line works
}

func TestC10_OversizedLineCostsOnlyItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["limits"] = obj{"frame": "1MiB"}
	w.backend("b", obj{"tools": []obj{tool("t")}})
	c := w.standalone()
	got := c.line(`{"jsonrpc":"2.0","id":"big","method":"ping","params":{"x":"`+strings.Repeat("x", 3<<20)+`"}}`, 1)
	e := parseError(t, got[0])
	require.Contains(t, []int{-32700, -32600}, e.Code)
	require.Equal(t, "b:t:{}", c.callText("b_t", obj{}))
}

func TestC15_RequestsBeforeInitialize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	c := w.pipe("stdio", "--standalone")
	require.JSONEq(t, `{}`, string(c.ok("ping", nil)))
	c.request("tools/list", nil) // an answer of either kind
	c.init()
	require.Equal(t, []string{"b_t"}, c.names("tools"))
}

func TestC16_OddInitialize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	for i, params := range []string{
		`{"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`,
		`{"protocolVersion":"9999-99-99","capabilities":{"vendor":{"x":1}},"clientInfo":{"name":"x","version":"1"}}`,
		`{"protocolVersion":7}`, `{}`, `[]`,
	} {
		c := w.pipe("stdio", "--standalone")
		c.write([]byte(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":` + params + `}`))
		m := c.end(`"init"`)
		if i < 2 {
			require.Nil(t, m.Error, m.raw)
			require.Equal(t, revision, str(m.Result, "protocolVersion"))
		}
		require.NotNil(t, c.request("ping", nil).Result)
		c.close()
	}
}

func TestC17_DuplicateIdsAreEachAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("t")}, "on": obj{"tools/call": actions(do("wait", obj{"name": "go"}))}})
	c := w.standalone()
	for i := range 2 {
		c.write([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":"same","method":"tools/call","params":{"name":"b_t","arguments":{"i":%d}}}`, i)))
	}
	b.waitEvent("wait", "go")
	b.do(do("release", obj{"name": "go"}))
	c.wait("both answers", func() bool { return len(c.replies[`"same"`]) == 2 })
	c.update(func() { delete(c.replies, `"same"`) })
}

func TestInitializeIsAnsweredWhateverTheBackendsDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hang := filesystem()
	hang["on"] = obj{"initialize": actions(do("hang"))}
	b := w.backend("hang", hang)
	w.backend("missing", obj{}, obj{"command": "/no/such/program"})
	w.backend("crash", obj{"on": obj{"start": actions(do("crash", obj{"code": 1}))}})
	c := w.pipe("stdio", "--standalone")
	result := c.init() // startup_wait is 20 s here: only lists may wait for it
	require.Equal(t, revision, str(result, "protocolVersion"))
	require.Equal(t, "goblin", strings.ToLower(str(result, "serverInfo", "name")))
	for _, path := range [][]any{
		{"tools", "listChanged"}, {"prompts", "listChanged"}, {"resources", "listChanged"}, {"resources", "subscribe"},
	} {
		require.Equal(t, "true", string(at(at(result, "capabilities"), path...)), path)
	}
	require.NotNil(t, at(result, "capabilities", "logging"))
	require.NotNil(t, at(result, "capabilities", "completions"))
	b.waitEvent("wait", "hang")
	require.Empty(t, c.notesOf("notifications/tools/list_changed"))
}

func TestC19_EndOfInputWaitsForTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("t")}, "on": obj{"tools/call": actions(do("wait", obj{"name": "go"}))}})
	c := w.standalone()
	id := c.begin("tools/call", obj{"name": "b_t", "arguments": obj{}})
	b.waitEvent("wait", "go")
	c.close()
	b.do(do("release", obj{"name": "go"}))
	require.Equal(t, "b:t:{}", str(c.end(id).Result, "content", 0, "text"))
	require.Zero(t, c.prog.ends(patience))
	b.waitGone()
}

func TestC12_ManyCallsAtOnceAreEachAnsweredOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	c := w.standalone()
	c.names("tools")
	const n = 10_000
	var ids []string
	for i := range n {
		ids = append(ids, c.begin("tools/call", obj{"name": "b_t", "arguments": obj{"i": i}}))
	}
	for i, id := range ids {
		require.Equal(t, fmt.Sprintf(`b:t:{"i":%d}`, i), str(c.end(id).Result, "content", 0, "text"))
	}
}

func TestUnknownFieldsOfRequestsAreHarmless(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.standalone()
	c.write([]byte(`{"extra":{"id":5},"method":"ping","id":"x","jsonrpc":"2.0"}`))
	require.JSONEq(t, `{}`, string(c.end(`"x"`).Result))
	require.Equal(t, json.RawMessage(nil), c.end(`"x"`).Error)
}
