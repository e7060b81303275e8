package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/e2e"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/servers"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// askingScript is a server whose first tool sends requests to the user and the model and
// never answers. Two more tools demand that a page is opened. The server writes all
// messages that it receives to a file.
func askingScript(heard string) e2e.Obj {
	demand := func(page any) []e2e.Obj {
		return e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32042, "message": "open it", "data": e2e.Obj{"elicitations": []any{page}}}}))
	}
	return e2e.Obj{
		"name": "ask", "log": heard, "capabilities": e2e.Obj{"tools": e2e.Obj{}},
		"tools": []e2e.Obj{e2e.Tool("ask"), e2e.Tool("page"), e2e.Tool("blank")},
		"on": e2e.Obj{
			"tools/call ask": e2e.Actions(
				e2e.Do("write", e2e.Obj{"text": `{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`}),
				e2e.Do("write", e2e.Obj{"text": `{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`}),
				e2e.Do("hang"),
			),
			"tools/call page":  demand(e2e.Obj{"elicitationId": "e", "url": "https://a.example", "message": "?"}),
			"tools/call blank": demand(7),
		},
	}
}

// asking is a gateway with the server "s" of askingScript and a stateless client.
type asking struct {
	*Gateway
	cfg     *config.Config
	heard   string // file of received messages
	client  io.Writer
	answers *bufio.Reader
}

// newAsking starts an asking. front wraps the gateway if it is not nil.
func newAsking(t *testing.T, front func(*asking) downstream.Handler) *asking {
	t.Helper()
	e2e.Use()
	dir := t.TempDir()
	heard, script := filepath.Join(dir, "heard"), filepath.Join(dir, "script.json")
	require.NoError(t, os.WriteFile(script, e2e.Marshal(askingScript(heard)), 0o600))
	a := &asking{heard: heard, cfg: &config.Config{
		Demo:    true,
		Servers: []config.Server{{Name: "s", Type: config.Stdio, Command: e2e.TestServer, Args: []string{script}}},
		Gateway: config.Gateway{StartupWait: 20 * time.Second, MetaTools: config.MetaTools{All: true}, Limits: config.Limits{Depth: 100}},
	}}
	a.Gateway = New(Options{Options: servers.Options{
		Config: a.cfg, Registry: registry.New(registry.Options{Servers: []string{"s"}, Own: []string{"script"}}),
		Metrics: telemetry.NewMetrics(), Logger: slog.New(slog.DiscardHandler), Version: "test",
	}})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })

	handler := downstream.Handler(a.Gateway)
	if front != nil {
		handler = front(a)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- downstream.ServeStream(ctx, downstream.Options{Handler: handler, Order: OrderKey, Parked: downstream.NewParkedCalls(200*time.Millisecond, nil)}, "stdio", inR, outW)
		outW.Close()
	}()
	t.Cleanup(func() { inW.Close(); <-served })
	a.client, a.answers = inW, bufio.NewReader(outR)
	return a
}

// call calls a tool, with more members of the params, and returns the answer.
func (a *asking) call(t *testing.T, tool, more string) string {
	t.Helper()
	_, err := fmt.Fprintf(a.client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,%s"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"sampling":{}}}}}`+"\n", tool, more)
	require.NoError(t, err)
	line, err := a.answers.ReadString('\n')
	require.NoError(t, err)
	return line
}

func TestCallOfAClientThatDoesNotComeBackEnds(t *testing.T) {
	t.Parallel()
	a := newAsking(t, nil)
	ask := func(more string) string { return a.call(t, "s_ask", more) }
	demand := []byte(ask(""))
	require.NotNil(t, rawjson.Path(demand, "result", "inputRequests", "input-1"), "%s", demand) // the other may be too late for it
	state := rawjson.Path(demand, "result", "requestState")

	hears := func(part string) {
		require.Eventually(t, func() bool {
			text, err := os.ReadFile(a.heard)
			return err == nil && strings.Contains(string(text), part)
		}, 30*time.Second, 5*time.Millisecond, part)
	}
	hears(`"method":"notifications/cancelled"`)
	hears(`"id":"e","result":{"action":"cancel"}`)
	hears(`"id":"s","error":`)
	require.Contains(t, ask(`"requestState":`+string(state)+`,`), "REQUEST_STATE_INVALID")
}

func TestDemandsToOpenAPageAreForClientsNotForScripts(t *testing.T) {
	t.Parallel()
	a := newAsking(t, nil)
	asked := make(chan error, 1)
	require.NoError(t, a.reg.AddTool(registry.LocalTool{
		Definition: []byte(`{"name":"script","inputSchema":{"type":"object"}}`), MakesRequests: true,
		Call: func(ctx context.Context, _ []byte) ([]byte, error) {
			_, err := a.Ask(ctx, "tools/call", []byte(`{"name":"s_page"}`))
			asked <- err
			return []byte(`{"content":[]}`), nil
		},
	}))
	demand := a.call(t, "s_page", "")
	require.Contains(t, demand, `"resultType":"input_required"`, "its client opens pages")
	require.Contains(t, demand, `"mode":"url"`, "only older revisions omit it")
	require.Contains(t, a.call(t, "s_blank", ""), "it requires opening a URL, but names none")
	require.Contains(t, a.call(t, "script", ""), `"content":[]`)
	var refused *jsonrpc.Error
	require.ErrorAs(t, <-asked, &refused)
	require.Equal(t, -32042, refused.Code)
}

// edited edits the config as soon as a call has found its tool.
type edited struct {
	*Gateway
	edit func()
}

func (e edited) Handle(x *downstream.Request) {
	r := &request{Request: x, gateway: e.Gateway}
	target, edits, err := r.resolveParam("name", (*registry.Snapshot).ResolveTool)
	if err != nil {
		r.fail(err)
		return
	}
	e.edit()
	e.forward(r, target, edits)
}

func TestACallThatFoundItsToolBeforeAnEditDeniesItIsNotMade(t *testing.T) {
	t.Parallel()
	a := newAsking(t, func(a *asking) downstream.Handler {
		return edited{a.Gateway, func() {
			denies := a.cfg.Servers[0]
			denies.Tools.Deny = []string{"page"}
			a.Apply(&config.Config{Demo: true, Servers: []config.Server{denies}})
		}}
	})
	require.Contains(t, a.call(t, "s_page", ""), `"error":{"code":-32602`)
	heard, err := os.ReadFile(a.heard)
	require.NoError(t, err)
	require.NotContains(t, string(heard), "tools/call")
}
