package command

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/registry/termtext"
)

func catalog() *scripted {
	return &scripted{
		status: ready("a", "b"),
		items: map[string][]daemon.Entry{
			"tools": {
				{Name: "a_add", Server: "a", OriginalName: "add", Description: "Adds\x1b[31m things\nand more", Definition: []byte(`{"name":"a_add","x":1.50}`)},
				{Name: "b_世界", Server: "b", OriginalName: "世界", Title: "A title"},
			},
			"resources": {
				{Name: "x", URI: "mcp://a/file:///x", Server: "a", OriginalURI: "file:///x", FlatID: "a_file_x", MIMEType: "text/plain", Size: size64(1234), Definition: []byte(`{"uri":"mcp://a/file:///x","name":"x"}`)},
				{Name: "y<", URI: "mcp://b/y", Server: "b", OriginalURI: "y", FlatID: "b_y", MIMEType: "image/png", Definition: []byte(`{"name":"y<"}`)},
			},
			"templates": {
				{Name: "t", URITemplate: "mcp://a/t/{v}", Server: "a", OriginalURI: "t/{v}", Definition: []byte(`{"name":"t"}`)},
			},
		},
	}
}

func TestListPrintsAlignedTablesWithoutControlCharacters(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"tools", []string{"list", "tools"}, "" +
			"NAME    SERVER  STATE   DESCRIPTION\n" +
			"a_add   a       listed  Adds\\x1b[31m things\n" +
			"b_世界  b       listed  A title\n"},
		{"only one server", []string{"list", "tools", "--server", "b"}, "" +
			"NAME    SERVER  STATE   DESCRIPTION\n" +
			"b_世界  b       listed  A title\n"},
		{"resources", []string{"list", "resources"}, "" +
			"URI                NAME  STATE   MIME TYPE     SIZE\n" +
			"mcp://a/file:///x  x     listed  text/plain  1.2 kB\n" +
			"mcp://b/y          y<    listed  image/png\n"},
		{"only one MIME type", []string{"list", "resources", "--mime", "image/png"}, "" +
			"URI        NAME  STATE   MIME TYPE\n" +
			"mcp://b/y  y<    listed  image/png\n"},
		{"templates", []string{"list", "templates"}, "" +
			"URI TEMPLATE   NAME  STATE\n" +
			"mcp://a/t/{v}  t     listed\n"},
		{"nothing", []string{"list", "prompts"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := try{gateway: catalog()}.run(t, tt.args...)
			require.Equal(t, outcome{out: tt.want}, got)
		})
	}
}

func TestListCutsRowsToTheTerminal(t *testing.T) {
	g := catalog()
	g.items["tools"][0].Description = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
	got := try{gateway: g, tty: true}.run(t, "list", "tools", "--server", "a")
	row := strings.Split(got.out, "\n")[1]
	require.Equal(t, 80, termtext.Width(row))
	require.Contains(t, row, "ten eleven …")
}

func TestListJSONTellsWhatClientsAreNotTold(t *testing.T) {
	got := try{gateway: catalog()}.run(t, "list", "resources", "--json")
	require.Zero(t, got.code)
	require.Equal(t, []any{
		map[string]any{
			"name": "x", "uri": "mcp://a/file:///x", "serverId": "a", "originalUri": "file:///x", "flatId": "a_file_x",
			"state": "listed", "mimeType": "text/plain", "size": 1234.0, "definition": map[string]any{"uri": "mcp://a/file:///x", "name": "x"},
		},
		map[string]any{
			"name": "y<", "uri": "mcp://b/y", "serverId": "b", "originalUri": "y", "flatId": "b_y",
			"state": "listed", "mimeType": "image/png", "definition": map[string]any{"name": "y<"},
		},
	}, decodeJSON(t, got.out))
	require.Contains(t, got.out, `"y<"`, "HTML is not escaped")

	got = try{gateway: catalog()}.run(t, "list", "tools", "--json")
	require.Contains(t, got.out, `"originalName": "add"`)
	require.Contains(t, got.out, `"x": 1.50`, "numbers are unchanged")
	got = try{gateway: catalog()}.run(t, "list", "templates", "--json")
	require.Contains(t, got.out, `"uriTemplate": "mcp://a/t/{v}"`)
	got = try{gateway: catalog()}.run(t, "list", "prompts", "--json")
	require.Equal(t, "[]\n", got.out)
}

func TestListStartsOnlyTheServerThatIsAskedFor(t *testing.T) {
	g := catalog()
	try{gateway: g}.run(t, "list", "tools", "--server", "b")
	try{gateway: g}.run(t, "list", "tools")
	require.Equal(t, [][]string{{"b"}, nil}, g.opened)
}

func TestListTellsOfServersThatAreDown(t *testing.T) {
	g := catalog()
	g.status.Servers[1].State, g.status.Servers[1].Error = "failed", "no such \x1bprogram"
	got := try{gateway: g}.run(t, "list", "tools")
	require.Zero(t, got.code)
	require.Equal(t, "goblin: server \"b\" failed: no such \\x1bprogram\n", got.err)
	require.Contains(t, got.out, "a_add")

	g.items = nil
	got = try{gateway: g}.run(t, "list", "tools", "--server", "b")
	require.Equal(t, cli.CodeConnect, got.code)
	require.Empty(t, got.out)
}

func TestListServers(t *testing.T) {
	g := catalog()
	g.status.Servers[0].Tools = 12
	g.status.Servers[1] = daemon.Server{Name: "b", State: "needs login", Transport: "http", Error: "401", Restarts: 2}
	got := try{gateway: g}.run(t, "list", "servers")
	require.Equal(t, outcome{out: "" +
		"SERVER  STATE        TRANSPORT  TOOLS  PROMPTS  RESOURCES  TEMPLATES  RESTARTS  ERROR\n" +
		"a       ready        stdio         12        0          0          0\n" +
		"b       needs login  http           0        0          0          0         2  401\n"}, got)
	got = try{gateway: g}.run(t, "list", "servers", "--server", "b", "--json")
	require.Len(t, decodeJSON(t, got.out), 1)
}

func TestAnInterruptedListIsNoList(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	code := runApp(t, ctx, &App{App: &cli.App{Out: &out, Err: &errs}}, &slow{scripted: catalog(), began: interrupt}, "list", "tools")
	require.Equal(t, cli.CodeFailure, code)
	require.Equal(t, "goblin: interrupted\n", errs.String())
	require.Empty(t, out.String())
}

func TestListServersIsCode4IfNoneCameUp(t *testing.T) {
	g := catalog()
	for i := range g.status.Servers {
		g.status.Servers[i].State, g.status.Servers[i].Error = "failed", "no program"
	}
	g.status.Servers = append(g.status.Servers, daemon.Server{Name: "off", State: "disabled"})
	for _, args := range [][]string{{"list", "servers"}, {"list", "servers", "--json"}} {
		got := try{gateway: g}.run(t, args...)
		require.Equal(t, cli.CodeConnect, got.code)
		require.Contains(t, got.out, "no program")
		require.Empty(t, got.err, "the table has shown it")
	}
}

func TestADisabledServerLacksNothing(t *testing.T) {
	for _, args := range [][]string{{"validate"}, {"validate", "--json"}} {
		got := try{config: troubled}.run(t, args...)
		require.Zero(t, got.code)
		require.Contains(t, got.out, "disabled")
		require.NotContains(t, got.out+got.err, "GOBLIN_TEST_UNSET")
		require.NotContains(t, got.out, "cannot start")
	}
	g := &scripted{status: daemon.Status{Servers: []daemon.Server{
		{Name: "spaced", State: "failed", Error: `start "echo hello world": no such program`},
	}}}
	got := try{config: troubled, gateway: g}.run(t, "list", "servers")
	require.Contains(t, got.out, `no such program; move its arguments to "args"`)
}
