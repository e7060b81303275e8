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
	"goblin/gateway/metrics"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// askEnv makes the test program a server whose tool asks the user and the
// model, and which writes all that it hears into the file named.
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
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"ask","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			fmt.Println(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`)
			fmt.Println(`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
		}
		if result != "" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", rawjson.Get(line, "id"), result)
		}
	}
}

func TestCallOfAClientThatDoesNotComeBackEnds(t *testing.T) {
	t.Parallel()
	heard := filepath.Join(t.TempDir(), "heard")
	reg := registry.New(registry.Options{Servers: []string{"s"}})
	g := New(Options{
		Config: &config.Config{
			Demo:    true,
			Servers: []config.Server{{Name: "s", Type: config.Stdio, Command: os.Args[0], Env: map[string]string{askEnv: heard}}},
			Gateway: config.Gateway{StartupWait: 20 * time.Second},
		},
		Registry: reg, Metrics: metrics.New(), Logger: slog.New(slog.DiscardHandler), Version: "test",
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); g.Run(ctx) }()
	defer func() { stop(); <-ended }()

	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- downstream.ServeStream(ctx, downstream.Options{Handler: g, Order: Order, Parking: downstream.NewParking(200*time.Millisecond, nil)}, "stdio", inR, outW)
		outW.Close()
	}()
	defer func() { inW.Close(); <-served }()
	answers := bufio.NewReader(outR)
	ask := func(more string) string {
		_, err := fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s_ask",%s"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{}}}}}`+"\n", more)
		require.NoError(t, err)
		line, err := answers.ReadString('\n')
		require.NoError(t, err)
		return line
	}
	demand := []byte(ask(""))
	require.NotNil(t, rawjson.Path(demand, "result", "inputRequests", "input-1"), "%s", demand) // the other may have come too late for it
	state := rawjson.Path(demand, "result", "requestState")

	hears := func(part string) {
		require.Eventually(t, func() bool {
			text, err := os.ReadFile(heard)
			return err == nil && strings.Contains(string(text), part)
		}, 30*time.Second, 5*time.Millisecond, part)
	}
	hears(`"method":"notifications/cancelled"`)
	hears(`"id":"e","result":{"action":"cancel"}`)
	hears(`"id":"s","error":`)
	require.Contains(t, ask(`"requestState":`+string(state)+`,`), "REQUEST_STATE_INVALID")
}
