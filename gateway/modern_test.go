package gateway

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

func TestParamsLoseOnlyWhatIsMeantForGoblin(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                  ``,
		`{}`:                `{}`,
		`{"_meta":{}}`:      `{}`,
		`{"a":1,"_meta":3}`: `{"a":1,"_meta":3}`,
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"},"requestState":"s","inputResponses":{},"name":"n"}`:              `{"name":"n"}`,
		`{"name":"n", "arguments":{"requestState":1,"n":1.0e400},"_meta":{"io.modelcontextprotocol\/clientInfo":{},"k":"\u00e9"}}`: `{"name":"n","arguments":{"requestState":1,"n":1.0e400},"_meta":{"k":"\u00e9"}}`,
	} {
		var params []byte
		if in != "" {
			params = []byte(in)
		}
		require.Equal(t, want, string(strip(params, false)), in)
	}
}

func TestResultsSayWhatStatelessClientsNeed(t *testing.T) {
	t.Parallel()
	g := &Gateway{serverInfo: []byte(`{"name":"goblin"}`)}
	const info = `"io.modelcontextprotocol/serverInfo":{"name":"goblin"}`
	for _, c := range []struct{ method, in, want string }{
		{"tools/call", `{}`, `{"resultType":"complete","_meta":{` + info + `}}`},
		{"tools/call", ` {"content":[ ]}`, ` {"resultType":"complete","_meta":{` + info + `},"content":[ ]}`},
		{"tools/call", `{"_meta":{},"n":1e400}`, `{"resultType":"complete","_meta":{` + info + `},"n":1e400}`},
		{"tools/call", `{"n":1,"_meta":{"k":1}}`, `{"resultType":"complete","n":1,"_meta":{` + info + `,"k":1}}`},
		{"tools/call", `{"_meta":{"k":1,"io.modelcontextprotocol/serverInfo":{"name":"b"}}}`, `{"resultType":"complete","_meta":{"k":1,` + info + `}}`},
		{"resources/read", `{"contents":[]}`, `{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{` + info + `},"contents":[]}`},
		{"resources/read", `{"contents":[],"ttlMs":5,"cacheScope":"public"}`, `{"resultType":"complete","_meta":{` + info + `},"contents":[],"ttlMs":5,"cacheScope":"public"}`},
		{"resources/read", `{"resultType":"input_required"}`, `{"_meta":{` + info + `},"resultType":"input_required"}`},
	} {
		got := rawjson.Splice([]byte(c.in), g.modernResult(c.method, []byte(c.in), nil, nil)...)
		require.Equal(t, c.want, string(got))
		require.NoError(t, rawjson.Valid(got))
	}
}

func FuzzStatelessEnvelope(f *testing.F) {
	f.Add([]byte(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"x","k":1},"a":[1, 2]}`))
	f.Add([]byte(`{"requestState":"s","inputResponses":{}}`))
	f.Add([]byte(` { "_meta" : { } } `))
	g := &Gateway{serverInfo: []byte(`{"name":"goblin"}`)}
	f.Fuzz(func(t *testing.T, in []byte) {
		if rawjson.Valid(in) != nil || !rawjson.IsObject(in) {
			return
		}
		for _, out := range [][]byte{
			strip(in, false), strip(in, true), inputParams(in),
			rawjson.Splice(in, g.modernResult("tools/list", in, nil, nil)...),
		} {
			require.NoError(t, rawjson.Valid(out), "%s", out)
			require.True(t, json.Valid(out))
		}
	})
}

func TestNotFoundIsToldAsStatelessClientsKnowIt(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"code":-32002,"message":"m"}`:                         `{"code":-32602,"message":"m","data":{"uri":"u"}}`,
		`{"code":-32002,"message":"m","data":{"k":1}}`:          `{"code":-32602,"message":"m","data":{"k":1,"uri":"u"}}`,
		`{"code":-32002,"message":"m","data":{"uri":"theirs"}}`: `{"code":-32602,"message":"m","data":{"uri":"theirs"}}`,
		`{"code":-32002,"message":"m","data":7}`:                `{"code":-32602,"message":"m","data":7}`,
		`{"code":-32000,"message":"m"}`:                         `{"code":-32000,"message":"m"}`,
	} {
		got := modernError([]byte(in), "u")
		require.Equal(t, want, string(got))
		require.NotEqual(t, codeResourceNotFound, jsonrpc.ParseErrorObject(got).Code)
	}
}
