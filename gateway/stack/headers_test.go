package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/registry"
)

// httpServer is a server over HTTP with one tool, which sets a cookie.
func httpServer(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`,
			"tools/call": `{"content":[]}`,
		}[m.Method]
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "s3cr3t-cookie")
		w.Header().Set("X-Answered-By", "the test")
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case result == "":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestRecordsHaveIDsAndHeadersWithoutSecrets(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("goblin.yaml", []byte("gateway: {listen: '127.0.0.1:0', auth_token: s3cr3t-of-goblin}\nservers: {s: {url: "+httpServer(t).URL+", headers: {Authorization: Bearer s3cr3t, X-Team: blue, X-Odd: s3cr3t-value}}}"), os.LookupEnv)
	require.NoError(t, err)
	mask := &config.Mask{}
	mask.Add(cfg)
	i, err := New(Options{Config: cfg, Version: "v", Logger: slog.New(slog.DiscardHandler), HTTP: true, Mask: mask})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	i.AwaitLists(ctx)

	session := ""
	post := func(body string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+i.address.Addr().String()+"/mcp?x=s3cr3t", strings.NewReader(body))
		require.NoError(t, err)
		req.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json"}, "Authorization": {"Bearer s3cr3t-of-goblin"},
			"Cookie": {"s3cr3t"}, "X-Asked-By": {"the test"},
		}
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
	}
	defer http.DefaultClient.CloseIdleConnections()
	post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	post(`{"jsonrpc":"2.0","id":"call-1","method":"tools/call","params":{"name":"s_t"}}`)

	rec := recordOf(t, i, "tools/call", 0)
	require.Equal(t, "http", registry.WireID(rec.Wire, registry.Transport))
	require.Equal(t, `"call-1"`, registry.WireID(rec.Wire, registry.ClientID))
	require.Regexp(t, `^\d+$`, registry.WireID(rec.Wire, registry.ServerID))
	lines := func(p registry.WirePart) string { return strings.Join(registry.WireLines(rec.Wire, p), "\n") }
	require.Regexp(t, `^POST /mcp HTTP/1.1\n`, lines(registry.FromClient))
	require.Contains(t, lines(registry.FromClient), "X-Asked-By: the test")
	require.Contains(t, lines(registry.FromClient), "Authorization: [hidden]")
	require.Equal(t, "HTTP/1.1 200 OK\nContent-Type: application/json", lines(registry.WireToClient))
	require.Regexp(t, `^POST / HTTP/1.1\n`, lines(registry.WireToServer))
	require.Contains(t, lines(registry.WireToServer), "X-Team: blue")
	require.Contains(t, lines(registry.WireToServer), "User-Agent: goblin/v")
	require.Contains(t, lines(registry.WireToServer), "X-Odd: [hidden]", "secrets of the config are redacted by value")
	require.Regexp(t, `^HTTP/1.1 200 OK\n`, lines(registry.FromServer))
	require.Contains(t, lines(registry.FromServer), "X-Answered-By: the test")
	require.Contains(t, lines(registry.FromServer), "Set-Cookie: [hidden]")
	require.NotContains(t, string(rec.Wire), "s3cr3t")
	require.NotContains(t, string(rec.Wire), session)

	p := join(t, i) // a stream has IDs only
	p.ask("tools/call", `{"name":"s_t"}`)
	rec = recordOf(t, i, "tools/call", rec.Seq)
	require.Equal(t, "1", registry.WireID(rec.Wire, registry.ClientID))
	require.Empty(t, registry.WireLines(rec.Wire, registry.FromClient))
	require.NotEmpty(t, registry.WireLines(rec.Wire, registry.FromServer))
	p.ask("ping", `{}`)
	require.Equal(t, "i1\ntstdio\n", string(recordOf(t, i, "ping", rec.Seq).Wire), "Goblin answers it itself")
}

// recordOf waits for a record of a method that is newer than the given one. It may come
// after the answer.
func recordOf(t *testing.T, i *Stack, method string, newer uint64) registry.TrafficRecord {
	t.Helper()
	var found registry.TrafficRecord
	require.Eventually(t, func() bool {
		for _, rec := range i.Registry().Traffic().Window(0, -1) {
			if rec.Seq > newer && rec.Method == method && rec.Direction == registry.ToServer {
				found, _ = i.Registry().Traffic().Record(rec.Seq)
			}
		}
		return found.Seq > 0
	}, patience, 1e6)
	return found
}
