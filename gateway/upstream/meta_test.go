package upstream

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

func TestCleanTakesTheProtocolOutOfAResultAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`{}`, `{}`},
		{`{"resultType":"complete"}`, `{}`},
		{`{"resultType":"complete","a":1.50}`, `{"a":1.50}`},
		{`{"a":1.50, "resultType":"complete"}`, `{"a":1.50}`},
		{`{"a":1,"resultType":"complete","b":2}`, `{"a":1,"b":2}`},
		{`{"result\u0054ype":"complete","b":2}`, `{"b":2}`},
		{`{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x"}},"b":2}`, `{"b":2}`},
		{`{"b":2,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x"}},"resultType":"complete"}`, `{"b":2}`},
		{`{"_meta":{"v":1,"io.modelcontextprotocol/serverInfo":{}},"resultType":"complete","b":2}`, `{"_meta":{"v":1},"b":2}`},
		{`{"_meta":{"io.modelcontextprotocol/serverInfo":{},"v":1,"io.modelcontextprotocol/subscriptionId":3}}`, `{"_meta":{"v":1}}`},
		{`{"_meta":{"io.modelcontextprotocol/related-task":{"a":1}}}`, `{"_meta":{"io.modelcontextprotocol/related-task":{"a":1}}}`},
		{`{"_meta":{}}`, `{"_meta":{}}`},
		{`{"_meta":5,"resultType":"complete"}`, `{"_meta":5}`},
		{`{"structuredContent":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":1}}}`, `{"structuredContent":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":1}}}`},
	} {
		require.Equal(t, c.want, string(wire.StripHopKeys([]byte(c.in), true)), c.in)
	}
	require.Equal(t, `{"resultType":"mine"}`, string(wire.StripHopKeys([]byte(`{"resultType":"mine"}`), false)), "of params it is the server's own")
}

func TestModernFrameKeepsWhatTheClientSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, func() config.Server { c, _ := fakeConfig(t, "all"); return c }(), nil)
	l := newLink(r.Server, "", "http")
	defer l.cancel()
	const token = `"progressToken":7,`
	const own = token + `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{"listChanged":true}},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"goblin","version":"test"}`
	for _, c := range []struct {
		name, params, want string
		change             func(c *Call)
	}{
		{"none", ``, `{"_meta":{` + own + `}}`, nil},
		{"empty", `{}`, `{"_meta":{` + own + `}}`, nil},
		{"without", `{"a":1.50}`, `{"_meta":{` + own + `},"a":1.50}`, nil},
		{"with", `{"a":1,"_meta":{"v":2}}`, `{"a":1,"_meta":{` + own + `,"v":2}}`, nil},
		{"with an empty one", `{"_meta":{}}`, `{"_meta":{` + own + `}}`, nil},
		{"with another's", `{"_meta":{"io.modelcontextprotocol/logLevel":"debug","v":2}}`, `{"_meta":{` + own + `,"v":2}}`, nil},
		{"with another's alone", `{"_meta":{"io.modelcontextprotocol/logLevel":"debug"}}`, `{"_meta":{` + own + `}}`, nil},
		{"that is none", `{"_meta":null,"a":1}`, `{"_meta":{` + strings.TrimPrefix(own, token) + `},"a":1}`, nil},
		{"level", `{}`, `{"_meta":{` + own + `,"io.modelcontextprotocol/logLevel":"error"}}`, func(c *Call) { c.LogLevel = "error" }},
		{"retry", `{"name":"t","requestState":"forged"}`, `{"inputResponses":{"k":{}},"requestState":"s","_meta":{` + own + `},"name":"t"}`, func(c *Call) {
			c.again([]byte(`{"k":{}}`), []byte(`"s"`))
		}},
		{"retry of nothing", `{"requestState":"forged"}`, `{"requestState":"s","_meta":{` + own + `}}`, func(c *Call) { c.again(nil, []byte(`"s"`)) }},
		{"token and name", `{"_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"x"},"name":"n"}`, `{"_meta":{` + strings.TrimPrefix(own, token) + `,"progressToken":7},"name":"other"}`, func(c *Call) {
			c.Edits = []rawjson.Edit{rawjson.Replace(c.Params, rawjson.Get(c.Params, "name"), []byte(`"other"`))}
		}},
	} {
		call := &Call{Method: "m", modern: true}
		if c.params != "" {
			call.Params = []byte(c.params)
		}
		if c.change != nil {
			c.change(call)
		}
		call.place()
		frame := l.modernFrame(call, []byte("7"))
		require.NoError(t, rawjson.Valid(frame), "%s: %s", c.name, frame)
		require.Equal(t, c.want, string(rawjson.Get(frame, "params")), c.name)
	}
}

// FuzzClean: whatever a backend sends stays valid, and what was not the
// protocol's stays.
func FuzzClean(f *testing.F) {
	f.Add([]byte(`{"a":1,"_meta":{"io.modelcontextprotocol/serverInfo":{},"v":1},"resultType":"complete"}`))
	f.Add([]byte(`{ "_meta" : { } , "resultType" : 1 , "resultType" : 2 }`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if rawjson.Valid(text) != nil || !rawjson.IsObject(text) || !json.Valid(text) {
			return
		}
		var before, after map[string]any
		require.NoError(t, json.Unmarshal(text, &before))
		out := wire.StripHopKeys(bytes.Clone(text), true)
		require.NoError(t, rawjson.Valid(out), "%s became %s", text, out)
		require.NoError(t, json.Unmarshal(out, &after))
		delete(before, "resultType")
		if m, ok := before["_meta"].(map[string]any); ok {
			n := len(m)
			for _, k := range wire.HopKeys {
				delete(m, k)
			}
			if n > 0 && len(m) == 0 {
				delete(before, "_meta")
			}
		}
		require.Equal(t, before, after)
	})
}
