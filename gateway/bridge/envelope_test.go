package bridge_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/bridge"
	"goblin/gateway/jsonrpc"
)

func TestScan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		frame, id, method string
		answer, failed    bool
	}{
		"request":              {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"id":2,"method":"x"}}`, "1", "tools/call", false, false},
		"id last":              {`{"method":"ping","params":{"id":2,"a":["}",{"id":3}],"s":"\\\"}"},"id":"x\"y"}`, `"x\"y"`, "ping", false, false},
		"notification":         {`{"method":"notifications/x","params":{"id":1}}`, "", "notifications/x", false, false},
		"result first":         {`{"result":{"id":2},"id":1}`, "1", "", true, false},
		"error":                {`{"jsonrpc":"2.0","id":1,"error":{}}`, "1", "", true, true},
		"no id":                {`{"jsonrpc":"2.0","id":null,"error":{}}`, "", "", true, true},
		"escaped names":        {`{"\u0069d":5,"meth\u006fd":"tools\/call"}`, "5", "tools/call", false, false},
		"spaces":               {" {\t\"id\" :\r 7 , \"method\" : \"ping\" } ", "7", "ping", false, false},
		"cut off":              {`{"jsonrpc":"2.0","id":3,"method":"tools/call","par`, "3", "tools/call", false, false},
		"cut off in a string":  {`{"id":3,"method":"too`, "3", "", false, false},
		"no object":            {`[{"id":1,"method":"x"}]`, "", "", false, false},
		"nothing":              {``, "", "", false, false},
		"only an open bracket": {`{`, "", "", false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			id, method, answer, failed := bridge.Scan([]byte(tt.frame))
			require.Equal(t, tt.id, string(id))
			require.Equal(t, tt.method, method)
			require.Equal(t, tt.answer, answer)
			require.Equal(t, tt.failed, failed)
		})
	}
}

// FuzzScan checks that the bridge and the full parser agree on every valid frame.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":[{}]}}`, `{"result":{"id":2},"id":"\"","jsonrpc":"2.0"}`,
		`{"error":[],"jsonrpc":"2.0","id":null}`, `{"id":`, `{"id":1,"`, `{"a":"\\`, `{"i\u0064":-1,"method":"","jsonrpc":"2.0"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, method, answer, failed := bridge.Scan([]byte(s))
		m, err := jsonrpc.Parse([]byte(s))
		if err != nil {
			return
		}
		if m.Method != "" {
			// The parser treats a request with a result as a request. The bridge may stop
			// before it reads one of the two.
			if m.Result != nil || m.Error != nil {
				return
			}
			require.Equal(t, m.Method, method)
		} else {
			require.True(t, answer)
			require.Equal(t, m.Error != nil, failed)
		}
		require.Equal(t, string(m.ID), string(id))
	})
}

func BenchmarkScan(b *testing.B) {
	frame := []byte(`{"method":"tools/call","params":{"text":"` + strings.Repeat("x", 1000) + `"},"jsonrpc":"2.0","id":1}`)
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		bridge.Scan(frame)
	}
}
