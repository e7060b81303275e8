package stack

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/report"
)

// part returns the matching element.
func part[T any](t *testing.T, all []T, is func(T) bool) T {
	t.Helper()
	for _, one := range all {
		if is(one) {
			return one
		}
	}
	t.Fatalf("missing in %v", all)
	panic("unreachable")
}

// usageOf returns the usage report as soon as it counts the given number of calls. Counts
// follow answers after a moment.
func usageOf(t *testing.T, i *Stack, calls int) (r report.Report) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		r, err = i.Usage(context.Background())
		return err == nil && r.All.Calls == uint64(calls)
	}, patience, time.Millisecond)
	return r
}

func TestUsageIsOfServersToolsAndClients(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 500)
	i, _ := start(t, "meta_tools: [search_tools]", fake{
		name: "files", script: `"tools":[{"name":"read","description":"` + long + `","inputSchema":{"type":"object"}},{"name":"break","inputSchema":{"type":"object"}},{"name":"stat","inputSchema":{"type":"object"}}],
			"on":{"tools/call read":[{"do":"result","result":{"content":[{"type":"text","text":"ok"}]}}],"tools/call break":[{"do":"result","result":{"content":[],"isError":true}}]}`,
	})
	claude := joinAs(t, i, "claude-code", "{}")
	claude.ask("tools/list", "{}")
	claude.ask("tools/call", `{"name":"files_read","arguments":{}}`)
	claude.ask("tools/call", `{"name":"read","arguments":{}}`)
	claude.ask("tools/call", `{"name":"files_break","arguments":{}}`)
	claude.ask("tools/call", `{"name":"nothing_there"}`)
	joinAs(t, i, "editor", "{}")

	r := usageOf(t, i, 3)
	require.True(t, r.Daemon)
	files := part(t, r.Servers, func(s report.Server) bool { return s.Name == "files" })
	require.Equal(t, 3, files.Tools)
	require.Equal(t, 1, files.UnusedTools)
	require.EqualValues(t, 3, files.Calls, "under any name; unknown names do not count")
	require.EqualValues(t, 1, files.Errors)
	read := part(t, r.Tools, func(x report.Tool) bool { return x.Name == "read" })
	require.EqualValues(t, 2, read.Calls)
	require.Equal(t, "files_read", read.Listed)
	entry := i.registry.Load().ByServerName("files", registry.Tool, "read")
	require.Equal(t, report.DefinitionSize(len(entry.JSON())), read.Definitions)
	require.EqualValues(t, 1, part(t, r.Tools, func(x report.Tool) bool { return x.Name == "break" }).Errors)

	client := part(t, r.Clients, func(c report.Client) bool { return c.Name == "claude-code" })
	require.True(t, client.Connected)
	require.EqualValues(t, 3, client.Calls)
	require.Equal(t, 3, client.Tools)
	require.Equal(t, files.Definitions, client.Definitions)
	require.Positive(t, client.Instructions)
	require.Equal(t, "Claude Code", client.Limits.Client)
	require.Len(t, client.Violations, 1)
	require.Equal(t, "description", client.Violations[0].Kind)
	require.Contains(t, client.Violations[0].Text, "files_read has 2500")
	require.Nil(t, part(t, r.Clients, func(c report.Client) bool { return c.Name == "editor" }).Limits)
}

func TestListsOfOthersThanToolsAreBilledApart(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "meta_tools: false",
		fake{name: "docs", script: `"prompts":[{"name":"ask","description":"asks"}],"resources":[{"uri":"x:1","name":"one"},{"uri":"x:2","name":"two"}],"templates":[{"uriTemplate":"x:///{a}","name":"any"}]`},
		fake{name: "tools", script: `"tools":[{"name":"t","inputSchema":{"type":"object"}}]`})
	sizes := func() (bytes int) {
		for k := range registry.Kind(registry.Kinds) {
			for e := range i.registry.Load().Server("docs", k) {
				bytes += e.JSONLen()
			}
		}
		return bytes
	}
	editor := joinAs(t, i, "editor", "{}")
	editor.ask("tools/list", "{}")
	r := usageOf(t, i, 0)
	docs := part(t, r.Servers, func(s report.Server) bool { return s.Name == "docs" })
	require.Equal(t, report.NonToolLists{Entries: 4, Bytes: sizes(), Tokens: report.Tokens(sizes())}, docs.NonToolLists)
	require.Zero(t, docs.Definitions, "hidden from models")
	require.Zero(t, part(t, r.Servers, func(s report.Server) bool { return s.Name == "tools" }).NonToolLists)
	own := 0 // goblin://servers, for clients only
	for e := range i.registry.Load().Server(registry.Local, registry.Resource) {
		own += e.JSONLen()
	}
	client := part(t, r.Clients, func(c report.Client) bool { return c.Name == "editor" })
	require.Equal(t, sizes()+own, client.NonToolLists.Bytes)
	require.Equal(t, 5, client.NonToolLists.Entries)
	require.Equal(t, 1, client.Tools)

	// A disabled entry costs no tokens.
	one := i.registry.Load().ByServerName("docs", registry.Resource, "x:1")
	require.NoError(t, i.SetEntriesDisabled("", false, one))
	r = usageOf(t, i, 0)
	docs = part(t, r.Servers, func(s report.Server) bool { return s.Name == "docs" })
	require.Equal(t, 3, docs.NonToolLists.Entries)
	require.Equal(t, sizes()-one.JSONLen(), docs.NonToolLists.Bytes)
}

func TestUsageIsKeptWhenADaemonEnds(t *testing.T) {
	t.Parallel()
	text, path := "servers: {s: {command: s, disabled: true}}", filepath.Join(t.TempDir(), "usage.json")
	for n := range 2 {
		o := Options{Config: parse(t, text), Version: "v", Logger: slog.New(slog.DiscardHandler), Usage: path}
		i, err := New(o)
		require.NoError(t, err)
		require.NoError(t, i.Registry().AddTool(registry.LocalTool{
			Definition: []byte(`{"name":"echo","inputSchema":{"type":"object"}}`),
			Call:       func(context.Context, []byte) ([]byte, error) { return []byte(`{"content":[]}`), nil },
		}))
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- i.Run(ctx) }()
		p := join(t, i)
		p.ask("tools/call", `{"name":"echo","arguments":{}}`)
		r := usageOf(t, i, n+1)
		require.Equal(t, registry.Local, r.Servers[0].Name)
		cancel()
		require.NoError(t, <-ended)
	}
}
