package upstream

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/registry/rawjson"
)

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
			c.Edits = []rawjson.Edit{rawjson.ReplaceEdit(c.Params, rawjson.Get(c.Params, "name"), []byte(`"other"`))}
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
