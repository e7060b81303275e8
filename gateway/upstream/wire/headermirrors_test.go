package wire_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/upstream/wire"
)

func TestArgumentsThatAHeaderTakes(t *testing.T) {
	t.Parallel()
	list := [][]byte{[]byte(`{"name":"t","inputSchema":{"type":"object","properties":{"v":{"type":"string","x-mcp-header":"V"}}}}`)}
	m, kept := wire.MirrorsFromTools(list, func(_ string, err error) bool { t.Error(err); return false })
	require.Len(t, kept, 1)
	require.Len(t, m["t"], 1)
	tests := []struct{ name, arguments, header string }{
		{"a text", `{"v":"plain"}`, "plain"},
		{"a text beyond ASCII", `{"v":"größer"}`, "=?base64?Z3LDtsOfZXI=?="},
		{"a boolean", `{"v":true}`, "true"},
		{"an integer", `{"v":-12}`, "-12"},
		{"the greatest integer that all readers of JSON agree on", `{"v":9007199254740991}`, "9007199254740991"},
		{"a greater one", `{"v":9007199254740992}`, ""},
		{"a fraction", `{"v":1.5}`, ""},
		{"an object", `{"v":{}}`, ""},
		{"null", `{"v":null}`, ""},
		{"none", `{}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			head := http.Header{}
			m.Headers(head, "t", []byte(tt.arguments))
			require.Equal(t, tt.header, head.Get(m["t"][0].HeaderName()))
			m.Headers(head, "other", []byte(tt.arguments))
			require.LessOrEqual(t, len(head), 1)
		})
	}
}
