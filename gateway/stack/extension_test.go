package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/daemon"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/servers"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// passing is a local tool that sends the request in its arguments.
func passing(i *Stack) registry.LocalTool {
	return registry.LocalTool{
		Definition: []byte(`{"name":"pass","inputSchema":{"type":"object"}}`), MakesRequests: true,
		Call: func(ctx context.Context, args []byte) ([]byte, error) {
			method := rawjson.GetString(args, "method")
			registry.Progress(ctx, 1, 2, "half way")
			result, err := i.Ask(ctx, method, rawjson.Get(args, "params"))
			var answered *jsonrpc.Error
			if errors.As(err, &answered) {
				return fmt.Appendf(nil, `{"content":[],"isError":true,"code":%d,"message":%q}`, answered.Code, answered.Error()), nil
			}
			return result, err
		},
	}
}

func TestRequestsOfLocalToolsAreThoseOfTheirClient(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{"a", tools, ""})
	require.NoError(t, i.Registry().AddTool(passing(i)))
	p := join(t, i)
	got := p.ask("tools/call", `{"name":"pass","arguments":{"method":"tools/call","params":{"name":"a_t","arguments":{"x":1}}},"_meta":{"progressToken":"p"}}`)
	require.Nil(t, got.Error, "%s", got.Error)
	require.Contains(t, string(got.Result), `a:t:{\"x\":1}`)
	p.hears("notifications/progress")
	inner := traffic(t, i, 1, func(r registry.TrafficRecord) bool { return r.Server == "a" && r.Method == "tools/call" })[0]
	outer := traffic(t, i, 1, func(r registry.TrafficRecord) bool { return r.Name == "pass" && r.Method == "tools/call" })[0]
	require.Equal(t, outer.Session, inner.Session)
	require.Equal(t, "editor", inner.Client)
	require.Equal(t, "a_t", inner.Name)
	require.Equal(t, registry.Local, outer.Server)
}

func TestRequestsOfLocalToolsThatAreRefused(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{"a", tools, ""})
	require.NoError(t, i.Registry().AddTool(passing(i)))
	p := join(t, i)
	for name, c := range map[string]struct {
		request, message string
		code             int64
	}{
		"unknown tool":       {`{"method":"tools/call","params":{"name":"a_x"}}`, `unknown tool "a_x"`, -32602},
		"unknown resource":   {`{"method":"resources/read","params":{"uri":"x:1"}}`, `RESOURCE_NOT_FOUND`, -32002},
		"unknown prompt":     {`{"method":"prompts/get","params":{"name":"x"}}`, `unknown prompt "x"`, -32602},
		"lists":              {`{"method":"tools/list","params":{}}`, `Method not found: tools/list`, -32601},
		"no object":          {`{"method":"tools/call","params":[]}`, `must be an object`, -32602},
		"nothing":            {`{"method":"tools/call"}`, `must be an object`, -32602},
		"the tool in itself": {`{"method":"tools/call","params":{"name":"pass"}}`, `pass cannot be called from within itself`, -32602},
	} {
		got := p.ask("tools/call", `{"name":"pass","arguments":`+c.request+`}`)
		code, _ := rawjson.Int(rawjson.Get(got.Result, "code"))
		require.Equal(t, c.code, code, name)
		message := rawjson.GetString(got.Result, "message")
		require.Contains(t, message, c.message, name)
	}
	_, err := i.Ask(context.Background(), "tools/call", []byte(`{"name":"a_t"}`))
	require.ErrorContains(t, err, "does not belong to a client's call")
}

func TestLocalToolThatPanicsEndsNothing(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "")
	require.NoError(t, i.Registry().AddTool(registry.LocalTool{
		Definition: []byte(`{"name":"oops","inputSchema":{"type":"object"}}`), MakesRequests: true,
		Call: func(context.Context, []byte) ([]byte, error) { panic("oops") },
	}))
	p := join(t, i)
	const stateless = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, params := range []string{`{"name":"oops"}`, `{"name":"oops",` + stateless + `}`} {
		got := p.ask("tools/call", params)
		code, _ := rawjson.Int(rawjson.Get(got.Error, "code"))
		require.EqualValues(t, -32603, code, params)
	}
}

func TestSearchAndScriptsComeFromTheExtension(t *testing.T) {
	t.Parallel()
	plain, _ := start(t, "")
	_, err := plain.Search(within(t), daemon.SearchQuery{Text: "x"})
	require.ErrorIs(t, err, errNotExtended)
	_, err = plain.Script(within(t), daemon.ScriptQuery{Source: "x"})
	require.ErrorIs(t, err, errNotExtended)

	ran := make(chan struct{})
	i, err := New(Options{
		Config: parse(t, "servers: {a: {command: x, disabled: true}}"), Version: "v", Logger: slog.New(slog.DiscardHandler),
		Extend: func(i *Stack) (Extension, error) {
			return Extension{
				Run: func(ctx context.Context) { <-ctx.Done(); close(ran) },
				Search: func(_ context.Context, q daemon.SearchQuery) (SearchResult, error) {
					for e := range i.Registry().Load().All(registry.Resource) {
						return SearchResult{Hits: []Hit{{e, 2}}, Total: 7, Weak: true}, nil
					}
					return SearchResult{}, errors.New("nothing")
				},
				Script: func(ctx context.Context, source string, ask AskServers) (daemon.ScriptAnswer, error) {
					value, err := ask(ctx, "resources/read", []byte(source))
					return daemon.ScriptAnswer{Value: value}, err
				},
			}, nil
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()

	raw, err := daemon.NewHandlers(i)(within(t), "search", json.RawMessage(`{"text":"servers","limit":1}`))
	require.NoError(t, err)
	found := raw.(daemon.SearchAnswer)
	require.Equal(t, 7, found.Total)
	require.Equal(t, "resource", found.Hits[0].Kind)
	require.Equal(t, "goblin://servers", found.Hits[0].URI)
	_, err = i.Search(within(t), daemon.SearchQuery{Server: "b"})
	var unknown *servers.UnknownError
	require.ErrorAs(t, err, &unknown)

	raw, err = daemon.NewHandlers(i)(within(t), "script", json.RawMessage(`{"source":"{\"uri\":\"goblin://servers\"}"}`))
	require.NoError(t, err)
	require.Contains(t, string(raw.(daemon.ScriptAnswer).Value), `"contents"`)
	_, err = i.Script(within(t), daemon.ScriptQuery{Source: `{"uri":"goblin://x"}`})
	var answered *jsonrpc.Error
	require.ErrorAs(t, err, &answered)
	require.Equal(t, -32002, answered.Code)

	cancel()
	<-ran
	require.NoError(t, <-ended)
	_, err = New(Options{
		Config: parse(t, ""), Version: "v", Logger: slog.New(slog.DiscardHandler),
		Extend: func(*Stack) (Extension, error) { return Extension{}, errors.New("on purpose") },
	})
	require.ErrorContains(t, err, "extend the gateway: on purpose")
}
