package command

import (
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
	require.Contains(t, got.out, `"x": 1.50`, "numbers stay as they are")
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

func TestWrongUseIsCode2AndNamesTheHelp(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"list"}, `say what to list: servers, tools, prompts, resources or templates; see "goblin list --help"`},
		{[]string{"list", "tolls"}, `not "tolls"; see`},
		{[]string{"list", "tools", "--mime", "x/y"}, "--mime is for resources and templates"},
		{[]string{"list", "resources", "--mime", "["}, `--mime must be a MIME type or a pattern such as 'text/*', not "["`},
		{[]string{"list", "tools", "x"}, `list takes one kind, but got "x" too`},
		{[]string{"list", "tools", "--server", ""}, "goblin: --server must not be empty; see"},
		{[]string{"list", "tools", "--json=x"}, `goblin: --json takes no value, but got "x"`},
		{[]string{"list", "tools", "--bogus"}, "unknown flag: --bogus"},
		{[]string{"list", "-x"}, "unknown flag: -x"},
		{[]string{"list", "tools", "--server"}, "--server needs a value: SERVER"},
		{[]string{"search", "x", "--limit", "many"}, `--limit must be a whole number, not "many"`},
		{[]string{"read"}, "goblin: read needs the URI of a resource"},
		{[]string{"read", "a", "b"}, `got "b" too`},
		{[]string{"call", "x", "--args", "[1]"}, `--args must be a JSON object such as '{"name": "value"}', not an array`},
		{[]string{"call", "x", "--args", "{"}, "--args takes a JSON object"},
		{[]string{"call", "x", "--args", "@/nonexistent/file"}, "--args: cannot read /nonexistent/file: no such file"},
		{[]string{"call", "x", "--meta", `"m"`}, `--meta must be a JSON object such as '{"name": "value"}', not a string`},
		{[]string{"prompt", "x", "--arg", "novalue"}, `--arg "novalue" must be NAME=VALUE`},
		{[]string{"status", "x"}, `takes no arguments, but got "x"`},
		{[]string{"validate", "c.yaml"}, `takes no arguments; a config is named by --config c.yaml; see`},
		{[]string{"restart"}, "needs the name of a server"},
		{[]string{"tools"}, "goblin: tools needs to know what to do: off, on or list; see"},
		{[]string{"tools", "of"}, `goblin: tools can off, on or list, not "of"; did you mean "off"?`},
		{[]string{"secret", "frob"}, `goblin: secret can set, get, list or rm, not "frob"; see`},
		{[]string{"add", "d", "http://x", "--type", "foo"}, `goblin: --type must be http or sse, not "foo"; see`},
		{[]string{"registry", "search", "x", "--url", "foo"}, `goblin: the registry "foo" is no URL such as https://`},
	}
	for _, tt := range tests {
		got := try{gateway: catalog()}.run(t, tt.args...)
		require.Equal(t, cli.CodeUsage, got.code, tt.args)
		require.Contains(t, got.err, tt.want)
		require.Regexp(t, `^goblin: [^\n]+\n$`, got.err, "one line")
		require.Empty(t, got.out)
	}
}

func TestServersThatCannotBeAskedAreNamed(t *testing.T) {
	const unset = "servers:\n  a: {command: x, args: [\"${SURELY_NOT_SET}\"]}\n  off: {command: x, disabled: true}\n"
	tests := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"list", "tools", "--server", "of"}, cli.CodeNotFound, `there is no server "of"; did you mean "off"?`},
		{[]string{"list", "tools", "--server", "off"}, cli.CodeConnect, `server "off" is disabled`},
		{[]string{"list", "tools", "--server", "a"}, cli.CodeConnect, "SURELY_NOT_SET"},
		{[]string{"read", "mcp://off/x"}, cli.CodeConnect, `server "off" is disabled`},
		{[]string{"call", "x", "--server", "zzz"}, cli.CodeNotFound, `there is no server "zzz"`},
	}
	for _, tt := range tests {
		got := try{config: unset, gateway: &scripted{}}.run(t, tt.args...)
		require.Equal(t, tt.code, got.code, tt.args)
		require.Contains(t, got.err, tt.want)
	}
}

func TestNearestNames(t *testing.T) {
	names := []string{"notes_add_note", "notes_edit_note", "clock_time_in", "mcp://notes/note:///haiku", "mcp://clock/clock://now", "list"}
	tests := []struct {
		wrong string
		want  []string
	}{
		{"notes_ad_note", []string{"notes_add_note"}},
		{"notes_note", []string{"notes_add_note", "notes_edit_note"}},
		{"time_in", []string{"clock_time_in"}},
		{"NOTE:///haik", []string{"mcp://notes/note:///haiku"}},
		{"mcp://nope/x", nil},
		{"lsit", []string{"list"}},
		{"", nil},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, cli.Nearest(tt.wrong, names), tt.wrong)
	}
}
