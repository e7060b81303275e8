package demo_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"goblin/gateway/demo"
)

func TestUnknownNameListsTheServers(t *testing.T) {
	t.Parallel()
	err := demo.Run(t.Context(), "calculator", strings.NewReader(""), io.Discard)
	require.ErrorContains(t, err, `"calculator"`)
	require.Equal(t, []string{"clock", "library", "notes"}, demo.Names())
	for _, name := range demo.Names() {
		require.ErrorContains(t, err, name)
	}
}

func TestInputEndAnswersWhatWasAsked(t *testing.T) {
	t.Parallel()
	c := startRaw(t, "notes")
	ping := c.request("ping", nil)
	add := c.request("tools/call", map[string]any{"name": "search_notes", "arguments": map[string]any{}})
	answered := map[string]bool{}
	for _, m := range c.end() {
		answered[string(m.ID)] = m.Error == nil
	}
	require.Equal(t, map[string]bool{ping: true, add: true}, answered)
}

func TestInputEndCancelsRunningCalls(t *testing.T) {
	t.Parallel()
	c := start(t, "clock")
	id := c.request("tools/call", map[string]any{"name": "countdown", "arguments": map[string]any{"from": 3600}})
	c.result("ping", nil)
	rest := c.end() // fails the test if the server keeps counting
	require.Len(t, rest, 1)
	require.Equal(t, id, string(rest[0].ID))
	require.True(t, decode[toolResult](t, rest[0].Result).IsError)
}

func TestContextEndsTheServer(t *testing.T) {
	t.Parallel()
	for _, name := range demo.Names() {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			inR, inW := io.Pipe()
			outR, outW := io.Pipe() // without a reader, so the write of the answer blocks
			done := make(chan error, 1)
			go func() { done <- demo.Run(ctx, name, inR, outW) }()
			_, err := io.WriteString(inW, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
			require.NoError(t, err)
			cancel()
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-time.After(patience):
				t.Fatal("the server did not stop with its context")
			}
			_ = outR.Close()
		})
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("no reader") }

func TestFailingOutputEndsTheServer(t *testing.T) {
	t.Parallel()
	inR, inW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- demo.Run(t.Context(), "notes", inR, brokenPipe{}) }()
	_, err := io.WriteString(inW, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	require.NoError(t, err)
	select {
	case err := <-done:
		require.ErrorContains(t, err, "no reader")
	case <-time.After(patience):
		t.Fatal("the server continued without an output")
	}
}

func TestOverlongLineIsAnError(t *testing.T) {
	t.Parallel()
	line := strings.NewReader(strings.Repeat("x", 17<<20))
	require.ErrorContains(t, demo.Run(t.Context(), "notes", line, io.Discard), "too long")
}

func TestBadMessagesGetErrors(t *testing.T) {
	t.Parallel()
	c := start(t, "notes")
	for line, code := range map[string]int{
		`{"jsonrpc":"2.0","id":"a",`: -32700,
		`[]`:                         -32700,
		`{"jsonrpc":"1.0","id":"b","method":"ping"}`:                                            -32600,
		`{"jsonrpc":"2.0","id":"c","method":"no/such"}`:                                         -32601,
		`{"jsonrpc":"2.0","id":"d","method":"server/discover"}`:                                 -32601,
		`{"jsonrpc":"2.0","id":"e","method":"subscriptions/listen","params":{}}`:                -32601,
		`{"jsonrpc":"2.0","id":"f","method":"tools/call","params":{"name":"no_such"}}`:          -32602,
		`{"jsonrpc":"2.0","id":"g","method":"resources/list","params":{"cursor":"not base64"}}`: -32602,
	} {
		_, err := io.WriteString(c.in, "\n"+line+"\n")
		require.NoError(t, err)
		m := c.next("an answer to "+line, func(m message) bool { return m.Method == "" })
		require.NotNil(t, m.Error, line)
		require.Equal(t, code, m.Error.Code, line)
	}
	c.result("ping", nil)
}

// Every listed resource can be read and has the listed type.
func TestListsTellTheTruth(t *testing.T) {
	t.Parallel()
	for _, name := range demo.Names() {
		t.Run(name, func(t *testing.T) {
			c := start(t, name)
			all, _ := c.list()
			names, uris := map[string]bool{}, map[string]bool{}
			for _, r := range all {
				require.False(t, names[r.Name], "name %s twice", r.Name)
				require.False(t, uris[r.URI], "URI %s twice", r.URI)
				names[r.Name], uris[r.URI] = true, true
				require.NotEmpty(t, r.Title, r.URI)

				parts := c.read(r.URI)
				require.NotEmpty(t, parts, r.URI)
				size := 0
				for _, p := range parts {
					require.True(t, (p.Text == "") != (p.Blob == ""), "%s: text or blob, not both", p.URI)
					data, err := base64.StdEncoding.DecodeString(p.Blob)
					require.NoError(t, err, p.URI)
					size += len(p.Text) + len(data)
					require.NotEmpty(t, p.MimeType, p.URI)
					if p.MimeType == "application/json" {
						require.True(t, json.Valid([]byte(p.Text)), p.URI)
					}
				}
				if r.Size != nil {
					require.Equal(t, *r.Size, size, r.URI)
				}
				if len(parts) == 1 {
					require.Equal(t, r.URI, parts[0].URI)
					require.True(t, r.MimeType == "" || r.MimeType == parts[0].MimeType, r.URI)
				}
			}
		})
	}
}

func TestServersDescribeThemselves(t *testing.T) {
	t.Parallel()
	type described struct {
		Name, Title, Description string
		Icons                    []struct{ Src string }
		Annotations              struct{ ReadOnlyHint, DestructiveHint *bool }
		Arguments                []struct{ Name, Title, Description string }
	}
	for _, name := range demo.Names() {
		t.Run(name, func(t *testing.T) {
			c := startRaw(t, name)
			hello := decode[struct {
				ProtocolVersion, Instructions string
				ServerInfo                    struct{ Name, Title, Version string }
				Capabilities                  struct {
					Resources               struct{ Subscribe, ListChanged bool }
					Tools, Prompts          struct{ ListChanged bool }
					Completions, Logging, X *struct{}
				}
			}](t, c.result("initialize", map[string]any{
				"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"},
			}))
			require.Equal(t, "2025-11-25", hello.ProtocolVersion)
			require.Equal(t, name, hello.ServerInfo.Name)
			require.NotEmpty(t, hello.ServerInfo.Title)
			require.NotEmpty(t, hello.Instructions)
			require.True(t, hello.Capabilities.Resources.Subscribe && hello.Capabilities.Resources.ListChanged)
			require.NotNil(t, hello.Capabilities.Completions)
			require.NotNil(t, hello.Capabilities.Logging)

			tools := decode[struct{ Tools []described }](t, c.result("tools/list", nil)).Tools
			require.NotEmpty(t, tools)
			for _, tool := range tools {
				require.NotEmpty(t, tool.Title, tool.Name)
				require.NotEmpty(t, tool.Description, tool.Name)
				require.NotEmpty(t, tool.Icons, tool.Name)
				require.NotNil(t, tool.Annotations.ReadOnlyHint, tool.Name)
				require.NotNil(t, tool.Annotations.DestructiveHint, tool.Name)
			}
			prompts := decode[struct{ Prompts []described }](t, c.result("prompts/list", nil)).Prompts
			require.NotEmpty(t, prompts)
			for _, p := range prompts {
				require.NotEmpty(t, p.Title, p.Name)
				require.NotEmpty(t, p.Description, p.Name)
				for _, a := range p.Arguments {
					require.NotEmpty(t, a.Title, p.Name)
					require.NotEmpty(t, a.Description, p.Name)
				}
			}
		})
	}
}

func TestUnknownResources(t *testing.T) {
	t.Parallel()
	for name, uris := range map[string][]string{
		"notes":   {"note:///nope", "note://welcome", "file:///etc/passwd"},
		"clock":   {"clock://zones/Atlantis", "clock://zones/Local", "clock://zones/", "clock://then"},
		"library": {"library://books/nobody/nothing", "library://books/x", "library://books/a%2", "urn:isbn:1"},
	} {
		c := start(t, name)
		for _, uri := range uris {
			for _, method := range []string{"resources/read", "resources/subscribe"} {
				failure := c.failure(method, map[string]any{"uri": uri})
				require.Equal(t, -32002, failure.Code, "%s %s: %s", method, uri, failure.Message)
				require.JSONEq(t, `{"uri":"`+uri+`"}`, string(failure.Data))
			}
		}
	}
}

func TestCancelledCallStopsWithoutResponse(t *testing.T) {
	t.Parallel()
	c := start(t, "clock")
	id := c.request("tools/call", map[string]any{"name": "countdown", "arguments": map[string]any{"from": 3600, "interval_ms": 60000}})
	c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": json.RawMessage(id)}})
	c.result("ping", nil)
	require.Empty(t, c.end())
}

func TestTooManyCallsAreRefused(t *testing.T) {
	t.Parallel()
	c := start(t, "clock")
	slow := map[string]any{"name": "countdown", "arguments": map[string]any{"from": 3600}}
	for range 64 {
		c.request("tools/call", slow)
	}
	require.Contains(t, c.failure("tools/call", slow).Message, "64 tool calls")
	c.send(map[string]any{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": slow})
	require.Contains(t, c.response("3").Error.Message, "in use")
}

func TestLogLinesFollowTheLevel(t *testing.T) {
	t.Parallel()
	c := start(t, "notes")
	c.call("add_note", map[string]any{"title": "quiet", "text": "x"})
	c.result("logging/setLevel", map[string]any{"level": "info"})
	c.call("add_note", map[string]any{"title": "loud", "text": "x"})
	require.JSONEq(t, `{"level":"info","logger":"notes","data":"added note:///loud"}`, string(c.notification("notifications/message")))
}

// An independent client understands the servers.
func TestServesForeignClient(t *testing.T) {
	t.Parallel()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- demo.Run(t.Context(), "library", inR, outW) }()
	c := mcpclient.NewClient(transport.NewIO(outR, inW, io.NopCloser(strings.NewReader(""))))
	require.NoError(t, c.Start(t.Context()))
	hello, err := c.Initialize(t.Context(), mcp.InitializeRequest{Params: mcp.InitializeParams{
		ClientInfo: mcp.Implementation{Name: "test", Version: "1"},
	}})
	require.NoError(t, err)
	require.Equal(t, "library", hello.ServerInfo.Name)

	resources, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
	require.NoError(t, err)
	require.Len(t, resources.Resources, 2000)
	result, err := c.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{
		Name: "search_books", Arguments: map[string]any{"query": "cosy mystery"},
	}})
	require.NoError(t, err)
	require.False(t, result.IsError)

	_ = outW.Close()
	_ = c.Close()
	require.NoError(t, <-done)
}
