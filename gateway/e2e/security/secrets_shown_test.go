//go:build e2e

package security

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestH06_P09_P14_SecretsAreNowhereToBeSeen(t *testing.T) {
	t.Parallel()
	w := secrets(t)
	s := w.Serve()
	c := s.Client(true)
	c.WaitListed("resources", e2e.In("remote", "s3://bucket/config/app.json"), true)
	c.WaitListed("tools", "files_move", true)
	require.Equal(t, "remote s3://bucket/config/app.json", c.ReadText(e2e.In("remote", "s3://bucket/config/app.json")))
	c.Fault("tools/call", e2e.Obj{"name": "files_move", "arguments": e2e.Obj{"text": sentinel + "-variable"}})
	for _, server := range []string{"missing", "angry", "gone"} {
		e2e.Eventually(t, "the failure of "+server, func() bool { return strings.Contains(s.Stderr.String(), "server="+server) })
		keepsSecret(w, "an error", c.Request("tools/call", e2e.Obj{"name": server + "_x"}).Raw)
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		keepsSecret(w, path, s.Do("GET", path, nil, "").Body)
	}
	keepsSecret(w, "goblin://servers", c.Request("resources/read", e2e.Obj{"uri": "goblin://servers"}).Raw)
	for _, own := range []string{"catalog_servers", "catalog_tools", "catalog_resources"} {
		keepsSecret(w, own, c.Request("tools/call", e2e.Obj{"name": own, "arguments": e2e.Obj{}}).Raw)
	}
	for _, args := range []string{
		"list servers", "list tools", "list prompts", "list resources", "list templates", "validate", "status", "approve", "restart files", "restart angry", "version",
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			out := w.Run(append(strings.Fields(args), more...)...)
			keepsSecret(w, args, out.Stdout+out.Stderr)
		}
	}
	keepsSecret(w, "command lines", strings.Join(w.Processes(""), "\n"))
	s.Logs("cannot log in with [hidden]")
	keepsSecret(w, "the log", s.Stderr.String())
	keepsSecretInFiles(w)
}

// secrets is a world whose servers have all kinds of secrets, and reveal them in many
// places.
func secrets(t *testing.T) *e2e.World {
	w := e2e.NewWorld(t)
	w.Env = []string{"API_KEY=" + sentinel + "-variable"}
	w.Log = e2e.Obj{"level": "debug"}
	w.Gateway["auth_token"] = sentinel + "-auth"
	w.Gateway["startup_wait"] = "500ms"
	w.Gateway["meta_tools"] = true
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{
		"start": e2e.Actions(e2e.Do("stderr", e2e.Obj{"text": "my key is " + sentinel + "-variable, or " + sentinel + "-env"}),
			e2e.Do("crash", e2e.Obj{"code": 5, "text": "cannot log in with " + sentinel + "-env", "starts": 2})), // an exit at the first request is no failure yet
		"tools/call move": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32000, "message": "no entry with " + sentinel + "-variable"}})),
		"tools/call stat": e2e.Actions(e2e.Do("echo")),
	}
	w.Backend("files", script, e2e.Obj{"env": e2e.Obj{"ANY": "${API_KEY}", "MY_SECRET": sentinel + "-env"}})
	hidden := func(b *e2e.Backend) {
		url := b.Conf["url"].(string)
		b.Conf["url"] = strings.Replace(url, "http://", "http://user:"+sentinel+"-password@", 1) + "?key=" + sentinel + "-query"
		b.Conf["headers"] = e2e.Obj{"X-Api-Key": sentinel + "-header"}
	}
	hidden(w.Remote("remote", "/mcp", e2e.S3()))
	hidden(w.Remote("missing", "/none", e2e.S3()))
	hidden(w.Remote("angry", "/mcp", e2e.Obj{"on": e2e.Obj{"http": e2e.Actions(e2e.Do("status", e2e.Obj{"code": 500, "text": "no " + sentinel + "-header here"}))}}))
	gone, _ := w.Fake("gone", e2e.Obj{})
	gone.Conf["url"] = "http://127.0.0.1:1/mcp"
	hidden(gone)
	return w
}

func TestH13_SessionIdsOfHTTPClientsAreToldToNobody(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Log = e2e.Obj{"level": "debug"}
	w.Gateway["meta_tools"] = true
	w.Gateway["limits"] = e2e.Obj{"sessions": 2}
	w.Backend("b", e2e.Filesystem())
	s := w.Serve()
	a, b := s.Client(true), s.Client(false)
	a.WaitListed("tools", "b_stat", true)
	a.CallText("b_stat", e2e.Obj{})
	a.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("b", e2e.AppLog)})
	a.Notify("notifications/unknown", nil)
	require.Equal(t, 400, s.Do("POST", "/mcp", map[string]string{"Mcp-Session-Id": b.Web.Id, "MCP-Protocol-Version": e2e.Revision}, `{"id":`).Status)
	told := w.Succeeds("status", "--json") + w.Succeeds("status") + w.Succeeds("approve", "--json")
	s.Client(false) // b is evicted
	told += a.Request("resources/read", e2e.Obj{"uri": "goblin://servers"}).Raw + a.CallText("catalog_servers", e2e.Obj{}) + s.Do("GET", "/metrics", nil, "").Body
	for _, c := range []*e2e.Client{a, b} {
		require.Less(t, s.Do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": c.Web.Id}, "").Status, 500)
	}
	e2e.Eventually(t, "the log", func() bool { return strings.Count(s.Stderr.String(), "session closed") == 2 })
	s.Logs("unused session evicted")
	require.Contains(t, told, `"transport": "http"`)
	for _, c := range []*e2e.Client{a, b} {
		require.Len(t, c.Web.Id, 32)
		require.False(t, strings.Contains(told+s.Stderr.String(), c.Web.Id), "a session id is shown")
	}
}

func TestP14_TheScreenHidesSecretsInLogsAndTraffic(t *testing.T) {
	t.Parallel()
	w := secrets(t)
	c := w.Bridged()
	c.WaitListed("tools", "files_move", true)
	c.Fault("tools/call", e2e.Obj{"name": "files_move", "arguments": e2e.Obj{"text": sentinel + "-variable"}})
	require.Contains(t, c.CallText("files_stat", e2e.Obj{"text": sentinel + "-env"}), sentinel, "messages to clients are unchanged")
	keepsSecret(w, "the log", w.DaemonLog())
	keepsSecretInFiles(w)

	p := w.Pane(160, 40)
	raw := filepath.Join(w.Dir, "raw")
	p.Tmux("pipe-pane", "cat >"+raw)
	p.Goblin("")
	p.Shows("Usage")
	p.Types("4")
	p.Shows("logs/app.log")
	p.Types("1")
	p.Shows("angry")
	for range 4 { // each server in the detail pane
		p.Keys("Down")
	}
	p.Types("5")
	p.Keys("]")
	p.Shows("tools/call")
	p.Types("/files_stat")
	p.Keys("Enter", "Enter")
	p.Shows("[hidden]", "arguments")
	p.Keys("Escape", "Escape")
	p.Hides("fuzzy")
	p.Keys("]")
	p.Shows("my key is [hidden]")
	p.Types("q")
	p.Shows("ended with 0")
	text, err := os.ReadFile(raw)
	require.NoError(t, err)
	keepsSecret(w, "the UI", string(text))
}

func TestH06_MistakesInTheConfigDoNotQuoteSecrets(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	// More of them are rows of TestNoMistakeHoldsASecret in gateway/config.
	for name, text := range map[string]string{
		"a token of the wrong type":        "gateway: {auth_token: [" + sentinel + "]}",
		"a variable that looks like a tag": "servers: {a: {command: x, env: {KEY: !!" + sentinel + "}}}",
		"a header as one text":             "servers: {a: {url: \"http://h/\", headers: {\"Authorization: Bearer " + sentinel + "\"}}}",
	} {
		require.NoError(t, os.WriteFile(w.Config, []byte(text+"\n"), 0o600))
		w.Written = true
		for _, args := range [][]string{{"validate"}, {"validate", "--json"}, {"list", "servers"}, {"stdio", "--standalone"}} {
			out := w.Run(args...)
			require.NotZero(t, out.Code, "%s: goblin %v", name, args)
			keepsSecret(w, name, out.Stdout+out.Stderr)
		}
	}
}

func TestTheReasonIsThatOfTheServerThatANameIsOf(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "1s"
	w.Backend("my", e2e.Obj{}, e2e.Obj{"disabled": true})
	w.Backend("my.db", e2e.Obj{}, e2e.Obj{"command": "/none/such"})
	w.Backend("other", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("x"), e2e.Tool("y")}, "prompts": []e2e.Obj{e2e.Prompt("x")}})
	c := w.Standalone()
	c.WaitListed("tools", "other_x", true)
	for name, server := range map[string]string{"my_x": `"my" is disabled`, "my/x": `"my" is disabled`, "my_db_x": `"my.db" has failed`, "my.db/x": `"my.db" has failed`, "my.db_x": `"my.db" has failed`} {
		e2e.Eventually(t, name, func() bool { return strings.Contains(c.Fault("tools/call", e2e.Obj{"name": name}).Message, server) })
		require.Equal(t, "unknown tool \""+name+"\": server "+server+", so its tools are unknown", c.Fault("tools/call", e2e.Obj{"name": name}).Message)
	}
	require.Contains(t, c.Fault("prompts/get", e2e.Obj{"name": "my_db_x"}).Message, `"my.db" has failed`)
	require.Contains(t, c.Fault("tools/call", e2e.Obj{"name": "other_xx"}).Message, `did you mean "other_x"`)
}
