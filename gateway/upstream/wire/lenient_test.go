package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream/wire"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte(`log {"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":{"jsonrpc":"2.0"`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := wire.ParseFrame(frame, 512)
		if err != nil {
			var bad *jsonrpc.ParseError
			require.ErrorAs(t, err, &bad)
			wire.AsksForAnswer(frame)
			return
		}
		if m.Method == "" {
			require.True(t, (m.Result == nil) != (m.Error == nil))
		}
	})
}
