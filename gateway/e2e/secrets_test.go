package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sentinel is in every secret of these tests and in nothing else.
const sentinel = "s3ntinel"

// keepsSecret fails if a text holds a secret.
func (w *world) keepsSecret(where, text string) {
	w.t.Helper()
	if at := strings.Index(text, sentinel); at >= 0 {
		w.t.Errorf("%s: %s", where, text[max(0, at-300):min(len(text), at+100)])
	}
}

// secrets is a world whose servers have all kinds of secrets, of which they
// talk where nobody should.
func secrets(t *testing.T) *world {
	w := newWorld(t)
	w.env = []string{"API_KEY=" + sentinel + "-variable"}
	w.log = obj{"level": "debug"}
	w.gateway["auth_token"] = sentinel + "-auth"
	w.gateway["startup_wait"] = "500ms"
	w.gateway["meta_tools"] = true
	script := filesystem()
	script["on"] = obj{
		"start": actions(do("stderr", obj{"text": "my key is " + sentinel + "-variable, or " + sentinel + "-env"}),
			do("crash", obj{"code": 5, "text": "cannot log in with " + sentinel + "-env", "starts": 2})), // an end at the first question is no failure yet
		"tools/call move": actions(do("error", obj{"error": obj{"code": -32000, "message": "no entry with " + sentinel + "-variable"}})),
		"tools/call stat": actions(do("echo")),
	}
	w.backend("files", script, obj{"env": obj{"ANY": "${API_KEY}", "MY_SECRET": sentinel + "-env"}})
	hidden := func(b *backend) {
		url := b.conf["url"].(string)
		b.conf["url"] = strings.Replace(url, "http://", "http://user:"+sentinel+"-password@", 1) + "?key=" + sentinel + "-query"
		b.conf["headers"] = obj{"X-Api-Key": sentinel + "-header"}
	}
	hidden(w.remote("remote", "/mcp", s3()))
	hidden(w.remote("missing", "/none", s3()))
	hidden(w.remote("angry", "/mcp", obj{"on": obj{"http": actions(do("status", obj{"code": 500, "text": "no " + sentinel + "-header here"}))}}))
	gone, _ := w.fake("gone", obj{})
	gone.conf["url"] = "http://127.0.0.1:1/mcp"
	hidden(gone)
	return w
}

func TestH06_P09_P14_SecretsAreNowhereToBeSeen(t *testing.T) {
	t.Parallel()
	w := secrets(t)
	s := w.serve()
	c := s.client(true)
	c.waitListed("resources", in("remote", "s3://bucket/config/app.json"), true)
	c.waitListed("tools", "files_move", true)
	require.Equal(t, "remote s3://bucket/config/app.json", c.readText(in("remote", "s3://bucket/config/app.json")))
	c.fault("tools/call", obj{"name": "files_move", "arguments": obj{"text": sentinel + "-variable"}})
	for _, server := range []string{"missing", "angry", "gone"} {
		eventually(t, "the failure of "+server, func() bool { return strings.Contains(s.stderr.String(), "server="+server) })
		w.keepsSecret("an error", c.request("tools/call", obj{"name": server + "_x"}).raw)
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		w.keepsSecret(path, s.do("GET", path, nil, "").body)
	}
	w.keepsSecret("goblin://servers", c.request("resources/read", obj{"uri": "goblin://servers"}).raw)
	for _, own := range []string{"catalog_servers", "catalog_tools", "catalog_resources"} {
		w.keepsSecret(own, c.request("tools/call", obj{"name": own, "arguments": obj{}}).raw)
	}
	for _, args := range []string{
		"list servers", "list tools", "list prompts", "list resources", "list templates", "validate", "status", "approve", "restart files", "restart angry", "version",
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			out := w.run(append(strings.Fields(args), more...)...)
			w.keepsSecret(args, out.stdout+out.stderr)
		}
	}
	w.keepsSecret("command lines", strings.Join(w.processes(""), "\n"))
	require.Contains(t, s.stderr.String(), "cannot log in with [hidden]")
	w.keepsSecret("the log", s.stderr.String())
	w.keepsSecretInFiles()
}

func TestH13_SessionIdsOfHTTPClientsAreToldToNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.log = obj{"level": "debug"}
	w.gateway["meta_tools"] = true
	w.gateway["limits"] = obj{"sessions": 2}
	w.backend("b", filesystem())
	s := w.serve()
	a, b := s.client(true), s.client(false)
	a.waitListed("tools", "b_stat", true)
	a.callText("b_stat", obj{})
	a.ok("resources/subscribe", obj{"uri": in("b", appLog)})
	a.notify("notifications/unknown", nil)
	require.Equal(t, 400, s.do("POST", "/mcp", map[string]string{"Mcp-Session-Id": b.web.id, "MCP-Protocol-Version": revision}, `{"id":`).status)
	told := w.succeeds("status", "--json") + w.succeeds("status") + w.succeeds("approve", "--json")
	s.client(false) // b makes room
	told += a.request("resources/read", obj{"uri": "goblin://servers"}).raw + a.callText("catalog_servers", obj{}) + s.do("GET", "/metrics", nil, "").body
	for _, c := range []*client{a, b} {
		require.Less(t, s.do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": c.web.id}, "").status, 500)
	}
	eventually(t, "the log", func() bool { return strings.Count(s.stderr.String(), "Session closed") == 2 })
	require.Contains(t, s.stderr.String(), "to make room")
	require.Contains(t, told, `"transport": "http"`)
	for _, c := range []*client{a, b} {
		require.Len(t, c.web.id, 32)
		require.False(t, strings.Contains(told+s.stderr.String(), c.web.id), "a session id is told")
	}
}

// keepsSecretInFiles looks into all that Goblin has written.
func (w *world) keepsSecretInFiles() {
	w.t.Helper()
	for _, dir := range []string{"home", "run", "cfg"} {
		require.NoError(w.t, filepath.WalkDir(filepath.Join(w.dir, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			w.keepsSecret(path, string(text))
			return err
		}))
	}
}

func TestP14_TheScreenHidesSecretsInLogsAndTraffic(t *testing.T) {
	t.Parallel()
	w := secrets(t)
	c := w.bridged()
	c.waitListed("tools", "files_move", true)
	c.fault("tools/call", obj{"name": "files_move", "arguments": obj{"text": sentinel + "-variable"}})
	require.Contains(t, c.callText("files_stat", obj{"text": sentinel + "-env"}), sentinel, "what a client is sent stays as it is")
	w.keepsSecret("the log", w.hostLog())
	w.keepsSecretInFiles()

	p := w.pane(160, 40)
	raw := filepath.Join(w.dir, "raw")
	p.tmux("pipe-pane", "cat >"+raw)
	p.goblin("")
	p.shows("logs/app.log")
	p.types("1")
	p.shows("angry")
	for range 4 { // each server in the detail panel
		p.keys("Down")
	}
	p.types("5")
	p.keys("]")
	p.shows("tools/call")
	p.types("/files_stat")
	p.keys("Enter", "Enter")
	p.shows("[hidden]", "arguments")
	p.keys("Escape", "Escape")
	p.hides("fuzzy")
	p.keys("]")
	p.shows("my key is [hidden]")
	p.types("q")
	p.shows("ended with 0")
	text, err := os.ReadFile(raw)
	require.NoError(t, err)
	w.keepsSecret("the screen", string(text))
}

func TestH06_MistakesInTheConfigDoNotQuoteSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, text := range map[string]string{
		"a token of the wrong type":        "gateway: {auth_token: [" + sentinel + "]}",
		"headers of the wrong type":        "servers: {a: {url: \"http://h/\", headers: " + sentinel + "}}",
		"a header of the wrong type":       "servers: {a: {url: \"http://h/\", headers: {Authorization: [" + sentinel + "]}}}",
		"env of the wrong type":            "servers: {a: {command: x, env: " + sentinel + "}}",
		"a variable of a wrong type":       "servers: {a: {command: x, env: {KEY: [" + sentinel + "]}}}",
		"a URL without a host":             "servers: {a: {url: \"http://u:" + sentinel + "@/mcp\"}}",
		"a URL of another scheme":          "servers: {a: {url: \"ftp://u:" + sentinel + "@h/mcp\"}}",
		"a URL that is none":               "servers: {a: {url: \"http://u:" + sentinel + "@h:port/%zz\"}}",
		"a token that looks like an alias": "gateway: {auth_token: *" + sentinel + "}",
		"a token that looks like a tag":    "gateway: {auth_token: !" + sentinel + " x}",
		"a variable that looks like a tag": "servers: {a: {command: x, env: {KEY: !!" + sentinel + "}}}",
		"an equals sign for a colon":       "servers: {a: {command: x, env: {KEY=" + sentinel + "}}}",
		"a comma for a colon":              "servers: {a: {url: \"http://h/\", headers: {Authorization, Bearer " + sentinel + "}}}",
		"a header as one text":             "servers: {a: {url: \"http://h/\", headers: {\"Authorization: Bearer " + sentinel + "\"}}}",
		"a blank for a colon":              "gateway: {auth_token " + sentinel + "}",
		"a token for a key":                "servers: {a: {command: x, env: {" + "ghp_16C7e42F292c6912E7710c" + sentinel + "}}}",
		"a header that cannot be one":      "servers: {a: {url: \"http://h/\", headers: {X: \"" + sentinel + "\\nY\"}}}",
	} {
		require.NoError(t, os.WriteFile(w.config, []byte(text+"\n"), 0o600))
		w.written = true
		for _, args := range [][]string{{"validate"}, {"validate", "--json"}, {"list", "servers"}, {"stdio", "--standalone"}} {
			out := w.run(args...)
			require.NotZero(t, out.code, "%s: goblin %v", name, args)
			w.keepsSecret(name, out.stdout+out.stderr)
		}
	}
}

func TestH06_SecretsInArgumentsAndPathsAreHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = []string{"API_KEY=" + sentinel + "-variable"}
	w.log = obj{"level": "debug"}
	w.gateway["startup_wait"] = "500ms"
	b, _ := w.fake("shell", obj{})
	b.conf["command"] = "/bin/sh"
	b.conf["args"] = []string{
		"-c", `echo "$0 got $@" >&2; exit 3`, "program", "${API_KEY}", "--token", sentinel + "-flag", "--pass=" + sentinel + "-value", "Authorization: Bearer " + sentinel + "-header",
	}
	r := w.remote("remote", "/mcp", obj{"on": obj{"http": actions(do("status", obj{"code": 500, "text": "no /k/" + sentinel + "-variable here"}))}})
	r.conf["url"] = r.conf["url"].(string) + "/k/${API_KEY}"
	c := w.standalone()
	for _, server := range []string{"shell", "remote"} {
		w.keepsSecret("an error", c.request("tools/call", obj{"name": server + "/x"}).raw)
	}
	eventually(t, "the log", func() bool {
		return strings.Contains(c.prog.stderr.String(), "program got [hidden] --token [hidden] --pass=[hidden]")
	})
	w.keepsSecret("the log", c.prog.stderr.String())
	for _, args := range [][]string{{"list", "servers"}, {"list", "servers", "--json"}, {"validate", "--json"}, {"read", "goblin://servers"}} {
		out := w.run(args...)
		w.keepsSecret(strings.Join(args, " "), out.stdout+out.stderr)
	}
	w.keepsSecretInFiles()
}

func TestP10_ServersGetNoSecretsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["auth_token"] = "${GOBLIN_TOKEN}"
	w.env = []string{"GOBLIN_TOKEN=" + sentinel + "-token", "AWS_SECRET_ACCESS_KEY=" + sentinel + "-ambient", "MINE=mine", "NAMED=named", "TMPDIR=" + w.dir}
	environ := obj{"tools": []obj{tool("env")}, "on": obj{"tools/call env": actions(do("env"))}}
	w.backend("least", environ, obj{"env": obj{"KEY": "${MINE}"}})
	w.backend("named", environ, obj{"inherit_env": []string{"NAMED"}})
	for _, open := range []func() *client{w.standalone, w.bridged} {
		c := open()
		least := c.callText("least_env", obj{})
		require.Contains(t, least, `"KEY=mine"`)
		for _, other := range []string{"NAMED=", "MINE=", "GOBLIN", "XDG_", "AWS"} {
			require.NotContains(t, least, `"`+other)
		}
		named := c.callText("named_env", obj{})
		require.Contains(t, named, `"NAMED=named"`)
		w.keepsSecret("the environment", least+named)
		c.close()
	}
}
