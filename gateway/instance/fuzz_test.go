package instance

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
)

// FuzzSession: whatever a client sends to the whole gateway, each request is
// answered once, and the gateway goes on.
func FuzzSession(f *testing.F) {
	const (
		hello    = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}` + "\n"
		envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"progressToken":1}`
	)
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"goblin://servers"}}`,
		`{"jsonrpc":"2.0","id":"a","method":"resources/list","params":{"cursor":"AAAA"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"goblin://servers"}}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"goblin://servers"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x_y","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x/y"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"goblin://{x}"},"argument":{"name":"x","value":"s"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"odd"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + envelope + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"mcp://a/%zz","requestState":"x",` + envelope + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["goblin://servers"]},` + envelope + `}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	cfg, err := config.Parse("goblin.yaml", []byte("servers: {}"), os.LookupEnv)
	require.NoError(f, err)
	i, err := New(Options{Config: cfg, Version: "v", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	f.Cleanup(func() {
		cancel()
		require.NoError(f, <-ended)
	})
	f.Fuzz(func(t *testing.T, input []byte, greet bool) {
		var out bytes.Buffer
		if greet {
			input = append([]byte(hello), input...)
		}
		require.NoError(t, i.ServeStdio(t.Context(), bytes.NewReader(input), &out))
		answers := map[string]int{}
		for line := range strings.Lines(out.String()) {
			m, err := jsonrpc.Parse([]byte(line))
			require.NoError(t, err, "%s", line)
			if m.IsResponse() {
				answers[jsonrpc.IDString(m.ID)]++
			}
		}
		asked := map[string]int{}
		for line := range bytes.Lines(input) {
			if m, err := jsonrpc.Parse(bytes.TrimSpace(line)); err == nil && m.IsRequest() {
				asked[jsonrpc.IDString(m.ID)]++
			}
		}
		for id, n := range answers {
			if asked[id] > 0 {
				require.LessOrEqual(t, n, asked[id], "%s", out.String())
			}
		}
	})
}
