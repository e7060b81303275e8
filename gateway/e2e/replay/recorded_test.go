//go:build e2e

package replay

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// requests are sent in order to the recorded and the replayed server.
var requests = []struct {
	method string
	params Obj
}{
	{"tools/call", Obj{"name": "s_echo", "arguments": Obj{"n": 1}}},
	{"tools/call", Obj{"name": "s_echo", "arguments": Obj{"token": "a-secret-of-the-config"}}},
	{"tools/call", Obj{"name": "s_steps", "_meta": Obj{"progressToken": "p"}}},
	{"tools/call", Obj{"name": "s_ask"}},
	{"tools/call", Obj{"name": "s_big"}},
	{"tools/call", Obj{"name": "s_fails"}},
	{"tools/call", Obj{"name": "s_unknown"}},
	{"tools/call", Obj{"name": "s_echo", "arguments": Obj{"n": 1}}},
	{"resources/subscribe", Obj{"uri": "mcp://s/file:///a"}},
	{"resources/read", Obj{"uri": "mcp://s/file:///a"}},
	{"resources/read", Obj{"uri": "mcp://s/file:///none"}},
	{"prompts/get", Obj{"name": "s/hello"}},
}

func TestARecordingOfTheBinaryIsReplayed(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) { t.Parallel(); testRecordAndReplay(t, era) })
	}
}

func testRecordAndReplay(t *testing.T, era string) {
	w := e2e.NewWorld(t)
	script := Obj{
		"tools":     []Obj{e2e.Tool("echo"), e2e.Tool("steps"), e2e.Tool("ask"), e2e.Tool("big"), e2e.Tool("fails")},
		"resources": []Obj{e2e.Resource("file:///a")}, "prompts": []Obj{e2e.Prompt("hello")},
		"on": Obj{
			"resources/subscribe": e2e.Actions(e2e.Do("notify", Obj{"method": "notifications/message", "params": Obj{"level": "error", "data": "subscribed"}})),
			"tools/call steps":    e2e.Actions(e2e.Do("progress", Obj{"n": 3})),
			"tools/call ask":      e2e.Actions(e2e.Do("request", Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers")),
			"tools/call big":      e2e.Actions(e2e.Do("big", Obj{"bytes": 300_000})),
			"tools/call fails":    e2e.Actions(e2e.Do("error", Obj{"error": Obj{"code": -7, "message": "no", "data": Obj{"uri": "file:///a"}}})),
		},
	}
	conf := Obj{"env": Obj{"API_TOKEN": "a-secret-of-the-config"}}
	if era == "modern" {
		script["era"] = era
	}
	w.Backend("s", script, conf)
	folder := filepath.Join(w.Dir, "recordings")
	survey := func(args ...string) (answers []string, c *e2e.Client) {
		web := w.Serve(args...)
		awaitTools(t, folder)
		c = web.Client(true, Obj{"elicitation": Obj{"form": Obj{}}})
		c.Reply = func(e2e.Message) (any, any) { return Obj{"action": "accept", "content": Obj{"who": "me"}}, nil }
		for _, kind := range []string{"tools", "resources", "prompts"} {
			answers = append(answers, string(e2e.Marshal(c.List(kind))))
		}
		for _, r := range requests {
			m := c.Request(r.method, r.params)
			answers = append(answers, string(m.Result)+string(m.Error))
		}
		web.Signal(syscall.SIGTERM)
		require.Zero(t, web.Ends(e2e.Patience))
		return answers, c
	}
	want, wantClient := survey("--record", folder)
	got, gotClient := survey("--replay", folder, "--fast")
	for i := range want {
		require.Equal(t, want[i], got[i], i)
	}
	require.Contains(t, strings.Join(got, ""), "a-secret-of-the-config")
	params := func(c *e2e.Client) (all []string) {
		for _, m := range c.NotesOf("notifications/progress") {
			all = append(all, string(m.Params))
		}
		for _, m := range c.NotesOf("notifications/message") {
			all = append(all, string(m.Params))
		}
		for _, m := range c.Asks {
			all = append(all, m.Method+string(m.Params))
		}
		return all
	}
	if era == "modern" { // they are subscribed by a stream
		require.Len(t, params(wantClient), 4)
	} else {
		require.Len(t, params(wantClient), 5)
	}
	require.Equal(t, params(wantClient), params(gotClient))
}

func TestAnExportOfTheDaemonIsReplayed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("s", Obj{
		"tools": []Obj{e2e.Tool("echo"), e2e.Tool("secret", Obj{"description": "uses a-secret-of-the-config"})}, "resources": []Obj{e2e.Resource("file:///a")},
	}, Obj{
		"env":       Obj{"API_TOKEN": "a-secret-of-the-config"},
		"overrides": Obj{"tools": Obj{"echo": Obj{"name": "say"}}},
	})
	survey := func(c *e2e.Client) (all []string) {
		for _, kind := range []string{"tools", "resources"} {
			all = append(all, strings.ReplaceAll(string(e2e.Marshal(c.List(kind))), "a-secret-of-the-config", "[hidden]"))
		}
		for _, r := range []struct {
			method string
			params Obj
		}{{"tools/call", Obj{"name": "s_say", "arguments": Obj{"n": 1}}}, {"resources/read", Obj{"uri": "mcp://s/file:///a"}}} {
			m := c.Request(r.method, r.params)
			all = append(all, string(m.Result)+string(m.Error))
		}
		return all
	}
	web := w.Serve()
	c := web.Client(true)
	c.WaitListed("tools", "s_say", true)
	want := survey(c)
	file := filepath.Join(w.Dir, "live.jsonl")
	w.Succeeds("export", "-o", file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), "a-secret-of-the-config")
	replayed := w.Pipe("stdio", "--replay", file, "--fast")
	replayed.Init()
	require.Equal(t, want, survey(replayed))
}

// awaitTools waits until the server and its lists are in a recording: a shorter session may
// have neither.
func awaitTools(t *testing.T, folder string) {
	t.Helper()
	e2e.Eventually(t, "the tools are recorded", func() bool {
		files, err := os.ReadDir(folder)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(folder, file.Name()))
			if err == nil && (strings.HasSuffix(file.Name(), ".gz") || strings.Contains(string(text), `"inputSchema"`)) {
				return true
			}
		}
		return false
	})
}

// callAsking calls the tool that asks the client, and answers by a retry.
func callAsking(t *testing.T, c *e2e.Client) string {
	t.Helper()
	state, keys := e2e.InputRequests(t, c.Request("tools/call", Obj{"name": "s_ask"}))
	answers := Obj{}
	for _, key := range keys {
		answers[key] = Obj{"action": "decline"}
	}
	retry := Obj{"name": "s_ask", "requestState": state, "inputResponses": answers}
	return string(e2e.At(c.Ok("tools/call", retry), "content"))
}

func TestARecordingOfAStatelessClientIsForAll(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			script := e2e.AskingServer("elicitation/create", e2e.Form)
			if era == "modern" {
				script["era"] = era
			}
			w.Backend("s", script)
			folder := filepath.Join(w.Dir, "recordings")
			web := w.Serve("--record", folder)
			stateless := web.Stateless()
			stateless.Caps = Obj{"elicitation": Obj{"form": Obj{}}}
			awaitTools(t, folder)
			want := callAsking(t, stateless)
			web.Signal(syscall.SIGTERM)
			require.Zero(t, web.Ends(e2e.Patience))

			c := w.Pipe("stdio", "--replay", folder, "--fast").Stateless()
			c.Caps = stateless.Caps
			require.Equal(t, want, callAsking(t, c))

			old := w.Pipe("stdio", "--replay", folder, "--fast")
			old.Caps = stateless.Caps
			old.Reply = func(e2e.Message) (any, any) { return Obj{"action": "decline"}, nil }
			old.Init()
			require.Equal(t, want, string(e2e.At(old.Ok("tools/call", Obj{"name": "s_ask"}), "content")))
		})
	}
}
