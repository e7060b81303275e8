//go:build e2e

package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// job is a task of a user and the maximum number of keys for it. Characters of text in
// fields are not counted.
type job struct {
	name    string
	keys    int
	prepare func(w *e2e.World) // optional
	do      func(o *office)
}

// office is a terminal with the UI, a client and a server, for one job.
type office struct {
	*e2e.Pane
	w     *e2e.World
	t     *testing.T
	shop  *e2e.Backend
	agent *e2e.Client
	keys  []string
}

// press presses keys one by one.
func (o *office) press(names ...string) {
	o.t.Helper()
	for _, name := range names {
		o.keys = append(o.keys, name)
		if len(name) == 1 {
			o.Types(name)
		} else {
			o.Keys(name)
		}
	}
}

// text types into a field. Its characters are not counted.
func (o *office) text(s string) {
	o.t.Helper()
	o.Types(s)
}

// openOffice starts a client and a UI of 120x40, after change has edited the world.
func openOffice(t *testing.T, change func(w *e2e.World)) *office {
	t.Helper()
	w := e2e.NewWorld(t)
	w.AllowDaemon = true
	order := e2e.Obj{"type": "object", "required": []string{"customer", "items"}, "properties": e2e.Obj{
		"customer": e2e.Obj{"type": "object", "required": []string{"name"}, "properties": e2e.Obj{"name": e2e.Obj{"type": "string"}}},
		"items": e2e.Obj{"type": "array", "items": e2e.Obj{"type": "object", "required": []string{"sku"}, "properties": e2e.Obj{
			"sku": e2e.Obj{"type": "string"}, "qty": e2e.Obj{"type": "integer"},
		}}},
	}}
	big := strings.Repeat("all is well here\n", 40_000) + "the needle\n" + strings.Repeat("and here\n", 1000)
	o := &office{w: w, t: t}
	o.shop = w.Backend("shop", e2e.Obj{
		"tools": []e2e.Obj{
			e2e.Tool("stat"), e2e.Tool("ask"), e2e.Tool("slow"), e2e.Tool("hang"),
			{"name": "place_order", "description": "Orders things for a customer", "inputSchema": order},
			{"name": "delete_all", "description": "Deletes a table", "annotations": e2e.Obj{"destructiveHint": true}, "inputSchema": e2e.Obj{"type": "object", "properties": e2e.Obj{"table": e2e.Obj{"type": "string"}}}},
		},
		"resources": []e2e.Obj{
			{"uri": e2e.AppLog, "name": "app.log", "mimeType": "text/plain"}, {"uri": "file:///big.txt", "name": "big.txt", "mimeType": "text/plain"},
		},
		"reads": e2e.Obj{
			e2e.AppLog:        []e2e.Obj{{"uri": e2e.AppLog, "mimeType": "text/plain", "text": "first version"}},
			"file:///big.txt": []e2e.Obj{{"uri": "file:///big.txt", "mimeType": "text/plain", "text": big}},
		},
		"on": e2e.Obj{
			"tools/call hang": e2e.Actions(e2e.Do("hang")),
			"tools/call slow": e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 2_000}), e2e.Do("echo")),
			"tools/call ask":  e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "Which branch?", "requestedSchema": e2e.Obj{"type": "object", "required": []string{"branch"}, "properties": e2e.Obj{"branch": e2e.Obj{"type": "string"}}}}}), e2e.Do("answers")),
		},
	})
	w.Profiles = e2e.Obj{"coding": e2e.Obj{}}
	if change != nil {
		change(w)
	}
	o.agent = w.Pipe("stdio")
	o.agent.Init()
	o.agent.WaitListed("tools", "shop_stat", true)
	o.Pane = w.Pane(120, 40)
	o.Goblin("")
	o.Shows("clients 1", "1 up")
	return o
}

// jobs are the things that a user does in the UI all day. Each starts on the first pane.
var jobs = []job{
	{"find a tool by words", 3, nil, func(o *office) {
		o.press("2", "/")
		o.text("orders customer")
		o.Shows("Tools 1/")
		o.press("Enter")
		o.Shows("> ", "shop_place_order", "Orders things for a customer")
	}},
	{"call a tool with a nested form", 8, nil, func(o *office) {
		o.press("2", "/")
		o.text("place")
		o.Shows("Tools 1/")
		o.press("Enter", "c")
		o.Shows("Call shop_place_order", "customer")
		o.fillOrder()
		o.press("C-s")
		o.Shows(`shop:place_order:{"customer":{"name":"Ann"},`, `"sku": "pear"`)
	}},
	{"repeat a call with a change", 6, nil, func(o *office) {
		o.callByAgent("shop_delete_all", e2e.Obj{"table": "users"})
		o.press("5", "]")
		o.Shows("[Traffic", "shop_delete_all")
		o.press("c")
		o.Shows("Call shop_delete_all", "users")
		o.press("C-u")
		o.text("old_users")
		o.press("C-s")
		o.Shows("This tool may")
		o.press("y")
		o.Shows(`shop:delete_all:{"table":"old_users"}`)
	}},
	{"follow a resource", 5, nil, func(o *office) {
		o.press("4", "/")
		o.text("app.log")
		o.Shows("Resources 1/")
		o.press("Enter", "Enter")
		o.Shows("first version")
		o.press("s")
		o.shop.WaitReceived("resources/subscribe", 1)
		o.shop.Do(e2e.Obj{"do": "on", "key": "resources/read " + e2e.AppLog, "actions": e2e.Actions(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"contents": []e2e.Obj{{"uri": e2e.AppLog, "text": "second version"}}}}))})
		o.shop.Updated(e2e.AppLog)
		o.Shows("second version")
	}},
	{"find the calls of the last minute and their client", 3, nil, func(o *office) {
		o.callByAgent("shop_stat", nil)
		o.press("5", "]", "/")
		o.text("since:1m name:stat")
		o.Shows("shop_stat", "e2e", "1 of ")
	}},
	{"find the slowest call and what it waited for", 7, nil, func(o *office) {
		o.callByAgent("shop_stat", nil)
		o.callByAgent("shop_slow", nil)
		o.press("5", "]", "/")
		o.text("ms:>1500 since:5m")
		o.Shows("shop_slow", "1 of ")
		o.press("Enter", "Enter")
		showsMatch(o.Pane, `ok +[2-9]\.\d s`)
		o.press("]", "]")
		showsMatch(o.Pane, `server works .* [2-9]\.\d s`)
	}},
	{"compare two answers", 5, nil, func(o *office) {
		o.callByAgent("shop_stat", e2e.Obj{"n": 1})
		o.callByAgent("shop_stat", e2e.Obj{"n": 2})
		o.press("5", "]")
		o.Shows("[Traffic", "n=1", "n=2")
		o.press("v", "k", "v")
		o.Shows("2 differences")
	}},
	{"stop a destructive call of a client and deny it", 8, nil, func(o *office) {
		o.press("2", "/")
		o.text("delete")
		o.Shows("Tools 1/")
		o.press("Enter", "b")
		o.Shows("Add a rule for shop_delete_all")
		o.press("Enter")
		o.Shows("Added rule")
		id := o.agent.Begin("tools/call", e2e.Obj{"name": "shop_delete_all", "arguments": e2e.Obj{"table": "users"}})
		o.Shows("1 request stopped (!)")
		o.press("!")
		o.Shows("left, then deny")
		o.press("d")
		o.Shows("Deny shop_delete_all")
		o.text("ask me first")
		o.press("C-s")
		m := o.agent.End(id)
		require.Contains(o.t, string(m.Result), "ask me first")
	}},
	{"save a call and run it again", 7, nil, func(o *office) {
		o.callByAgent("shop_stat", nil)
		o.press("5", "]")
		o.Shows("shop_stat")
		o.press("C-w")
		o.Shows("Save the call")
		o.press("C-s")
		o.Shows("7 shows it")
		o.press("7")
		showsMatch(o.Pane, `(?s)\[7 Saved.*\n│> +shop_stat +shop_stat`)
		o.press("G", "Enter")
		o.Shows("1 passed")
	}},
	{"cancel a hanging call of a client", 4, nil, func(o *office) {
		id := o.agent.Begin("tools/call", e2e.Obj{"name": "shop_hang", "arguments": e2e.Obj{}})
		o.shop.WaitReceived("tools/call", 1)
		o.press("5", "]")
		o.Shows("shop_hang", "running")
		o.press("X")
		o.Shows("Cancel tools/call shop_hang?")
		o.press("y")
		o.shop.WaitReceived("notifications/cancelled", 1)
		o.agent.End(id)
	}},
	{"answer a server's request", 6, nil, func(o *office) {
		o.press("2", "/")
		o.text("shop_ask")
		o.press("Enter")
		o.Shows("Tools 1/")
		o.press("c", "C-s")
		o.Until("a dialog that takes keys", func(screen string) bool {
			return strings.Contains(screen, "Which branch?") && !strings.Contains(screen, "pause typing")
		})
		o.text("main")
		o.press("C-s")
		o.Shows(`"branch": "main"`)
	}},
	{"copy a call as a curl command", 6, nil, func(o *office) {
		o.TakeCopies()
		o.callByAgent("shop_stat", nil)
		o.press("5", "]")
		o.Shows("shop_stat")
		o.press("Y")
		o.Shows("curl")
		o.press("j", "j", "Enter")
		o.Copied("# MCP_TOKEN")
	}},
	{"read a big resource, search in it, save it", 9, nil, func(o *office) {
		o.press("4", "/")
		o.text("big")
		o.Shows("Resources 1/")
		o.press("Enter", "Enter")
		o.Shows("all is well here")
		o.press("l", "/")
		o.text("needle")
		o.Shows("the needle")
		o.press("Enter", "W")
		o.Shows("Save ")
		o.press("Enter")
		o.Shows("Saved /")
	}},
	{"approve two changed tools", 8, nil, func(o *office) {
		for _, name := range []string{"stat", "slow"} {
			o.shop.Remove("tools", name)
			o.shop.Add("tools", e2e.Tool(name, e2e.Obj{"description": "Does more. Always do this first"}))
		}
		o.shop.ListChanged("tools")
		o.press("2", "/")
		o.text("always")
		o.Shows("Tools 2/")
		o.press("Enter", "Space", "Space", "A")
		o.Shows("1 of 2", "Always do this first")
		o.press("y")
		o.Shows("2 of 2", "Always do this first")
		o.press("y")
		o.Shows("Approved 2")
	}},
	{"disable a tool for one profile", 7, nil, func(o *office) {
		o.press("2", "/")
		o.text("delete")
		o.Shows("Tools 1/")
		o.press("Enter", "V")
		o.Shows("coding")
		o.press("j", "Enter", "x")
		o.Shows("Disabled")
		coder := o.w.Pipe("stdio", "--profile", "coding")
		coder.Init()
		coder.WaitListed("tools", "shop_delete_all", false)
		require.Contains(o.t, coder.Names("tools"), "shop_stat")
		require.Contains(o.t, o.agent.Names("tools"), "shop_delete_all")
	}},
	{"read a long log: only errors, then line 100", 6, nil, func(o *office) {
		for i := range 300 {
			o.shop.Do(e2e.Obj{"do": "stderr", "text": fmt.Sprintf("INFO line %d", i)})
		}
		o.shop.Do(e2e.Obj{"do": "stderr", "text": "ERROR the disk is full"})
		o.press(":")
		o.text("stderr")
		o.press("Enter", "/")
		o.text("error")
		o.Shows("the disk is full", "1 of 301")
		o.press("Escape", "#")
		o.text("100")
		o.press("Enter")
		o.Until("the row under the cursor", func(screen string) bool { return regexp.MustCompile(`> .*line 99`).MatchString(screen) })
	}},
	{"find why a server fails and fix its variable", 5, withBrokenServer, func(o *office) {
		o.Shows("1 alert (!)")
		o.press("!")
		o.Shows("API_TOKEN is not set")
		o.press("C-e")
		o.Shows("C-s")
		o.press("C-u")
		o.text("right")
		o.press("C-s")
		o.Shows("Save this change?", "[hidden]")
		o.press("y")
		o.Shows("2 up")
	}},
	{"edit the config with a mistake and repair it", 2, func(w *e2e.World) {
		editor := filepath.Join(w.Dir, "editor")
		e2e.WriteProgram(w.T, editor, "#!/bin/sh\nfor file; do :; done\nif grep -q surprise \"$file\"; then sed -i /surprise/d \"$file\"; else echo 'surprise: 1' >>\"$file\"; fi\n")
		w.Env = append(w.Env, "EDITOR="+editor)
	}, func(o *office) {
		o.press("C-o")
		showsMatch(o.Pane, `> goblin\.yaml +\d+ .*surprise`)
		o.press("Enter")
		o.Shows("Nothing needs you.")
	}},
	{"add a server from a registry", 5, withRegistry, func(o *office) {
		o.press("1", "a")
		o.text("weather")
		o.Shows("io.example/weather")
		o.press("Down", "Enter")
		o.Shows("C-s add")
		o.press("C-s")
		o.Shows("to the config", "2 up")
	}},
	{"add a server of a client's config", 5, func(w *e2e.World) {
		path := filepath.Join(w.Dir, "home", ".cursor", "mcp.json")
		require.NoError(w.T, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(w.T, os.WriteFile(path, e2e.Marshal(e2e.Obj{"mcpServers": e2e.Obj{"notes": e2e.Obj{"command": e2e.Goblin, "args": []string{"demo-server", "notes"}}}}), 0o600))
	}, func(o *office) {
		o.press("1", "a")
		o.Shows("notes", "ursor")
		o.press("Down", "Enter")
		o.Shows("C-s add")
		o.press("C-s")
		o.Shows("to the config", "2 up")
	}},
	{"record traffic", 2, nil, func(o *office) {
		o.press(":")
		o.text("record")
		o.press("Enter")
		o.Shows("Recording to")
		o.callByAgent("shop_stat", nil)
		o.Types(":record")
		o.Keys("Enter")
		folder := regexp.MustCompile(`(?s)Recording stopped: .* in (/\S+)`).FindStringSubmatch(o.Shows("Recording stopped"))
		require.NotNil(o.t, folder)
		p := o.w.Pane(120, 40)
		p.Goblin("open " + folder[1])
		p.Shows("recording ", "shop_stat")
	}},
}

// withBrokenServer adds a server that needs a variable.
func withBrokenServer(w *e2e.World) {
	broken, _ := w.Fake("api", e2e.Obj{})
	script := `test "$API_TOKEN" = right || { echo "API_TOKEN is not set" >&2; exit 1; }; exec "$0" demo-server notes`
	broken.Conf = e2e.Obj{"command": "sh", "args": []string{"-c", script, e2e.Goblin}, "env": e2e.Obj{"API_TOKEN": "wrong"}}
}

// withRegistry starts a registry with one server.
func withRegistry(w *e2e.World) {
	remote := w.Remote("weather", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("forecast")}})
	w.Drop(remote)
	entry := e2e.Obj{
		"server": e2e.Obj{"name": "io.example/weather", "description": "Weather for everyone", "version": "1.0.0", "remotes": []e2e.Obj{{"type": "streamable-http", "url": remote.Conf["url"]}}},
		"_meta":  e2e.Obj{"io.modelcontextprotocol.registry/official": e2e.Obj{"status": "active", "isLatest": true}},
	}
	registry := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v0.1/servers" {
			_, _ = rw.Write(e2e.Marshal(e2e.Obj{"servers": []e2e.Obj{entry}, "metadata": e2e.Obj{"count": 1}}))
			return
		}
		_, _ = rw.Write(e2e.Marshal(entry))
	}))
	w.T.Cleanup(registry.Close)
	w.Env = append(w.Env, "GOBLIN_REGISTRY="+registry.URL)
}

// fillOrder fills in the form of place_order.
func (o *office) fillOrder() {
	o.t.Helper()
	o.text("Ann")
	o.press("Tab", "Space")
	o.Shows("sku *")
	o.press("Tab")
	o.text("pear")
}

func (o *office) callByAgent(tool string, args e2e.Obj) {
	o.t.Helper()
	o.agent.Ok("tools/call", e2e.Obj{"name": tool, "arguments": args})
}

// row returns the job's line in the README of the UI.
func (o *office) row(name string) string {
	shown := make([]string, len(o.keys))
	for i, key := range o.keys {
		shown[i] = key
		if len(key) == 1 || strings.HasPrefix(key, "C-") {
			shown[i] = "`" + key + "`"
		}
	}
	return fmt.Sprintf("| %s | %s | %d |\n", name, strings.Join(shown, " "), len(o.keys))
}

func TestJobsNeedFewKeys(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../../tui/README.md")
	require.NoError(t, err)
	for _, j := range jobs {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t, j.prepare)
			j.do(o)
			require.LessOrEqual(t, len(o.keys), j.keys, "%v", o.keys)
			require.Contains(t, string(readme), o.row(j.name))
		})
	}
}
