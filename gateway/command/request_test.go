package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/gateway/jsonrpc"
)

func TestReadGivesPipesWhatItIsAndTerminalsWhatIsHarmless(t *testing.T) {
	tests := []struct {
		name, result, pipe, tty string
	}{
		{"text", `{"contents":[{"uri":"u","text":"a\u001b[2Jb"}]}`, "a\x1b[2Jb", "a\\x1b[2Jb\n"},
		{"text with a line break", `{"contents":[{"uri":"u","text":"a\r\n"}]}`, "a\r\n", "a\n"},
		{"blob", `{"contents":[{"uri":"u","blob":"AAEC/w==","mimeType":"image/png"}]}`, "\x00\x01\x02\xff", "[4 B, image/png: redirect the output to a file, or use --json]\n"},
		{"blob without padding, for URLs", `{"contents":[{"uri":"u","blob":"AAEC_w"}]}`, "\x00\x01\x02\xff", "[4 B: redirect the output to a file, or use --json]\n"},
		{"several", `{"contents":[{"uri":"u1","text":"one"},{"uri":"u2\u001b","mimeType":"text/x","text":"two"}]}`, "onetwo", "── u1\none\n\n── u2\\x1b (text/x)\ntwo\n"},
		{"nothing", `{"contents":[]}`, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := try{gateway: &scripted{answer: gives(tt.result)}}.run(t, "read", "mcp://a/u")
			require.Equal(t, outcome{out: tt.pipe}, got)
			got = try{gateway: &scripted{answer: gives(tt.result)}, tty: true}.run(t, "read", "mcp://a/u")
			require.Equal(t, outcome{out: tt.tty}, got)
			got = try{gateway: &scripted{answer: gives(tt.result)}, tty: true}.run(t, "read", "mcp://a/u", "--json")
			require.Equal(t, outcome{out: tt.result + "\n"}, got)
		})
	}
}

func TestRequestsCarryWhatWasTypedExactly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "args.json")
	require.NoError(t, os.WriteFile(file, []byte("{\n  \"n\": 1.50\n}"), 0o600))
	tests := []struct {
		name, stdin string
		args        []string
		want        string
	}{
		{"no arguments", "", []string{"call", "a_x"}, `tools/call {"arguments":{},"name":"a_x"}`},
		{"numbers and order", "", []string{"call", "a_x", "--args", `{"z":9007199254740993,"a":1.50}`}, `tools/call {"arguments":{"z":9007199254740993,"a":1.50},"name":"a_x"}`},
		{"from a file", "", []string{"call", "a_x", "--args", "@" + file}, `tools/call {"arguments":{   "n": 1.50 },"name":"a_x"}`},
		{"from stdin", `{"s":"in"}`, []string{"call", "a_x", "--args", "-"}, `tools/call {"arguments":{"s":"in"},"name":"a_x"}`},
		{"meta", "", []string{"call", "a_x", "--meta", `{"k":1}`}, `tools/call {"arguments":{},"name":"a_x","_meta":{"k":1,"progressToken":2}}`},
		{"a progress token of one's own", "", []string{"call", "a_x", "--meta", `{"progressToken":7}`}, `tools/call {"arguments":{},"name":"a_x","_meta":{"progressToken":7}}`},
		{"a server's own tool", "", []string{"call", "x", "--server", "a"}, `tools/call {"arguments":{},"name":"a/x"}`},
		{"a listed name with its server", "", []string{"call", "a_x", "--server", "a"}, `tools/call {"arguments":{},"name":"a_x"}`},
		{"prompt", "", []string{"prompt", "a/p", "--arg", "k=v=w", "--arg", "q=\""}, `prompts/get {"arguments":{"k":"v=w","q":"\""},"name":"a/p"}`},
		{"resource", "", []string{"read", "file:///a b\n"}, `resources/read {"uri":"file:///a b\n"}`},
		{"a server's own URI", "", []string{"read", "file:///x", "--server", "a"}, `resources/read {"uri":"mcp://a/file:///x"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := &scripted{answer: gives(`{}`)}
			got := try{gateway: g, stdin: tt.stdin}.run(t, tt.args...)
			require.Zero(t, got.code, got.err)
			if !strings.Contains(tt.want, `"_meta"`) {
				tt.want = strings.TrimSuffix(tt.want, "}") + `,"_meta":{"progressToken":2}}`
			}
			require.Equal(t, []string{tt.want}, g.requests)
		})
	}
}

func TestCallPrintsWhatTheToolSays(t *testing.T) {
	tests := []struct {
		name, result string
		want         outcome
	}{
		{"text", `{"content":[{"type":"text","text":"one"},{"type":"text","text":"two\n"}]}`, outcome{out: "one\ntwo\n"}},
		{"its failure", `{"content":[{"type":"text","text":"no such\u001b zone"}],"isError":true}`, outcome{err: "goblin: tool \"a_x\" failed: no such\\x1b zone\n", code: 1}},
		{"a silent failure", `{"content":[],"isError":true}`, outcome{err: "goblin: tool \"a_x\" failed: no reason given\n", code: 1}},
		{"an image alone", `{"content":[{"type":"image","data":"AAEC/w==","mimeType":"image/png"}]}`, outcome{out: "\x00\x01\x02\xff"}},
		{"an image among text", `{"content":[{"type":"text","text":"look"},{"type":"image","data":"AAEC/w==","mimeType":"image/png"}]}`, outcome{out: "look\n[image, image/png, 4 B: use --json]\n"}},
		{"a blob and what is none", `{"content":[{"type":"resource","resource":{"uri":"u","blob":"AAEC_w"}},{"type":"audio","data":"!!!","mimeType":"audio/wav"}]}`, outcome{out: "[resource u, 4 B: use --json]\n[audio, audio/wav, invalid base64: use --json]\n"}},
		{"a link", `{"content":[{"type":"resource_link","uri":"mcp://a/u","name":"n"}]}`, outcome{out: "[resource mcp://a/u, n]\n"}},
		{"an embedded resource", `{"content":[{"type":"resource","resource":{"uri":"u","text":"inside"}}]}`, outcome{out: "inside"}},
		{"only structured", `{"content":[],"structuredContent":{"n":1.50}}`, outcome{out: "{\"n\":1.50}\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, try{gateway: &scripted{answer: gives(tt.result)}}.run(t, "call", "a_x"))
		})
	}
	got := try{gateway: &scripted{answer: gives(`{"content":[],"isError":true}`)}}.run(t, "call", "a_x", "--json")
	require.Equal(t, outcome{out: "{\"content\":[],\"isError\":true}\n", code: 1}, got)
}

func TestPromptPrintsMessagesUnderTheirRoles(t *testing.T) {
	g := &scripted{answer: gives(`{"messages":[
		{"role":"user","content":{"type":"text","text":"hello"}},
		{"role":"assistant","content":[{"type":"text","text":"one"},{"type":"resource","resource":{"uri":"u","text":"two"}}]}]}`)}
	got := try{gateway: g}.run(t, "prompt", "a/p")
	require.Equal(t, outcome{out: "user:\nhello\n\nassistant:\none\ntwo\n"}, got)
}

func TestErrorsOfTheGatewayHaveExitCodes(t *testing.T) {
	tests := []struct {
		name   string
		answer func(*scripted, string, []byte) (string, *jsonrpc.Error)
		code   int
		want   string
	}{
		{"connection", fails(-32603, `server "a" crashed`, `{"code":"CONNECTION_ERROR","server":"a"}`), cli.CodeConnect, `tool "a_x": server "a" crashed`},
		{"timeout", fails(-32603, "late", `{"code":"REQUEST_TIMEOUT"}`), cli.CodeTimeout, `tool "a_x": late`},
		{"connection, as models see it", gives(`{"content":[{"type":"text","text":"server \"a\" crashed"}],"isError":true,"_meta":{"goblin/error":{"code":"CONNECTION_ERROR","server":"a"}}}`), cli.CodeConnect, `tool "a_x": server "a" crashed`},
		{"timeout, as models see it", gives(`{"content":[{"type":"text","text":"late"}],"isError":true,"_meta":{"goblin/error":{"code":"REQUEST_TIMEOUT"}}}`), cli.CodeTimeout, `tool "a_x": late`},
		{"ambiguous", fails(-32602, "x", `{"code":"AMBIGUOUS","candidates":["a_x","b_x"]}`), cli.CodeFailure, "a_x or b_x"},
		{"the server's own", fails(-32000, "boom\x1b", ``), cli.CodeFailure, `tool "a_x": boom\x1b`},
		{"not found by the server", fails(-32002, "gone", ``), cli.CodeNotFound, `no tool "a_x"; server error: gone; list all with "goblin list tools`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := try{gateway: &scripted{isDaemon: true, answer: tt.answer}}.run(t, "call", "a_x")
			require.Equal(t, tt.code, got.code)
			require.Contains(t, got.err, tt.want)
			require.Regexp(t, `^goblin: [^\n]+\n$`, got.err)
		})
	}
}

var (
	noTool     = fails(-32602, "Tool not found", `{"code":"TOOL_NOT_FOUND"}`)
	noResource = fails(-32002, "RESOURCE_NOT_FOUND: Server 'zz' not found: mcp://zz/x", `{"code":"RESOURCE_NOT_FOUND"}`)
)

func TestUnknownNamesGetTheNearestOnes(t *testing.T) {
	items := map[string][]daemon.Entry{
		"tools":     {{Name: "a_add", Server: "a"}, {Name: "b_subtract", Server: "b"}},
		"resources": {{URI: "mcp://a/file:///logs/app.log", Server: "a"}},
	}
	status := ready("a", "b")
	got := try{gateway: &scripted{isDaemon: true, status: status, items: items, answer: noTool}}.run(t, "call", "a_ad")
	require.Equal(t, outcome{code: cli.CodeNotFound, err: "goblin: no tool \"a_ad\"; did you mean \"a_add\"?\n"}, got)

	got = try{gateway: &scripted{isDaemon: true, status: status, items: items, answer: noResource}}.run(t, "read", "mcp://zz/x")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Regexp(t, `^goblin: no resource "mcp://zz/x" \(Server 'zz' not found\); list all with "goblin list resources --config .*goblin\.yaml.*"\n$`, got.err)

	status.Servers[1].State, status.Servers[1].Error = "failed", "no program"
	got = try{gateway: &scripted{isDaemon: true, status: status, items: items, answer: noTool}}.run(t, "call", "zzz")
	require.Contains(t, got.err, "; not ready: b (see \"goblin list servers --config ")
	require.Regexp(t, `; list all with `, got.err)
	items["tools"][1].OriginalName = "subtract"
	got = try{gateway: &scripted{isDaemon: true, status: status, items: items, answer: noTool}}.run(t, "call", "subtrakt")
	require.Regexp(t, `; not ready: b \(see "[^"]*"\); did you mean "b_subtract"\?\n$`, got.err, "by the server's own name, too")
	got = try{gateway: &scripted{isDaemon: true, status: status, items: items, answer: noTool}}.run(t, "call", "b_x")
	require.Equal(t, outcome{code: cli.CodeConnect, err: "goblin: tool \"b_x\": server \"b\" failed: no program\n"}, got)
}

func TestServersThatStartAreNotSaidToBeDown(t *testing.T) {
	g := &scripted{status: ready("a", "b"), items: map[string][]daemon.Entry{}, answer: noTool}
	g.status.Servers[1].State = "connecting"
	g.listed = func() { g.status.Servers[1].State = "ready" } // a list waits for them
	got := try{gateway: g}.run(t, "call", "zzz")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.NotContains(t, got.err, "not up")
}

func TestWhatTheGatewayOrTheServerKnowsOfANameIsTold(t *testing.T) {
	g := &scripted{isDaemon: true, status: ready("n", "s"), items: map[string][]daemon.Entry{
		"tools":     {{Name: "n_say", Server: "n", OriginalName: "simple"}, {Name: "s_simple", Server: "s"}},
		"resources": {{URI: "mcp://n/x:1", Server: "n"}},
	}}
	g.answer = fails(-32602, `unknown tool "n_simple"; did you mean "n_say"?`, `{"code":"TOOL_NOT_FOUND"}`)
	got := try{gateway: g}.run(t, "call", "n_simple")
	require.Equal(t, outcome{code: cli.CodeNotFound, err: "goblin: no tool \"n_simple\"; did you mean \"n_say\"?\n"}, got, "an override has renamed it")

	g.answer = fails(-32002, "it was here \x1byesterday", ``)
	got = try{gateway: g}.run(t, "read", "mcp://n/x:1")
	require.Equal(t, outcome{code: cli.CodeNotFound, err: "goblin: no resource \"mcp://n/x:1\"; server error: it was here \\x1byesterday\n"}, got)
	got = try{gateway: g}.run(t, "read", "mcp://n/x:2")
	require.Equal(t, outcome{code: cli.CodeNotFound, err: "goblin: no resource \"mcp://n/x:2\"; server error: it was here \\x1byesterday; did you mean \"mcp://n/x:1\"?\n"}, got)
}

func TestOnlyServersThatCanKnowTheNameAreStarted(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want [][]string
	}{
		{"a tool of two possible servers, then of any", []string{"call", "a_b_x"}, [][]string{{"a", "a_b"}, nil}},
		{"a bare tool", []string{"call", "x"}, [][]string{nil}},
		{"a tool by its server", []string{"call", "b/x"}, [][]string{{"b"}}},
		{"a resource by its server", []string{"read", "mcp://b/x"}, [][]string{{"b"}}},
		{"a raw resource", []string{"read", "file:///x"}, [][]string{nil}},
		{"a prompt by its server", []string{"prompt", "a/p"}, [][]string{{"a"}}},
		{"any by --server", []string{"call", "x", "--server", "b"}, [][]string{{"b"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := &scripted{status: ready("a", "b", "a_b"), answer: noTool}
			got := try{gateway: g}.run(t, tt.args...)
			require.Equal(t, cli.CodeNotFound, got.code)
			require.Equal(t, tt.want, g.opened)
		})
	}
}

func TestProgressIsShownOnATerminalOnly(t *testing.T) {
	g := &scripted{answer: func(s *scripted, _ string, _ []byte) (string, *jsonrpc.Error) {
		s.send([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1,"total":4,"message":"step\u001b"}}` + "\n"))
		s.send([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"7","progress":2,"message":"another's"}}` + "\n"))
		return `{"content":[]}`, nil
	}}
	got := try{gateway: g, tty: true}.run(t, "call", "a_x")
	require.Equal(t, "\r\x1b[K 25 %  step\\x1b\r\x1b[K", got.err)
	require.Contains(t, g.requests[0], `"_meta":{"progressToken":2}`)
	got = try{gateway: g}.run(t, "call", "a_x")
	require.Empty(t, got.err)
	require.Contains(t, g.requests[1], `"_meta":{"progressToken":2}`, "progress extends the time with any output")
}

func TestRequestsOfServersAreAnswered(t *testing.T) {
	var ping, sampling string
	g := &scripted{answer: func(s *scripted, _ string, _ []byte) (string, *jsonrpc.Error) {
		ping = s.ask(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		sampling = s.ask(`{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}`)
		return `{"content":[]}`, nil
	}}
	require.Zero(t, try{gateway: g}.run(t, "call", "a_x").code)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":"p","result":{}}`, ping)
	require.Contains(t, sampling, `-32601`)
}

func TestAnInterruptedRequestIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	g := &scripted{silent: make(chan struct{})}
	go func() {
		<-g.silent
		cancel()
	}()
	got := try{gateway: g, ctx: ctx}.run(t, "call", "a_x")
	require.Equal(t, outcome{err: "goblin: interrupted\n", code: cli.CodeFailure}, got)
	require.Contains(t, g.notes[len(g.notes)-1], `"notifications/cancelled","params":{"requestId":2,"reason":"context canceled"}`)
}

func TestAGatewayThatEndsEarlyIsCode4(t *testing.T) {
	g := &scripted{answer: func(s *scripted, _ string, _ []byte) (string, *jsonrpc.Error) {
		s.conn.Close()
		return "", nil
	}}
	got := try{gateway: g}.run(t, "call", "a_x")
	require.Equal(t, outcome{err: "goblin: the gateway exited before it answered\n", code: cli.CodeConnect}, got)
}

func TestGoblinsOwnResourceIsReadWhenTheServersHaveStarted(t *testing.T) {
	for _, args := range [][]string{
		{"read", "goblin://servers"},
		{"read", "mcp://goblin/goblin://servers"},
		{"read", "goblin://servers", "--server", "goblin"},
	} {
		g := &scripted{answer: gives(`{"contents":[{"uri":"u","text":"states"}]}`)}
		g.t = t
		listed := false
		started := make(chan struct{})
		close(started)
		var out, errs bytes.Buffer
		code := runApp(t, t.Context(), &App{App: &cli.App{Out: &out, Err: &errs}},
			&slow{scripted: g, until: started, began: func() { listed = len(g.requests) == 0 }}, args...)
		require.Zero(t, code, errs.String())
		require.True(t, listed, "the list comes first and waits for the servers")
		require.Equal(t, "states", out.String())
	}
}

func TestAPromptNamesTheArgumentsItLacks(t *testing.T) {
	items := map[string][]daemon.Entry{"prompts": {{
		Name: "a/p", Server: "a", OriginalName: "p",
		Definition: []byte(`{"name":"a/p","arguments":[{"name":"title","required":true},{"name":"mood"},{"name":"author","required":true}]}`),
	}}}
	refuse := fails(-32602, "bad", "")
	for _, name := range []string{"a/p", "p", "a_p"} {
		got := try{gateway: &scripted{isDaemon: true, items: items, answer: refuse}}.run(t, "prompt", name, "--arg", "mood=x")
		require.Equal(t, outcome{code: cli.CodeUsage, err: "goblin: prompt \"" + name + "\" needs --arg title=… --arg author=…\n"}, got)
	}
	got := try{gateway: &scripted{isDaemon: true, items: items, answer: refuse}}.run(t, "prompt", "a/p", "--arg", "title=x", "--arg", "author=y")
	require.Equal(t, outcome{code: cli.CodeFailure, err: "goblin: prompt \"a/p\": bad\n"}, got)
}

func TestAThingOfAnotherServerIsFound(t *testing.T) {
	items := map[string][]daemon.Entry{"resources": {
		{URI: "mcp://b/file:///x", OriginalURI: "file:///x", Server: "b"},
		{URI: "mcp://a/file:///y", OriginalURI: "file:///y", Server: "a"},
	}}
	ask := func(isDaemon bool, args ...string) outcome {
		return try{gateway: &scripted{isDaemon: isDaemon, status: ready("a", "b"), items: items, answer: noResource}}.run(t, args...)
	}
	got := ask(true, "read", "file:///x", "--server", "a")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Contains(t, got.err, `in server "a"; server "b" has it`)
	got = ask(false, "read", "mcp://b/file:///x", "--server", "a")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Contains(t, got.err, `its name belongs to server "b"`)
	got = ask(true, "read", "file:///zzz", "--server", "c")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Contains(t, got.err, `no server "c"`)
}

func TestServersWithDotsOwnTheNamesThatTheirToolsHave(t *testing.T) {
	t.Parallel()
	require.True(t, toolKind.owns("my.files", "my_files_read"))
	require.True(t, toolKind.owns("my.files", "my.files/read"))
	require.False(t, toolKind.owns("my.files", "my.files_read"))
}
