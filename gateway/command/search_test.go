package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
)

func finding(total int, hits ...daemon.Hit) *scripted {
	return &scripted{status: ready("a", "b"), found: func(daemon.SearchQuery) daemon.SearchAnswer {
		return daemon.SearchAnswer{Hits: hits, Total: total}
	}}
}

var (
	toolHit     = daemon.Hit{Kind: "tool", Score: 2.5, Entry: daemon.Entry{Name: "a_add", Server: "a", OriginalName: "add", Description: "Adds\x1b[31m\nmore", Definition: []byte(`{}`)}}
	resourceHit = daemon.Hit{Kind: "resource", Score: 1, Entry: daemon.Entry{
		Name: "y", URI: "mcp://b/y", Server: "b", OriginalURI: "y", FlatID: "b_y", Title: "Why", MIMEType: "text/plain", Size: size64(12), Definition: []byte(`{"name":"y"}`),
	}}
)

func TestSearchPrintsHitsInColumns(t *testing.T) {
	got := try{gateway: finding(2, toolHit, resourceHit)}.run(t, "search", "some", "words")
	require.Equal(t, outcome{out: "" +
		"KIND      NAME OR URI  SERVER  DESCRIPTION\n" +
		"tool      a_add        a       Adds\\x1b[31m\n" +
		"resource  mcp://b/y            Why\n"}, got)
	got = try{gateway: finding(1, toolHit)}.run(t, "search", "x", "--kind", "tools")
	require.Equal(t, "NAME OR URI  SERVER  DESCRIPTION\na_add        a       Adds\\x1b[31m\n", got.out, "the kind is given")
	got = try{gateway: finding(30, toolHit), tty: true}.run(t, "search", "x", "--limit", "1")
	require.Equal(t, "goblin: 29 more; show them with --limit 30\n", got.err)
}

func TestSearchAsksForWhatIsTyped(t *testing.T) {
	var asked daemon.SearchQuery
	g := finding(0)
	g.found = func(q daemon.SearchQuery) daemon.SearchAnswer { asked = q; return daemon.SearchAnswer{} }
	got := try{gateway: g}.run(t, "search", "a", "b c", "--kind", "resources", "--server", "a", "--mime", "text/*", "--limit", "3")
	require.Equal(t, daemon.SearchQuery{Text: "a b c", Kind: "resources", Server: "a", MIME: "text/*", Limit: 3}, asked)
	require.Equal(t, [][]string{{"a"}}, g.opened, "only this server is started")
	require.Equal(t, outcome{err: "goblin: nothing found for \"a b c\"\n", code: cli.CodeNotFound}, got)
	try{gateway: g}.run(t, "search", "a", "--kind", "tool")
	require.Equal(t, "tools", asked.Kind, "spelled as in the answers")
}

func TestSearchPrintsJSON(t *testing.T) {
	got := try{gateway: finding(7, toolHit, resourceHit)}.run(t, "search", "x", "--json")
	require.Equal(t, cli.CodeOK, got.code, got.err)
	require.JSONEq(t, `{"total": 7, "hits": [
		{"kind": "tool", "score": 2.5, "name": "a_add", "serverId": "a", "originalName": "add", "description": "Adds\u001b[31m\nmore", "definition": {}},
		{"kind": "resource", "score": 1, "uri": "mcp://b/y", "name": "y", "serverId": "b", "originalUri": "y", "flatId": "b_y", "title": "Why",
		 "mimeType": "text/plain", "size": 12, "definition": {"name": "y"}}]}`, got.out)
	got = try{gateway: finding(0)}.run(t, "search", "x", "--json")
	require.JSONEq(t, `{"total": 0, "hits": []}`, got.out)
	require.Equal(t, cli.CodeNotFound, got.code)
}

func TestSearchTellsOfServersThatAreDown(t *testing.T) {
	g := finding(1, toolHit)
	g.status.Servers[1].State, g.status.Servers[1].Error = "failed", "no such program"
	got := try{gateway: g}.run(t, "search", "x")
	require.Equal(t, "goblin: server \"b\" failed: no such program\n", got.err)
	require.Equal(t, cli.CodeOK, got.code)
}

func TestSearchAndLuaThatAreTypedWrong(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"search"}, `search needs search words; see "goblin search --help"`, cli.CodeUsage},
		{[]string{"search", " "}, `search needs search words; see "goblin search --help"`, cli.CodeUsage},
		{[]string{"search", "x", "--kind", "thing"}, `--kind must be one of tools, prompts, resources, templates, not "thing"; see "goblin search --help"`, cli.CodeUsage},
		{[]string{"search", "x", "--mime", "["}, `--mime must be a MIME type or a pattern like 'text/*', not "["; see "goblin search --help"`, cli.CodeUsage},
		{[]string{"search", "x", "--limit", "0"}, `--limit must be a number from 1 to 1000, not 0; see "goblin search --help"`, cli.CodeUsage},
		{[]string{"search", "x", "--server", "nope"}, `no server "nope"; known: a, b, a_b, off`, cli.CodeNotFound},
		{[]string{"lua"}, `lua needs a file with a Lua script, or - for stdin; see "goblin lua --help"`, cli.CodeUsage},
		{[]string{"lua", "a", "b"}, `lua takes only a file with a Lua script, or - for stdin, but got "b" too; quote names with spaces; see "goblin lua --help"`, cli.CodeUsage},
	} {
		got := try{gateway: finding(0)}.run(t, tt.args...)
		require.Equal(t, outcome{err: "goblin: " + tt.want + "\n", code: tt.code}, got, "%v", tt.args)
	}
	got := try{gateway: finding(0)}.run(t, "lua", filepath.Join(t.TempDir(), "none"))
	require.Contains(t, got.err, "goblin: cannot read the script ")
	require.Equal(t, cli.CodeUsage, got.code)
	got = try{gateway: finding(0), stdin: strings.Repeat("-", maxSource+1)}.run(t, "lua", "-")
	require.Equal(t, outcome{err: "goblin: the script is longer than 65536 bytes\n", code: cli.CodeUsage}, got)
}
