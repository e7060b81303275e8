package jsonrpc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// FuzzErrors checks that any error object becomes a complete one, which then stays the
// same.
func FuzzErrors(f *testing.F) {
	f.Add([]byte(`{"code":-32002,"message":"m","data":{"uri":"u"}}`))
	f.Add([]byte(`{"code":1e400,"message":null}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if rawjson.Valid(raw) != nil {
			return
		}
		e := jsonrpc.ParseErrorObject(raw)
		object := e.Object()
		require.NoError(t, rawjson.Valid(object))
		require.Equal(t, e, jsonrpc.ParseErrorObject(object))
		m, err := jsonrpc.Parse(e.Frame([]byte(`"id"`)))
		require.NoError(t, err)
		require.True(t, m.IsResponse())
	})
}

// FuzzIDs checks that IDs have the same key only if they are the same value.
func FuzzIDs(f *testing.F) {
	f.Add([]byte(`"a"`), []byte(`"\u0061"`))
	f.Add([]byte(`1`), []byte(`"1"`))
	f.Add([]byte(`9007199254740993`), []byte(`9007199254740992`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, id := range [][]byte{a, b} {
			m, err := jsonrpc.Parse(append(append([]byte(`{"jsonrpc":"2.0","method":"m","id":`), id...), '}'))
			if err != nil || string(m.ID) != string(id) {
				return
			}
		}
		same := string(a) == string(b)
		if x, ok := rawjson.String(a); ok {
			y, ok := rawjson.String(b)
			same = ok && x == y
		}
		if rawjson.IsString(a) || rawjson.IsString(b) || same {
			require.Equal(t, same, jsonrpc.IDString(a) == jsonrpc.IDString(b), "%s and %s", a, b)
		}
	})
}
