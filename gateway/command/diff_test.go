package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/registry/termtext"
)

const (
	recordedA = `{"type":"recording","version":1,"bodies":true}
{"type":"server","server":"odd","lists":{"tools":[{"name":"counter","inputSchema":{}},{"name":"gone"}]}}
{"type":"request","n":7,"time":"2026-01-02T03:04:05Z","client":"me","server":"odd","method":"tools/call","name":"odd_counter","original":"counter","took":1.5,"responseSize":50,"outcome":"success","params":{"name":"odd_counter","arguments":{"n":1}},"answer":{"content":[],"structuredContent":{"count":1,"when":5}}}
{"type":"request","n":8,"server":"odd","method":"tools/call","name":"odd_counter","original":"counter","took":2,"outcome":"success","params":{"name":"odd_counter","arguments":{"n":2}},"answer":{"content":[]}}
`
	recordedB = `{"type":"recording","version":1,"bodies":true}
{"type":"server","server":"odd","lists":{"tools":[{"name":"counter","inputSchema":{},"description":"new"}]}}
{"type":"request","n":9,"server":"odd","method":"tools/call","name":"odd_counter","original":"counter","took":3,"outcome":"success","params":{"name":"odd_counter","arguments":{"n":1}},"answer":{"content":[],"structuredContent":{"count":2,"when":6}}}
`
	listedA = `[{"name":"odd_counter","serverId":"odd","originalName":"counter","definition":{"name":"odd_counter","inputSchema":{}},"state":"listed"}]`
	listedB = `[{"name":"odd_counter","serverId":"odd","originalName":"counter","definition":{"name":"odd_counter","inputSchema":{},"description":"x\u001b[2J"},"state":"disabled"},{"name":"odd_new","serverId":"odd","originalName":"new","definition":{"name":"odd_new","inputSchema":{}},"state":"listed"}]`
	prompts = `[{"name":"odd/p","serverId":"odd","originalName":"p","definition":{"name":"odd/p"},"state":"listed"}]`
)

// diffFiles writes files and returns a function that compares two of them.
func diffFiles(t *testing.T, y try, files map[string]string) func(args ...string) outcome {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return func(args ...string) outcome {
		for i, arg := range args[:2] {
			name, _, _ := strings.Cut(arg, "#")
			if _, ok := files[name]; ok {
				args[i] = filepath.Join(dir, arg)
			}
		}
		return y.run(t, append([]string{"diff"}, args...)...)
	}
}

func TestDiffOfJSONFilesNamesPaths(t *testing.T) {
	y := try{stdin: `{"n":2,"rows":[{"i":1,"when":9}],"text":"\u001b[31mred"}`}
	diff := diffFiles(t, y, map[string]string{"a.json": `{"n":1,"rows":[{"i":0,"when":1},{"i":1,"when":2}],"text":"red"}`})
	got := diff("a.json", "-", "--ignore", "$.rows[*].when")
	require.Zero(t, got.code, got.err)
	require.Equal(t, `~ $.n        1 → 2
- $.rows[0]  {"i":0,"when":1}
~ $.text     "red" → "\u001b[31mred"

3 differences; 1 path ignored
`, got.out)
	require.Equal(t, cli.CodeFailure, diff("a.json", "-", "--exit-code").code)
	same := diff("a.json", "a.json", "--exit-code")
	require.Zero(t, same.code)
	require.Equal(t, "no differences\n", same.out)

	report := decodeJSON(t, diff("a.json", "-", "--json").out).(map[string]any)
	require.Equal(t, false, report["equal"])
	require.Equal(t, map[string]any{"op": "changed", "path": "$.n", "a": 1.0, "b": 2.0}, report["differences"].([]any)[0])
}

func TestDiffFitsATerminal(t *testing.T) {
	long := strings.Repeat("long ", 100)
	files := map[string]string{"a.json": `{"text":"` + long + `","lines":"a\nb\nc","x":1}`, "b.json": `{"text":"` + long + `!","lines":"a\nB\nc","x":"\u202e\u001b]0;t\u0007` + "\u009b2J" + `"}`}
	got := diffFiles(t, try{tty: true, env: map[string]string{"NO_COLOR": "1"}}, files)("a.json", "b.json")
	require.NotContains(t, got.out, "\x1b")
	require.NotContains(t, got.out, "\u009b")
	got = diffFiles(t, try{tty: true}, files)("a.json", "b.json")
	require.Contains(t, got.out, "\x1b[31m    - b\x1b[m\n\x1b[32m    + B\x1b[m")
	require.NotContains(t, diffFiles(t, try{}, files)("a.json", "b.json").out, "\x1b")
	for line := range strings.Lines(diffFiles(t, try{tty: true, env: map[string]string{"NO_COLOR": "1"}}, files)("a.json", "b.json").out) {
		require.LessOrEqual(t, termtext.Width(strings.TrimSpace(line)), 80, line)
	}
}

func TestDiffOfRecordingsPairsCalls(t *testing.T) {
	diff := diffFiles(t, try{}, map[string]string{"a.jsonl": recordedA, "b.jsonl": recordedB, "a.json": "{}"})
	got := diff("a.jsonl", "b.jsonl", "--ignore", "$.result.when", "--exit-code")
	require.Equal(t, cli.CodeFailure, got.code, got.err)
	require.Equal(t, `odd
  ~ tool counter
      description added
  - tool gone

~ tools/call odd_counter  A #7, B #9  1.5 ms → 3.0 ms  {"n":1}
    ~ $.result.count  1 → 2
- tools/call odd_counter  A #8  2.0 ms  {"n":2}

A  2 calls in 3.5 ms, 50 B of answers
B  1 call in 3.0 ms, 0 B of answers
definitions: 1 changed, 1 removed, 0 equal
calls: 0 same, 1 different, 1 only in A, 0 only in B; 1 path ignored
`, got.out)
	require.Zero(t, diff("a.jsonl", "a.jsonl", "--exit-code").code)
	report := decodeJSON(t, diff("a.jsonl", "b.jsonl", "--json").out).(map[string]any)
	require.EqualValues(t, 1, report["onlyA"])
	require.Len(t, report["calls"], 2)
	require.Len(t, report["entries"], 2)

	got = diff("a.jsonl#7", "b.jsonl#9")
	require.Regexp(t, `(?s)^A  #7  2026-01-02 \d\d:\d\d:05\.000  me  odd  tools/call  odd_counter  1\.5 ms  50 B\nB  #9 .*the definition changed \(hash [0-9a-f]{4} → [0-9a-f]{4}\)\n\n~ \$\.result\.count  1 → 2\n`, got.out)
	require.Contains(t, got.out, "\n2 differences\n")
	require.Contains(t, diff("a.jsonl#7", "a.jsonl#8").out, "~ $.arguments.n")

	require.Contains(t, diff("a.jsonl#99", "b.jsonl#9").err, "no such request")
	mixed := diff("a.jsonl", "a.json")
	require.Equal(t, cli.CodeUsage, mixed.code)
	require.Contains(t, mixed.err, "cannot compare a recording with a JSON file")
	require.Contains(t, diff("a.jsonl#7", "b.jsonl").err, "cannot compare a call with a recording")
}

func TestDiffOfListsNamesDefinitions(t *testing.T) {
	diff := diffFiles(t, try{}, map[string]string{
		"a.json": listedA, "b.json": listedB, "prompts.json": prompts, "empty.json": "[]",
		"servers-a.json": `[{"name":"odd","state":"ready","transport":"stdio","pid":1}]`,
		"servers-b.json": `[{"name":"odd","state":"failed","transport":"stdio","pid":2}]`,
	})
	got := diff("a.json", "b.json")
	require.Equal(t, `odd
  ~ tool counter
      state: listed → disabled
      description added
  + tool new

tools: 1 changed, 1 added, 0 equal
`, got.out)
	require.Contains(t, diff("empty.json", "b.json").out, "tools: 2 added, 0 equal")
	mixed := diff("a.json", "prompts.json")
	require.Equal(t, cli.CodeUsage, mixed.code)
	require.Contains(t, mixed.err, "cannot compare a list of tools with a list of prompts")
	require.Contains(t, diff("a.json", "servers-a.json").err, "with a list of servers")
	require.Contains(t, diff("servers-a.json", "servers-b.json").out, `~ $.state  "ready" → "failed"`)
	require.NotContains(t, diff("servers-a.json", "servers-b.json").out, "pid")
}

func TestDiffExplainsMistakes(t *testing.T) {
	diff := diffFiles(t, try{}, map[string]string{"a.json": "{}", "bad.json": "{\n  oops}"})
	for _, c := range []struct {
		args []string
		code int
		err  string
	}{
		{[]string{"a.json", "missing.json"}, cli.CodeNotFound, "missing.json: no such file"},
		{[]string{"a.json", "bad.json"}, cli.CodeFailure, "neither a recording nor JSON: line 2, column 3"},
		{[]string{"-", "-"}, cli.CodeUsage, "only one side can be stdin"},
		{[]string{"a.json", "a.json", "a.json"}, cli.CodeUsage, "needs two names"},
		{[]string{"a.json", "a.json", "--ignore", "$.a["}, cli.CodeUsage, "write paths such as"},
	} {
		got := diff(c.args...)
		require.Equal(t, c.code, got.code, "%v: %s", c.args, got.err)
		require.Contains(t, got.err, c.err)
	}
}
