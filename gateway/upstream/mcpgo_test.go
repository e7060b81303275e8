package upstream

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
)

// peer is a server of mcp-go for both eras.
func peer() *mcpserver.MCPServer {
	s := mcpserver.NewMCPServer("peer", "1.0", mcpserver.WithToolCapabilities(true),
		mcpserver.WithResourceCapabilities(true, true), mcpserver.WithElicitation(), mcpserver.WithLogging())
	s.AddTool(mcp.NewTool("greet"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if a := mcpserver.ElicitationResponse(r.Params.InputResponses, "name"); a != nil {
			return mcp.NewToolResultText(fmt.Sprint(a.Action, a.Content, r.Params.RequestState)), nil
		}
		return mcpserver.NewInputRequestBuilder("state").Elicit("name", mcp.ElicitationParams{
			Message: "who?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		}).ToolResult(), nil
	})
	s.AddTool(mcp.NewTool("grow"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddTool(mcp.NewTool("grown"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("grown"), nil
		})
		return mcp.NewToolResultText("done"), nil
	})
	s.AddTool(mcp.NewTool("steps"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.Params.Meta != nil {
			_ = s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": 1})
		}
		return mcp.NewToolResultText("done"), nil
	})
	s.AddResource(mcp.NewResource("x://1", "one"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "x://1", Text: "one"}}, nil
	})
	return s
}

// answers accepts every request.
func answers(_ context.Context, _ *Call, method string, _ []byte) ([]byte, *jsonrpc.Error) {
	switch method {
	case "roots/list":
		return []byte(`{"roots":[{"uri":"file:///r","name":"r"}]}`), nil
	case "sampling/createMessage":
		return []byte(`{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}`), nil
	}
	return []byte(`{"action":"accept","content":{"name":"Ann","confirm":true,"color":"blue","step1":"a","step2":"b"}}`), nil
}

// inEra configures the era of a server and answers its requests.
func inEra(era config.Era) func(*rig) {
	return func(r *rig) {
		r.cfg.Era = era
		r.tune.remoteDiscoverTimeout = patience
		r.opt.Capabilities = []byte(`{"elicitation":{"form":{}},"roots":{},"sampling":{}}`)
		r.h.request = answers
	}
}

func TestServersOfMcpGoInTheModernEra(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"stdio", "http"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg, _ := fakeConfig(t, "mcp-go")
			if kind == "http" {
				web := httptest.NewServer(mcpserver.NewStreamableHTTPServer(peer()))
				t.Cleanup(web.Close)
				cfg = config.Server{Name: "files", Type: config.HTTP, TypeSet: true, URL: web.URL + "/mcp", Isolation: config.Shared}
			}
			r := start(t, cfg, inEra(config.ModernEra)).whole()
			conn := r.up()
			info := conn.Info()
			require.Equal(t, Modern, info.Era)
			require.Equal(t, modernRevision, info.Protocol)
			require.Contains(t, info.Versions, "2025-11-25", "the other era would work too")
			require.Contains(t, string(info.ServerInfo), "peer")
			require.Len(t, r.cat.list(registry.Tool), 3)

			got, err := r.call(conn, "greet")
			require.NoError(t, err)
			require.Contains(t, got, "accept")
			require.Contains(t, got, "Ann")
			require.Contains(t, got, "state")
			require.NotContains(t, got, "resultType")
			require.NotContains(t, got, "serverInfo")

			got, err = do(conn, &Call{Method: "tools/call", Params: toolParams("greet", ""), ForwardInput: true})
			require.NoError(t, err)
			require.Contains(t, got, `"resultType":"input_required"`)
			require.NotContains(t, got, "serverInfo")
			got, err = do(conn, &Call{Method: "tools/call", ForwardInput: true, Params: toolParams("greet",
				`,"requestState":"kept","inputResponses":{"name":{"action":"decline"}}`)})
			require.NoError(t, err)
			require.Contains(t, got, "kept")

			got, err = do(conn, &Call{Method: "resources/read", Params: []byte(`{"uri":"x://1"}`)})
			require.NoError(t, err)
			require.Contains(t, got, `"one"`)

			// Over stdio, its listen requests end each other and its notifications have
			// no tag. The changes still arrive.
			_, err = r.call(conn, "grow")
			require.NoError(t, err)
			r.until("the new list", func() bool { return len(r.cat.list(registry.Tool)) == 4 })

			got, err = do(conn, &Call{Method: "resources/subscribe", Params: []byte(`{"uri":"x://1"}`)})
			require.NoError(t, err)
			require.Equal(t, "{}", got)
			got, err = do(conn, &Call{Method: "resources/unsubscribe", Params: []byte(`{"uri":"x://1"}`)})
			require.NoError(t, err)
			require.Equal(t, "{}", got)
		})
	}
}

func TestServerOfBothErasIsTakenInTheLegacyOne(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"stdio", "http"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg, _ := fakeConfig(t, "mcp-go")
			if kind == "http" {
				web := httptest.NewServer(mcpserver.NewStreamableHTTPServer(peer()))
				t.Cleanup(web.Close)
				cfg = config.Server{Name: "files", Type: config.HTTP, TypeSet: true, URL: web.URL + "/mcp", Isolation: config.Shared}
			}
			r := start(t, cfg, inEra(config.AutoEra)).whole()
			require.Equal(t, Legacy, r.up().Info().Era)
			require.Contains(t, r.up().Info().Versions, modernRevision, "the other era would work too")
			got, err := r.call(r.up(), "greet")
			require.NoError(t, err)
			require.Contains(t, got, "Ann")
		})
	}
}

// within returns a context for one step of a test.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
