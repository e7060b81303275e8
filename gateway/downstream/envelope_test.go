package downstream

import (
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

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
		require.Equal(t, want, string(stripEnvelope(params, false)), in)
	}
}

func TestResultsSayWhatStatelessClientsNeed(t *testing.T) {
	t.Parallel()
	server := []byte(`{"name":"goblin"}`)
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
		got := rawjson.Splice([]byte(c.in), addEnvelope(c.method, server, []byte(c.in), nil, nil)...)
		require.Equal(t, c.want, string(got))
		require.NoError(t, rawjson.Valid(got))
	}
}

func FuzzStatelessEnvelope(f *testing.F) {
	f.Add([]byte(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"x","k":1},"a":[1, 2]}`))
	f.Add([]byte(`{"requestState":"s","inputResponses":{}}`))
	f.Add([]byte(` { "_meta" : { } } `))
	server := []byte(`{"name":"goblin"}`)
	f.Fuzz(func(t *testing.T, in []byte) {
		if rawjson.Valid(in) != nil || !rawjson.IsObject(in) {
			return
		}
		for _, out := range [][]byte{
			stripEnvelope(in, false), stripEnvelope(in, true), inputParams(in),
			rawjson.Splice(in, addEnvelope("tools/list", server, in, nil, nil)...),
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
		got := toModernNotFound([]byte(in), []byte(`"u"`))
		require.Equal(t, want, string(got))
		require.NotEqual(t, CodeResourceNotFound, jsonrpc.ParseErrorObject(got).Code)
	}
}

// visitor handles a client's first request.
type visitor func(*Request)

func (v visitor) Handle(x *Request)                         { v(x) }
func (visitor) SessionOpened(*Session)                      {}
func (visitor) SessionClosed(*Session)                      {}
func (visitor) HandleNotification(*Session, string, []byte) {}

// FuzzRequestState checks that a state from another request is refused.
func FuzzRequestState(f *testing.F) {
	f.Add(`""`, false)
	f.Add(`"`+strings.Repeat("A", 86)+`"`, true)
	f.Add(`null`, true)
	f.Add(`{"a":1}`, false)
	f.Fuzz(func(t *testing.T, state string, append bool) {
		if rawjson.Valid([]byte(state)) != nil {
			return
		}
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1.0}}}`
		seen := false
		err := ServeStream(t.Context(), Options{
			Logger: slog.New(slog.DiscardHandler),
			Handler: visitor(func(x *Request) {
				defer x.Fail(jsonrpc.Errorf(jsonrpc.CodeInternal, "done"))
				seen = true
				calls := NewParkedCalls(time.Minute, nil)
				own := calls.encodeState(ticket{}, x)
				c, _, err := calls.find(x, rawjson.Quote(own))
				require.NoError(t, err)
				require.Nil(t, c)
				foreign := state
				if text, ok := rawjson.String([]byte(state)); ok && append {
					foreign = string(rawjson.Quote(own + text))
					if text == "" {
						return
					}
				}
				_, _, err = calls.find(x, []byte(foreign))
				require.ErrorContains(t, err, "requestState")
			}),
		}, "stdio", strings.NewReader(line), io.Discard)
		require.NoError(t, err)
		require.True(t, seen)
	})
}
