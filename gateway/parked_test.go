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
	"goblin/gateway/jsonrpc"
	"goblin/gateway/servers"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// askEnv makes the test program a server whose tool asks the user and the
// model, or demands that a page is opened, and which writes all that it hears into the
// file named.
const askEnv = "GOBLIN_TEST_ASK"

func askForEver(heard string) {
	out, err := os.OpenFile(heard, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(1)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		line := in.Bytes()
		fmt.Fprintf(out, "%s\n", line)
		result := ""
		switch method, _ := rawjson.String(rawjson.Get(line, "method")); method {
		case "tools/call":
			page, demanded := map[string]string{"page": `{"elicitationId":"e","url":"https://a.example","message":"?"}`, "blank": "7"}[toolOf(line)]
			if demanded {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"open it","data":{"elicitations":[%s]}}}`+"\n", rawjson.Get(line, "id"), page)
				continue
			}
			fmt.Println(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`)
			fmt.Println(`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"ask","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"ask","inputSchema":{"type":"object"}},{"name":"page","inputSchema":{"type":"object"}},{"name":"blank","inputSchema":{"type":"object"}}]}`
		}
		if result != "" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", rawjson.Get(line, "id"), result)
		}
	}
}

func toolOf(call []byte) string {
	name, _ := rawjson.String(rawjson.Path(call, "params", "name"))
	return name
}

// asking is a gateway with such a server, "s", and a stateless client of it.
type asking struct {
	*Gateway
	cfg     *config.Config
	heard   string // the file
	client  io.Writer
	answers *bufio.Reader
}

// newAsking starts it; front puts something before the gateway, if it is not nil.
func newAsking(t *testing.T, front func(*asking) downstream.Handler) *asking {
	t.Helper()
	heard := filepath.Join(t.TempDir(), "heard")
	a := &asking{heard: heard, cfg: &config.Config{
		Demo:    true,
		Servers: []config.Server{{Name: "s", Type: config.Stdio, Command: os.Args[0], Env: map[string]string{askEnv: heard}}},
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
		served <- downstream.ServeStream(ctx, downstream.Options{Handler: handler, Order: Order, Parking: downstream.NewParking(200*time.Millisecond, nil)}, "stdio", inR, outW)
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
	require.NotNil(t, rawjson.Path(demand, "result", "inputRequests", "input-1"), "%s", demand) // the other may have come too late for it
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
		Definition: []byte(`{"name":"script","inputSchema":{"type":"object"}}`), Asks: true,
		Call: func(ctx context.Context, _ []byte) ([]byte, error) {
			_, err := a.Ask(ctx, "tools/call", []byte(`{"name":"s_page"}`))
			asked <- err
			return []byte(`{"content":[]}`), nil
		},
	}))
	demand := a.call(t, "s_page", "")
	require.Contains(t, demand, `"resultType":"input_required"`, "its client opens pages")
	require.Contains(t, demand, `"mode":"url"`, "which only older revisions leave out")
	require.Contains(t, a.call(t, "s_blank", ""), "it demands that a URL is opened, but names none")
	require.Contains(t, a.call(t, "script", ""), `"content":[]`)
	var refused *jsonrpc.Error
	require.ErrorAs(t, <-asked, &refused)
	require.Equal(t, -32042, refused.Code)
}

// edited edits the config when a call has found its tool.
type edited struct {
	*Gateway
	edit func()
}

func (e edited) Handle(x *downstream.Exchange) {
	r := &request{Exchange: x, gateway: e.Gateway}
	target, edits, err := r.seek("name", (*registry.Snapshot).ResolveTool)
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
