package servercheck_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/config"
	"goblin/gateway/doctor"
	"goblin/gateway/e2e"
	"goblin/gateway/servercheck"
)

func TestMain(m *testing.M) {
	if err := e2e.ProvideTestServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

type obj = map[string]any

func do(kind string, more ...obj) obj { return e2e.Merge(obj{"do": kind}, more) }

func refuse(code int) obj { return do("error", obj{"error": obj{"code": code, "message": "no"}}) }

// tool returns a tool without defects, with changes. A nil value removes a member.
func tool(name string, changes ...obj) obj {
	t := obj{
		"name": name, "description": "Returns the word that it gets.", "annotations": obj{"readOnlyHint": true},
		"inputSchema": obj{"type": "object", "properties": obj{"word": obj{"type": "string", "description": "A word"}}, "required": []string{"word"}},
	}
	for _, c := range changes {
		for k, v := range c {
			if t[k] = v; v == nil {
				delete(t, k)
			}
		}
	}
	return t
}

func property(schema obj) obj {
	schema["description"] = "A value"
	return obj{"inputSchema": obj{"type": "object", "properties": obj{"a": schema}}}
}

// healthy returns the script of a server without defects, with changes of its members and
// actions.
func healthy(changes ...obj) obj {
	on := obj{
		"tools/call": []obj{refuse(-32602)}, "prompts/get": []obj{refuse(-32602)},
		"resources/read": []obj{refuse(-32602)}, "resources/read file:///a": []obj{},
	}
	s := obj{
		"name": "it", "version": "2025-11-25", "on": on, "tools": []obj{tool("echo"), tool("other")},
		"prompts":   []obj{{"name": "greet", "description": "Greets", "arguments": []obj{{"name": "who", "description": "A name"}}}},
		"resources": []obj{{"uri": "file:///a", "name": "a"}},
	}
	for _, c := range changes {
		for k, v := range c {
			if added, ok := v.(obj); ok && k == "on" {
				for key, actions := range added {
					on[key] = actions
				}
				continue
			}
			if s[k] = v; v == nil {
				delete(s, k)
			}
		}
	}
	return s
}

func on(method string, actions ...obj) obj { return healthy(obj{"on": obj{method: actions}}) }

func tools(all ...obj) obj { return healthy(obj{"tools": all}) }

func page(names []string, cursor any) obj {
	all := []obj{}
	for _, name := range names {
		all = append(all, tool(name))
	}
	return obj{"result": obj{"tools": all, "nextCursor": cursor}}
}

// run checks a server with a script, in a config.
func run(t *testing.T, script obj, change ...func(*servercheck.Options)) *servercheck.Result {
	t.Helper()
	o, s := options(t, script, change...)
	r, err := servercheck.Run(t.Context(), o, s)
	require.NoError(t, err)
	return r
}

func options(t *testing.T, script obj, change ...func(*servercheck.Options)) (servercheck.Options, *config.Server) {
	t.Helper()
	e2e.Use()
	dir := t.TempDir()
	script["log"] = filepath.Join(dir, "log")
	text, err := json.Marshal(script)
	require.NoError(t, err)
	path := filepath.Join(dir, "script.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	s := config.Server{Name: "it", Type: config.Stdio, Command: e2e.TestServer, Args: []string{path}, StartupTimeout: 30 * time.Second, Timeout: 30 * time.Second}
	o := servercheck.Options{AnswerTime: 30 * time.Second, ExitTime: 30 * time.Second, SlowTime: time.Hour, Options: doctor.Options{
		Version: "test", Folder: dir, Config: &config.Config{Path: filepath.Join(dir, "goblin.yaml"), Servers: []config.Server{s}, Gateway: config.Gateway{MaxName: 51}},
	}}
	for _, c := range change {
		c(&o)
	}
	return o, &o.Config.Servers[0]
}

func rulesOf(r *servercheck.Result) (all []string) {
	for _, f := range r.Findings {
		if !slices.Contains(all, f.Rule) {
			all = append(all, f.Rule)
		}
	}
	return all
}

func TestAHealthyServerHasNoFindings(t *testing.T) {
	t.Parallel()
	r := run(t, healthy(), func(o *servercheck.Options) { o.Read = true })
	require.Empty(t, r.Findings)
	require.Equal(t, map[string]int{"tool": 2, "prompt": 1, "resource": 1, "template": 0}, r.Entries)
	require.Equal(t, "2025-11-25", r.Protocol)
	require.Equal(t, "it 1.0.0", r.Name)
	require.Equal(t, "it_other", r.Tools[0].Listed) // the largest one
	require.Greater(t, r.Definitions.Tokens, 50)
	require.Regexp(t, `^it: 0 errors, 0 warnings, 0 notes; it 1\.0\.0; 2 tools, \d+ tokens; ready after .*\n$`, r.Text())
}

func short(o *servercheck.Options) {
	o.AnswerTime, o.ExitTime = 500*time.Millisecond, 500*time.Millisecond
}

// defects contains a server for each rule.
var defects = map[string]struct {
	script obj
	change func(*servercheck.Options)
	text   string // part of the finding's text
}{
	"start/failed":   {script: healthy(), change: func(o *servercheck.Options) { o.Config.Servers[0].Command = "no-such-program" }, text: "not found in PATH"},
	"start/slow":     {script: healthy(), change: func(o *servercheck.Options) { o.SlowTime = time.Nanosecond }},
	"start/unstable": {script: on("start", do("crash", obj{"text": "locked", "after": 1, "code": 3})), text: "exit status 3; its last line on stderr: locked"},

	"handshake/failed":          {script: on("initialize", e2e.Merge(refuse(-32603), []obj{{"starts": 1}}))},
	"handshake/result":          {script: on("initialize", do("result", obj{"result": obj{"protocolVersion": "2025-11-25", "capabilities": obj{}, "serverInfo": obj{"name": "x"}}})), text: "serverInfo.version"},
	"handshake/version":         {script: healthy(obj{"version": "1.0"}), text: `"1.0"`},
	"handshake/unknown-version": {script: on("initialize", e2e.Merge(refuse(-32602), []obj{{"after": 1}})), text: "-32602"},
	"handshake/echoed-version":  {script: healthy(obj{"version": nil})},

	"stdout/noise":    {script: on("start", do("write", obj{"text": "\x1b[31mListening {"})), text: `\x1b[31mListening {`},
	"stdout/newline":  {script: on("ping", do("answer", obj{"text": "{\n \"jsonrpc\":\"2.0\",\"id\":$id,\n \"result\":{}}"})), text: "3 lines"},
	"stdout/batch":    {script: on("ping", do("answer", obj{"text": `[{"jsonrpc":"2.0","id":$id,"result":{}}]`}))},
	"stdout/bom":      {script: on("initialize", do("raw", obj{"data": []byte("\xef\xbb\xbf")}))},
	"stdout/encoding": {script: on("ping", do("answer", obj{"data": []byte("{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"a\":\"\xff\"}}")}))},
	"stdout/long":     {script: on("ping", do("write", obj{"text": "$x", "bytes": 33 << 20}))},

	"message/shape":      {script: on("ping", do("answer", obj{"text": `{"id":$id,"result":{}}`})), text: `no "jsonrpc": "2.0"`},
	"message/id":         {script: on("ping", do("answer", obj{"text": `{"jsonrpc":"2.0","id":"$id","result":{}}`})), text: "sent as a text"},
	"message/unexpected": {script: on("ping", do("write", obj{"text": `{"jsonrpc":"2.0","id":999,"result":{}}`})), text: "999"},
	"message/early":      {script: on("initialize", do("notify", obj{"method": "notifications/tools/list_changed"}))},

	"capability/missing-method": {script: on("prompts/list", refuse(-32601)), text: "prompts is declared"},
	"capability/undeclared":     {script: healthy(obj{"capabilities": obj{"prompts": obj{}}}), text: "2 tools"},
	"capability/shape":          {script: healthy(obj{"capabilities": obj{"tools": true}})},
	"capability/subscribe":      {script: on("resources/subscribe", refuse(-32601))},
	"capability/logging":        {script: on("logging/setLevel", refuse(-32601))},
	"capability/completions":    {script: on("completion/complete", refuse(-32601))},
	"capability/templates":      {script: on("resources/templates/list", refuse(-32601))},
	"capability/unannounced":    {script: healthy(obj{"capabilities": obj{"tools": obj{}}, "on": obj{"ping": []obj{do("notify", obj{"method": "notifications/tools/list_changed"})}}})},

	"answer/none":           {script: on("ping", do("hang")), change: short},
	"answer/crash":          {script: on("ping", do("crash", obj{"text": "assertion failed", "code": 7})), text: "exit status 7; its last line on stderr: assertion failed"},
	"answer/ping":           {script: on("ping", refuse(-32601))},
	"answer/unknown-method": {script: on("goblin/goblin_check_no_such_name", do("result", obj{"result": obj{}}))},
	"answer/unknown-name":   {script: on("tools/call", do("text", obj{"text": "done"}))},
	"answer/invalid-params": {script: on("prompts/get", do("result", obj{"result": obj{"messages": []obj{}}}))},
	"answer/read":           {script: on("resources/read file:///a", refuse(-32603)), change: func(o *servercheck.Options) { o.Read = true }},

	"list/failed":         {script: on("tools/list", refuse(-32603))},
	"list/shape":          {script: on("tools/list", do("result", obj{"result": obj{}}))},
	"list/cursor":         {script: on("tools/list", do("result", page([]string{"a"}, nil))), text: "null"},
	"list/cursor-refused": {script: on("tools/list", do("result", page([]string{"a"}, "x"), obj{"times": 1}), refuse(-32602))},
	"list/cursor-loop":    {script: on("tools/list", do("result", page([]string{"a"}, "x")))},
	"list/endless":        {script: on("tools/list", do("answer", obj{"text": `{"jsonrpc":"2.0","id":$id,"result":{"tools":[{"name":"t$count"}],"nextCursor":"$count"}}`})), text: "1000 pages"},
	"list/empty-page":     {script: on("tools/list", do("result", page(nil, "x"), obj{"times": 1}))},
	"list/duplicate":      {script: tools(tool("a"), tool("b"), tool("a")), text: "twice"},
	"list/order":          {script: on("tools/list", do("result", obj{"result": obj{"tools": []obj{tool("a"), tool("b")}}, "times": 1}), do("result", obj{"result": obj{"tools": []obj{tool("b"), tool("a")}}})), text: "order"},
	"list/slow":           {script: healthy(), change: func(o *servercheck.Options) { o.SlowTime = time.Nanosecond }},

	"definition/dropped":   {script: healthy(obj{"prompts": []any{obj{"name": "p", "arguments": []obj{{}}}, 7}}), text: "no name"},
	"definition/member":    {script: healthy(obj{"tools": []json.RawMessage{json.RawMessage(`{"name":"a","description":"x","title":null,"inputSchema":{"type":"object"}}`)}}), text: "title removed: null"},
	"schema/input":         {script: tools(tool("a", obj{"inputSchema": obj{}})), text: `inputSchema.type set to "object"`},
	"schema/output":        {script: tools(tool("a", obj{"outputSchema": obj{"type": "array"}}))},
	"schema/invalid":       {script: tools(tool("a", property(obj{"minimum": "3"}))), text: "minimum"},
	"schema/reference":     {script: tools(tool("a", property(obj{"$ref": "#/$defs/none"}))), text: "none"},
	"schema/required":      {script: tools(tool("a", obj{"inputSchema": obj{"type": "object", "properties": obj{}, "required": []string{"gone"}}})), text: `"gone"`},
	"schema/model":         {script: tools(tool("a", property(obj{"type": "array"}))), text: "array without items"},
	"schema/output-unsure": {script: tools(tool("a", obj{"outputSchema": obj{"type": "object", "properties": obj{"a": obj{"pattern": "(?<year>a)"}}}}))},

	"name/long":       {script: tools(tool(strings.Repeat("n", 65))), text: "65 characters"},
	"name/prefixed":   {script: tools(tool(strings.Repeat("n", 58))), text: "Claude Code"},
	"name/characters": {script: tools(tool("a b")), text: "a_b"},
	"name/collision":  {script: tools(tool("a b"), tool("a_b"))},
	"name/listed":     {script: tools(tool(strings.Repeat("n", 52))), text: "it_nnn"},

	"description/missing":      {script: tools(tool("a", obj{"description": " "}))},
	"description/prompt":       {script: healthy(obj{"prompts": []obj{{"name": "p"}}})},
	"description/argument":     {script: tools(tool("a", obj{"inputSchema": obj{"type": "object", "properties": obj{"bare": obj{}}}})), text: "bare"},
	"description/long":         {script: tools(tool("a", obj{"description": strings.Repeat("ä", 2049)})), text: "2049 characters"},
	"annotation/missing":       {script: tools(tool("a", obj{"annotations": nil}))},
	"annotation/contradiction": {script: tools(tool("a", obj{"annotations": obj{"readOnlyHint": true, "destructiveHint": true}}))},

	"size/tool":         {script: tools(tool("a", obj{"description": strings.Repeat("word ", 2000)}))},
	"size/total":        {script: healthy(), change: func(o *servercheck.Options) { o.MaxTokens = 1 }},
	"size/tools":        {script: healthy(obj{"generate": obj{"tools": 100}}), text: "Windsurf"},
	"size/instructions": {script: healthy(obj{"instructions": strings.Repeat("x", 2049)})},

	"meta/reserved": {script: tools(tool("a", obj{"_meta": obj{"io.modelcontextprotocol/mine": 1, "com.example/x": 1, "io.modelcontextprotocol/related-task": 1}})), text: "mine"},
	"meta/key":      {script: tools(tool("a", obj{"_meta": obj{"my key": 1, "ui": obj{}}})), text: "my key"},

	"exit/stdin":   {script: healthy(obj{"ignoreEOF": true}), change: short},
	"exit/signal":  {script: healthy(obj{"ignoreEOF": true, "ignoreTerm": true}), change: short},
	"exit/code":    {script: healthy(obj{"exitCode": 9}), text: "code 9"},
	"exit/orphans": {script: on("start", do("grandchild")), text: "1 child process"},
}

func TestEachDefectIsReported(t *testing.T) {
	t.Parallel()
	for _, rule := range servercheck.Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			t.Parallel()
			d, ok := defects[rule.ID]
			require.True(t, ok, "no server with this defect")
			if d.change == nil {
				d.change = func(*servercheck.Options) {}
			}
			r := run(t, d.script, d.change)
			i := slices.IndexFunc(r.Findings, func(f servercheck.Finding) bool { return f.Rule == rule.ID && strings.Contains(f.Text, d.text) })
			require.GreaterOrEqual(t, i, 0, "%v", r.Findings)
			require.Equal(t, rule.Level, r.Findings[i].Level)
			require.NotEmpty(t, r.Findings[i].Subject)
			require.Contains(t, r.Text(), rule.ID)
		})
	}
}

func TestAnInterruptStopsTheServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o, s := options(t, on("ping", do("hang")), func(o *servercheck.Options) {
		o.Progress = func(step string) {
			if step == "requests" {
				cancel()
			}
		}
	})
	_, err := servercheck.Run(ctx, o, s)
	require.ErrorIs(t, err, context.Canceled)
	pids, err := os.ReadFile(filepath.Join(o.Folder, "log.starts"))
	require.NoError(t, err)
	_, err = os.Stat("/proc/" + strings.TrimSpace(string(pids)))
	require.Error(t, err, "the process has exited")
}

func TestTextsAreShortSafeAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	var all []obj
	for i := range 60 {
		all = append(all, tool(fmt.Sprintf("\x1b[2J%d hunter2", i), obj{"description": nil}))
	}
	r := run(t, tools(append(all, tool(strings.Repeat("x", 1<<20)))...), func(o *servercheck.Options) {
		o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "…") }
	})
	require.Less(t, len(r.Findings), 200)
	text := r.Text()
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, "hunter2")
	require.Contains(t, text, "description/missing  more: 40 findings like the above")
	require.Equal(t, 1, strings.Count(text, "models choose tools by their descriptions"), "the effect is written once")
	require.NotContains(t, string(r.SARIF("1", "", 0)), "hunter2")
	for _, f := range r.Findings {
		require.Less(t, len(f.Text), 4<<10)
	}
}

func TestNoListedToolIsCalled(t *testing.T) {
	t.Parallel()
	o, s := options(t, healthy())
	_, err := servercheck.Run(t.Context(), o, s)
	require.NoError(t, err)
	var calls []string
	for _, m := range requests(t, &o) {
		if m.Method == "tools/call" || m.Method == "prompts/get" || m.Method == "resources/read" {
			calls = append(calls, m.Params.Name+m.Params.URI)
		}
	}
	require.ElementsMatch(t, []string{"goblin_check_no_such_name", "goblin_check_no_such_name", "goblin-check://goblin_check_no_such_name", ""}, calls)
}

type request struct {
	Method string
	Params struct{ Name, URI string }
}

// requests returns the messages that the server got.
func requests(t *testing.T, o *servercheck.Options) (all []request) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(o.Folder, "log"))
	require.NoError(t, err)
	for line := range strings.Lines(string(log)) {
		var m request
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		all = append(all, m)
	}
	return all
}

func TestAServerThatAnswersNothingGetsOneRequestAndAPing(t *testing.T) {
	t.Parallel()
	hang := []obj{do("hang")}
	o, s := options(t, healthy(obj{"on": obj{"tools/list": hang, "prompts/list": hang, "resources/list": hang, "ping": hang}}), short)
	r, err := servercheck.Run(t.Context(), o, s)
	require.NoError(t, err)
	require.Equal(t, []string{"answer/none"}, rulesOf(r), "%v", r.Findings)
	var methods []string
	for _, m := range requests(t, &o) {
		methods = append(methods, m.Method)
	}
	require.Equal(t, []string{"initialize", "notifications/initialized", "tools/list", "ping"}, methods)

	r = run(t, on("tools/list", do("hang")), short)
	require.Equal(t, 1, r.Entries["prompt"], "a server that answers pings is checked on")
}

func TestAServerWithoutHandshakeIsStartedOnce(t *testing.T) {
	t.Parallel()
	o, s := options(t, on("initialize", do("hang")), short, func(o *servercheck.Options) {
		o.Config.Servers[0].StartupTimeout = 300 * time.Millisecond
	})
	r, err := servercheck.Run(t.Context(), o, s)
	require.NoError(t, err)
	starts, err := os.ReadFile(filepath.Join(o.Folder, "log.starts"))
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(starts)), 1)
	require.Contains(t, fmt.Sprint(r.Diagnosis), "startup_timeout")
	require.Contains(t, fmt.Sprint(r.Diagnosis), "raise")
}

func TestOtherFormsOfADefectAreReported(t *testing.T) {
	t.Parallel()
	answer := func(text string) obj { return on("ping", do("answer", obj{"text": text})) }
	for text, c := range map[string]struct {
		script obj
		want   string // rule, level and a part of the text
	}{
		"an error without an id":     {answer(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}`), "message/id error without an id"},
		"an error that is a text":    {answer(`{"jsonrpc":"2.0","id":$id,"error":"no"}`), "message/shape error without an integer code"},
		"neither result nor error":   {answer(`{"jsonrpc":"2.0","id":$id}`), "message/shape error without result and error"},
		"both result and error":      {answer(`{"jsonrpc":"2.0","id":$id,"result":{},"error":{"code":1,"message":"x"}}`), "message/shape error with result and error"},
		"two answers":                {on("ping", do("write", obj{"text": `{"jsonrpc":"2.0","id":$id,"result":{}}`})), "message/unexpected warning no request waits"},
		"a cursor that is a number":  {on("tools/list", do("result", page([]string{"a"}, 7))), "list/cursor error 7"},
		"a list that works once":     {on("tools/list", do("result", page([]string{"a", "b"}, ""), obj{"times": 1}), refuse(-32603)), "list/failed error although the list was fetched before"},
		"a tool without a name":      {tools(tool("a"), obj{"description": "x"}), "definition/dropped error entry 2 has no name"},
		"a tool that is a text":      {healthy(obj{"tools": []any{"x"}}), "definition/dropped error not an object"},
		"dots in a name":             {tools(tool("a.b")), "name/characters warning a_b"},
		"a reference to a document":  {tools(tool("a", property(obj{"$ref": "https://example.com/x"}))), "schema/reference error another document"},
		"an unknown type":            {tools(tool("a", property(obj{"type": "strin"}))), `schema/invalid error unknown type "strin"`},
		"no answer to many requests": {healthy(obj{"on": obj{"tools/list": []obj{do("deaf"), do("hang")}}}), "answer/none error no answer within"},
		"an exit after the requests": {on("goblin/goblin_check_no_such_name",
			do("write", obj{"text": `{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"x"}}`}), do("crash", obj{"code": 7})), "answer/crash error without a request, the process exited: exit status 7"},
		"a line before the end": {on("tools/list", do("raw", obj{"text": "{\n\"a\": \n"})), "stdout/noise error not a message"},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			r := run(t, c.script, func(o *servercheck.Options) {
				if strings.HasPrefix(c.want, "answer/none") {
					short(o)
				}
			})
			var all []string
			for _, f := range r.Findings {
				all = append(all, f.Rule+" "+f.Level+" "+f.Text)
			}
			words := strings.SplitN(c.want, " ", 3)
			require.True(t, slices.ContainsFunc(all, func(f string) bool {
				return strings.HasPrefix(f, words[0]+" "+words[1]) && strings.Contains(f, words[2])
			}), "%q", all)
		})
	}
}

// A process in its own session is not in the group that Goblin stops.
func TestAChildThatLeavesTheGroupIsReported(t *testing.T) {
	t.Parallel()
	r := run(t, healthy(), func(o *servercheck.Options) {
		s := &o.Config.Servers[0]
		s.Args = []string{"-c", "setsid sleep 5 & exec " + e2e.TestServer + " " + s.Args[0]}
		s.Command = "sh"
	})
	require.Equal(t, []string{"exit/orphans"}, rulesOf(r))
	require.Contains(t, r.Findings[0].Text, "outside of its process group")
}

func TestACrashAtTheExitNamesItsSignal(t *testing.T) {
	t.Parallel()
	r := run(t, healthy(), func(o *servercheck.Options) {
		s := &o.Config.Servers[0]
		s.Args = []string{"-c", e2e.TestServer + " " + s.Args[0] + "; kill -KILL $$"}
		s.Command = "sh"
	})
	require.Equal(t, []string{"exit/code"}, rulesOf(r))
	require.Contains(t, r.Findings[0].Text, "crashed after its stdin was closed: signal: killed")
}
