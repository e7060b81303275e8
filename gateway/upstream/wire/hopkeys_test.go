package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

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
	require.Equal(t, `{"resultType":"mine"}`, string(wire.StripHopKeys([]byte(`{"resultType":"mine"}`), false)), "in params it belongs to the server")
}

// FuzzClean checks that any message of a server stays valid, and that only keys of the
// protocol are removed.
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
