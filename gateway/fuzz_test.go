package gateway

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// visitor does something with a client's first request.
type visitor func(*downstream.Exchange)

func (v visitor) Handle(x *downstream.Exchange)              { v(x) }
func (visitor) Opened(*downstream.Session)                   {}
func (visitor) Closed(*downstream.Session)                   {}
func (visitor) Notified(*downstream.Session, string, []byte) {}

// FuzzRequestState: a state that was not given for this very request leads to
// nothing but its refusal.
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
		err := downstream.ServeStream(t.Context(), downstream.Options{
			Logger: slog.New(slog.DiscardHandler),
			Handler: visitor(func(x *downstream.Exchange) {
				defer x.Fail(jsonrpc.Errorf(jsonrpc.CodeInternal, "done"))
				seen = true
				r := &request{Exchange: x}
				var t1 holds
				t1.init(time.Minute)
				own := t1.again(r)
				h, err := t1.resume(r, rawjson.Quote(own))
				require.NoError(t, err)
				require.Nil(t, h)
				foreign := state
				if text, ok := rawjson.String([]byte(state)); ok && append {
					foreign = string(rawjson.Quote(own + text))
					if text == "" {
						return
					}
				}
				_, err = t1.resume(r, []byte(foreign))
				require.ErrorContains(t, err, "requestState")
			}),
		}, "stdio", strings.NewReader(line), io.Discard)
		require.NoError(t, err)
		require.True(t, seen)
	})
}
