package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
)

// FuzzSession checks that the gateway answers each request once and keeps running, for
// any input of a client.
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
		require.NoError(t, i.ServeStdio(t.Context(), "", bytes.NewReader(input), &out))
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

// panics collects log lines about panics.
type panics struct {
	mu   sync.Mutex
	text []string
}

func (l *panics) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("panicked")) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.text = append(l.text, string(p))
	}
	return len(p), nil
}

// FuzzServer checks a call during any output of a server. The client must receive one
// answer and valid messages only, and the gateway must keep running. $ID is the ID of the
// call.
func FuzzServer(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1,"total":2,"message":"m"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"1","progress":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"odd","logger":7,"data":{"a":[1]}}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:\ud800"}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}`,
		`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"x","status":"working"}}`,
		`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}` + "\n" +
			`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"sampling/createMessage","params":[]}`,
		`{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"resource_link","uri":"x:1"},{"type":"resource","resource":{"uri":7}}],"_meta":{"a":1}}}`,
		`{"jsonrpc":"2.0","id":$ID,"result":{"task":{"taskId":"t","status":"working","ttl":1}}}`,
		`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32042,"message":"m","data":{"uri":"x:1","elicitations":[{}]}}}`,
		`{"jsonrpc":"2.0","id":$ID,"result":null}`,
		`{"jsonrpc":"2.0","id":$ID}`,
		`[{"jsonrpc":"2.0","id":$ID,"result":{}}]`,
		"\xff{}",
	} {
		f.Add([]byte(s))
	}
	says := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"s","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			for line := range bytes.SplitSeq(bytes.ReplaceAll(<-says, []byte("$ID"), m.ID), []byte("\n")) {
				fmt.Fprintf(w, "data: %s\n\n", line)
			}
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", m.ID)
			return
		case "server/discover":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	cfg, err := config.Parse("goblin.yaml", []byte("servers: {s: {url: "+server.URL+"}}"), os.LookupEnv)
	require.NoError(f, err)
	log := &panics{}
	i, err := New(Options{Config: cfg, Version: "v", Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	f.Cleanup(func() {
		cancel()
		require.NoError(f, <-ended)
		server.Close()
		require.Empty(f, log.text)
	})
	i.AwaitLists(ctx)
	const client = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s_t","arguments":{},"_meta":{"progressToken":"p"}}}` + "\n"
	f.Fuzz(func(t *testing.T, said []byte) {
		says <- said
		var out bytes.Buffer
		require.NoError(t, i.ServeStdio(t.Context(), "", strings.NewReader(client), &out))
		answers := 0
		for line := range bytes.Lines(out.Bytes()) {
			m, err := jsonrpc.Parse(bytes.TrimSuffix(line, []byte("\n")))
			require.NoError(t, err, "%q", line)
			if m.IsResponse() && string(m.ID) == "1" {
				answers++
			}
		}
		require.Equal(t, 1, answers)
		select {
		case <-says: // answered before its request
			t.Fatal("the server was not called")
		default:
		}
	})
}
