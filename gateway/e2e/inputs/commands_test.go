//go:build e2e

package inputs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// The lists mark entries that clients do not see, with the reason.
func TestListsShowTheStateOfEveryEntry(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["pin"] = "strict"
	b := w.Backend("x", e2e.Obj{
		"tools":     []e2e.Obj{e2e.Tool("seen"), e2e.Tool("denied"), e2e.Tool("off"), e2e.Tool("changed")},
		"prompts":   []e2e.Obj{e2e.Prompt("ask"), e2e.Prompt("denied")},
		"resources": []e2e.Obj{e2e.Resource("file:///a"), e2e.Resource("file:///denied")},
		"templates": []e2e.Obj{e2e.Template("row:///{id}")},
	}, e2e.Obj{
		"tools": e2e.Obj{"deny": []string{"denied"}}, "prompts": e2e.Obj{"deny": []string{"denied"}},
		"resources": e2e.Obj{"deny": []string{"file:///denied"}},
	})
	w.Backend("y", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("other")}})
	w.Profiles = e2e.Obj{"p": e2e.Obj{"servers": []string{"x"}, "tools": e2e.Obj{"deny": []string{"seen"}}}, "s": e2e.Obj{"expose": "search"}}
	c := w.Bridged()
	c.WaitListed("tools", "x_changed", true)
	b.Remove("tools", "changed")
	b.Add("tools", e2e.Tool("changed", e2e.Obj{"description": "other words"}))
	b.ListChanged("tools")
	c.WaitListed("tools", "x_changed", false)
	w.Succeeds("tools", "off", "x_off")
	c.WaitListed("tools", "x_off", false)

	for _, row := range []struct {
		args string
		want []string // lines, with one space between columns
		lack string
	}{
		{"list tools", []string{"NAME SERVER STATE", "x_seen x listed", "x_off x disabled", "x/denied x filtered", "x/changed x unapproved", "y_other y listed"}, "hidden"},
		{"list tools --server y", []string{"y_other y listed"}, "x"},
		{"list tools --profile p", []string{}, "x_seen"},
		{"list prompts", []string{"x/ask x listed", "x/denied x filtered"}, "y"},
		{"list resources --server x", []string{"URI NAME STATE", "mcp://x/file:///a file:///a listed", "x/file:///denied filtered"}, "y"},
		{"list templates", []string{"mcp://x/row:///{id} row:///{id} listed"}, "filtered"},
		{"tools list", []string{
			"x_seen x listed", "y_other y listed", `x/denied x filtered excluded by "tools" of server "x"`, "x/changed x unapproved",
			"x_off x disabled",
		}, "hidden"},
		{"tools list --profile p", []string{
			`x_seen x hidden by profile excluded by "tools" of profile "p"`, `y_other y hidden by profile server "y" is not in profile "p"`,
			"x_off x disabled", "x/denied x filtered",
		}, "listed"},
		{"tools list --profile s", []string{"x_seen x found by search", "x_off x disabled"}, "hidden"},
		{"resources list", []string{"mcp://x/file:///a x listed", "x/file:///denied x filtered"}, "hidden"},
		{"prompts list", []string{"x/ask x listed", "x/denied x filtered"}, "hidden"},
		{"templates list", []string{"mcp://x/row:///{id} x listed"}, "hidden"},
	} {
		text := ""
		for line := range strings.Lines(w.Succeeds(strings.Fields(row.args)...)) {
			text += strings.Join(strings.Fields(line), " ") + "\n"
		}
		for _, want := range row.want {
			require.Contains(t, "\n"+text, "\n"+want, row.args)
		}
		require.NotContains(t, strings.Fields(text), row.lack, row.args)
	}

	// Scripts that read list --json get the same entries as before, each with its state.
	type entry struct {
		Name, ServerID, OriginalName, State, Reason string
		By, Why                                     string
	}
	var listed, all []entry
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("list", "tools", "--json")), &listed))
	require.Equal(t, []entry{
		{Name: "x_off", ServerID: "x", OriginalName: "off", State: "disabled", Reason: "disabled for all clients"},
		{Name: "x_seen", ServerID: "x", OriginalName: "seen", State: "listed"},
		{Name: "y_other", ServerID: "y", OriginalName: "other", State: "listed"},
	}, listed)
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("tools", "list", "--json")), &all))
	states := map[string]string{}
	for _, e := range all {
		states[e.OriginalName] = e.State
		require.Equal(t, e.Why, e.Reason)
		require.Equal(t, e.State == "listed", e.By == "", e.OriginalName)
	}
	require.Equal(t, map[string]string{"seen": "listed", "other": "listed", "off": "disabled", "denied": "filtered", "changed": "unapproved"}, states)
}

func TestToolsOffNamesTheProfileThatLacksThem(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("x", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("one")}, "prompts": []e2e.Obj{e2e.Prompt("ask")}})
	w.Backend("y", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("two")}})
	w.Profiles = e2e.Obj{"p": e2e.Obj{"servers": []string{"y"}}}
	for args, want := range map[string]string{
		"tools off x_* --profile p":   `profile "p": no tool "x_*"; server "x" is not in the profile`,
		"tools on x_one --profile p":  `profile "p": no tool "x_one"; server "x" is not in the profile`,
		"tools off one --profile p":   `profile "p": no tool "one"; server "x" is not in the profile`,
		"prompts off * --profile p":   `profile "p": no prompt "*"; server "x" is not in the profile`,
		"tools off y_tow --profile p": `profile "p": no tool "y_tow"; did you mean "y_two"?`,
		"tools off zzz_*":             `no tool "zzz_*"`,
	} {
		out := w.Run(strings.Fields(args)...)
		require.Equal(t, e2e.ExitNotFound, out.Code, args)
		require.Contains(t, out.Stderr, want)
		require.Empty(t, out.Stdout)
	}
}

func TestUsageCountsOnlyServersThatAreListed(t *testing.T) {
	t.Parallel()
	type usage struct {
		Servers []struct {
			Name                           string
			Removed                        bool
			Tools, Calls, DefinitionTokens int
		}
		Tools []struct {
			Listed                  string
			Removed                 bool
			Calls, DefinitionTokens int
		}
	}
	for name, change := range map[string]func(w *e2e.World, b *e2e.Backend){
		"removed":  func(w *e2e.World, b *e2e.Backend) { w.Drop(b) },
		"disabled": func(_ *e2e.World, b *e2e.Backend) { b.Conf["disabled"] = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("keep", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("a")}})
			gone := w.Backend("gone", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("b"), e2e.Tool("c")}})
			c := w.Bridged()
			c.WaitListed("tools", "gone_b", true)
			c.Ok("tools/call", e2e.Obj{"name": "gone_b", "arguments": e2e.Obj{}})
			read := func() (u usage) {
				require.NoError(t, json.Unmarshal([]byte(w.Succeeds("usage", "--json")), &u))
				return u
			}
			e2e.Eventually(t, "the call is counted", func() bool {
				u := read()
				return len(u.Servers) == 2 && u.Servers[0].Calls+u.Servers[1].Calls == 1
			})
			w.Edit(func() { change(w, gone) })
			c.WaitListed("tools", "gone_b", false)
			check := func() {
				u := read()
				require.Len(t, u.Servers, 2)
				require.Equal(t, "keep", u.Servers[0].Name)
				require.Positive(t, u.Servers[0].DefinitionTokens)
				last := u.Servers[1]
				require.True(t, last.Removed)
				require.Equal(t, "removed", last.Name)
				require.Equal(t, 1, last.Calls)
				require.Zero(t, last.Tools+last.DefinitionTokens)
				require.Len(t, u.Tools, 2)
				require.Equal(t, "keep_a", u.Tools[0].Listed)
				require.Equal(t, 1, u.Tools[1].Calls)
				require.Zero(t, u.Tools[1].DefinitionTokens)
				text := w.Succeeds("usage", "--all")
				require.Regexp(t, `(?m)^removed +1 +0 `, text)
				require.NotContains(t, text, "gone")
			}
			check()
			c.Close()
			require.Zero(t, c.Prog.Ends(e2e.Patience))
			w.Succeeds("stop")
			check() // the last counts of the daemon
		})
	}
}

func TestSecretListWithoutSecretsPrintsNothing(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	require.Empty(t, w.Succeeds("secret", "list"))
	require.JSONEq(t, `{"secrets": []}`, w.Succeeds("secret", "list", "--json"))
	require.Zero(t, w.RunInput("value", "secret", "set", "one").Code)
	require.Regexp(t, `^one\t.+\n$`, w.Succeeds("secret", "list"))
}

func TestSearchReportsThatNothingFitsWell(t *testing.T) {
	t.Parallel()
	w := e2e.DemoWorld(t)
	for _, row := range []struct {
		words string
		code  int
		says  string
	}{
		{"what time is it", e2e.ExitOK, ""},
		{"library_search_books", e2e.ExitOK, ""},
		{"moon", e2e.ExitOK, ""},
		{"send mail", e2e.ExitNotFound, `nothing found for "send mail"`},
		{"draw a map of the book shop and mail it", e2e.ExitOK, "no good match for"},
		{"kubernetes deployment", e2e.ExitNotFound, `nothing found for "kubernetes deployment"`},
	} {
		for _, flags := range [][]string{nil, {"--json"}} {
			out := w.Run(append([]string{"search", row.words}, flags...)...)
			require.Equal(t, row.code, out.Code, row.words)
			if row.says == "" {
				require.Empty(t, out.Stderr, row.words)
			} else {
				require.Contains(t, out.Stderr, row.says, row.words)
			}
			if flags != nil && row.code == e2e.ExitOK {
				var answer struct{ Weak bool }
				require.NoError(t, json.Unmarshal([]byte(out.Stdout), &answer))
				require.Equal(t, row.says != "", answer.Weak, row.words)
			}
		}
	}
}

func TestAddEndsItsListsAtANameAndSaysWhatIsNext(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	var tools, resources []e2e.Obj
	for i := range 40 {
		tools = append(tools, e2e.Tool(fmt.Sprintf("a_tool_with_a_name_%02d", i)))
	}
	resources = append(resources, e2e.Resource("file:///"+strings.Repeat("long", 200)), e2e.Resource("file:///z"))
	b, script := w.Fake("many", e2e.Obj{"tools": tools, "resources": resources})
	w.Drop(b)
	add := func(name string, more ...string) string {
		return w.Succeeds(append(append([]string{"add", name}, more...), "--", e2e.TestServer, script)...)
	}
	text := add("many")
	require.Regexp(t, `(?m)^40 tools: (a_tool_with_a_name_\d\d, )+and \d+ more$`, text)
	require.Regexp(t, `(?m)^2 resources: file:///(long)+.*…, and 1 more$`, text)
	require.Contains(t, text, "\nNext: goblin install CLIENT\n")

	for _, file := range []string{".cursor/mcp.json", ".codex/config.toml"} {
		path := filepath.Join(w.Dir, "home", file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(w.Dir, "home/.cursor/mcp.json"), []byte(`{"mcpServers": {}}`), 0o600))
	require.Contains(t, add("two"), "\nNext: goblin install cursor codex\n")
	w.Succeeds("install", "cursor")
	require.Contains(t, add("three"), "\nNext: goblin install codex\n")
	w.Succeeds("install", "codex")
	require.NotContains(t, add("four"), "Next:")
	require.True(t, json.Valid([]byte(add("five", "--json"))))
}

func TestDescribeShowsOneEntry(t *testing.T) {
	t.Parallel()
	const escape = "\x1b]0;title\x07"
	w := e2e.NewWorld(t)
	w.Backend("x", e2e.Obj{
		"tools": []e2e.Obj{
			e2e.Tool("make", e2e.Obj{
				"title": "Make it", "description": "Makes a thing." + escape + "\nSecond line.",
				"annotations": e2e.Obj{"readOnlyHint": false, "destructiveHint": true},
				"inputSchema": json.RawMessage(`{"type":"object","required":["kind"],"properties":{
					"kind":{"type":"string","enum":["a","b"],"default":"a","description":"What to make` + `"},
					"size":{"anyOf":[{"type":"integer"},{"type":"null"}]},
					"deep":{"type":"object","properties":{"inner":{"type":"boolean"}}},
					"list":{"type":"array","items":{"$ref":"#/$defs/item"}}},
					"$defs":{"item":{"type":"object","properties":{"again":{"$ref":"#/$defs/item"}}}}}`),
			}),
			e2e.Tool("denied"), e2e.Tool("both"),
		},
		"prompts":   []e2e.Obj{e2e.Prompt("greet", e2e.Obj{"arguments": []e2e.Obj{{"name": "who", "required": true, "description": "Whom"}}}), e2e.Prompt("both")},
		"resources": []e2e.Obj{e2e.Resource("file:///logs/app.log", e2e.Obj{"mimeType": "text/plain", "size": 1234})},
		"templates": []e2e.Obj{e2e.Template("row:///{table}/{id}{?limit,from*}")},
	}, e2e.Obj{"tools": e2e.Obj{"deny": []string{"denied"}}})
	other := w.Backend("y", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("both"), e2e.Tool("y")}})
	rows := []struct {
		args string
		code int
		want []string // regular expressions
	}{
		{"x_make", e2e.ExitOK, []string{
			`^tool +x_make\n`, `\nserver +x\n`, `\nown name +make\n`, `\ntitle +Make it\n`, `\nstate +listed\n`, `\nhints +writes, destructive\n`,
			`\ncost +about \d+ tokens\n`, `\nSecond line\.\n`, `\n  kind +string, required, one of "a" \| "b", default "a"\n +What to make\n`,
			`\n  size +integer or null\n`, `\n  deep\.inner +boolean\n`, `\n  list +array of object\n`,
		}},
		{"x/make", e2e.ExitOK, []string{`^tool +x_make\n`}},
		{"make", e2e.ExitOK, []string{`^tool +x_make\n`}},
		{"x/greet", e2e.ExitOK, []string{`^prompt +x/greet\n`, `\n  who +string, required\n +Whom\n`}},
		{"x_greet", e2e.ExitOK, []string{`^prompt +x/greet\n`}},
		{"file:///logs/app.log", e2e.ExitOK, []string{`^resource +mcp://x/file:///logs/app.log\n`, `\nMIME type +text/plain\n`, `\nsize +1.2 kB\n`, `\nflat id +x_file_logs_app.log\n`}},
		{"x_file_logs_app.log", e2e.ExitOK, []string{`^resource +mcp://x/file:///logs/app.log\n`}},
		{"row:///{table}/{id}{?limit,from*}", e2e.ExitOK, []string{`^template +mcp://x/row`, `\n  table +string\n  id +string\n  limit +string\n  from +string\n`}},
		{"y", e2e.ExitOK, []string{`^server +y\n`, `\noffers +2 tools\n`}},
		{"y --kind tools", e2e.ExitOK, []string{`^tool +y_y\n`}},
		{"x/denied", e2e.ExitOK, []string{`^tool +x/denied\n`, `\nstate +filtered: excluded by "tools" of server "x"\n`}},
		{"both", e2e.ExitFailure, []string{`"both" is ambiguous: tool "x_both" or tool "y_both" or prompt "x/both"; use one of these names, or --kind`}},
		{"both --kind prompt", e2e.ExitOK, []string{`^prompt +x/both\n`}},
		{"both --server y", e2e.ExitOK, []string{`^tool +y_both\n`}},
		{"x_mkae", e2e.ExitNotFound, []string{`no entry or server "x_mkae"; did you mean "x_make"\?`}},
		{"zzzzzz", e2e.ExitNotFound, []string{`no entry or server "zzzzzz"`}},
		{"x --server nobody", e2e.ExitNotFound, []string{`no server "nobody"`}},
		{"x --kind things", e2e.ExitUsage, []string{`--kind must be one of servers, tools, prompts, resources, templates`}},
	}
	check := func() {
		for _, row := range rows {
			out := w.Run(append([]string{"describe"}, strings.Fields(row.args)...)...)
			require.Equal(t, row.code, out.Code, "%s: %s", row.args, out.Stderr)
			for _, want := range row.want {
				require.Regexp(t, want, out.Stdout+out.Stderr, row.args)
			}
			require.NotContains(t, out.Stdout+out.Stderr, "\x1b")
			if row.code != e2e.ExitOK {
				require.Empty(t, out.Stdout)
			}
		}
	}
	w.Succeeds("describe", "x_make")
	require.Zero(t, other.Starts(), "only the server whose name fits is started")
	check()
	w.Bridged().WaitListed("tools", "x_make", true)
	check()

	var entry struct {
		Kind, Name, ServerID, OriginalName, State string
		DefinitionTokens                          int
		Definition                                struct{ Name, Title string }
	}
	text := w.Succeeds("describe", "make", "--json")
	require.NoError(t, json.Unmarshal([]byte(text), &entry))
	require.Equal(t, "tool x_make x make listed x_make Make it", strings.Join([]string{entry.Kind, entry.Name, entry.ServerID, entry.OriginalName, entry.State, entry.Definition.Name, entry.Definition.Title}, " "))
	require.Positive(t, entry.DefinitionTokens)
	require.NotContains(t, text, "\x1b")
	e2e.Eventually(t, "server y ready", func() bool { // its lists were cached
		var server struct{ Kind, Name, State string }
		require.NoError(t, json.Unmarshal([]byte(w.Succeeds("describe", "y", "--json")), &server))
		require.Equal(t, []string{"server", "y"}, []string{server.Kind, server.Name})
		return server.State == "ready"
	})
}

func TestDescribeNamesTheServerThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("x", e2e.Obj{}).Conf["command"] = "/nonexistent/program"
	out := w.Run("describe", "x_make")
	require.Equal(t, e2e.ExitConnect, out.Code)
	require.Contains(t, out.Stderr, `server "x"`)
}

func TestLogsShowServerOutputAndGoblinsLog(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("x", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("a")}}, e2e.Obj{"env": e2e.Obj{"API_KEY": "hunter2hunter2"}})
	w.Backend("y", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("b")}})
	out := w.Run("logs")
	require.Equal(t, e2e.ExitConnect, out.Code)
	require.Contains(t, out.Stderr, `no daemon is running for`)
	require.Contains(t, out.Stderr, `start one with "goblin serve"`)
	require.Equal(t, e2e.ExitNotFound, w.Run("logs", "z").Code)

	c := w.Bridged()
	c.WaitListed("tools", "x_a", true)
	b.Do(e2e.Do("stderr", e2e.Obj{"text": "first line \x1b[31mred"}))
	b.Do(e2e.Do("stderr", e2e.Obj{"text": "the key is hunter2hunter2"}))
	e2e.Eventually(t, "both lines", func() bool { return strings.Contains(w.Succeeds("logs", "x"), "the key is") })
	text := w.Succeeds("logs", "x")
	require.Regexp(t, `(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  INFO   x +stderr +first line \\x1b\[31mred$`, text)
	require.NotContains(t, text, "hunter2")
	require.NotContains(t, text, " y ")
	require.NotContains(t, w.Succeeds("logs", "y"), "first line")
	require.Contains(t, w.Succeeds("logs"), "first line")
	require.Contains(t, w.Succeeds("logs", "goblin"), "daemon started")
	require.Equal(t, 1, strings.Count(w.Succeeds("logs", "x", "-n", "1"), "\n"))
	require.Empty(t, w.Succeeds("logs", "-n", "0"))
	var record struct{ ServerID, Source, Level, Text string }
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("logs", "x", "-n", "1", "--json")), &record))
	require.Equal(t, "x stderr", record.ServerID+" "+record.Source)
	for args, code := range map[string]int{"logs z": e2e.ExitNotFound, "logs x y": e2e.ExitUsage, "logs -n -1": e2e.ExitUsage, "logs -n 10001": e2e.ExitUsage} {
		require.Equal(t, code, w.Run(strings.Fields(args)...).Code, args)
	}

	// With -f new lines follow until the user stops it.
	var stdout e2e.Buffer
	p := w.Start(func(cmd *exec.Cmd) { cmd.Stdout = &stdout }, "logs", "x", "-f", "-n", "1")
	e2e.Eventually(t, "the last line", func() bool { return strings.Contains(stdout.String(), "the key is") })
	require.NotContains(t, stdout.String(), "first line")
	b.Do(e2e.Do("stderr", e2e.Obj{"text": "a new line"}))
	e2e.Eventually(t, "the new line", func() bool { return strings.Contains(stdout.String(), "a new line\n") })
	p.Signal(syscall.SIGINT)
	require.Zero(t, p.Ends(e2e.Patience))
	require.Empty(t, p.Stderr.String())

	// The daemon does not wait for a slow reader.
	read, write, err := os.Pipe()
	require.NoError(t, err)
	slow := w.Start(func(cmd *exec.Cmd) { cmd.Stdout = write }, "logs", "-f", "-n", "10000")
	require.NoError(t, write.Close())
	_, err = read.Read(make([]byte, 1)) // it follows the log from here on
	require.NoError(t, err)
	b.Do(e2e.Do("stderr", e2e.Obj{"text": strings.Repeat("flood ", 100) + "$n", "n": 30000}))
	c.Ok("tools/call", e2e.Obj{"name": "x_a", "arguments": e2e.Obj{}})
	slow.Signal(syscall.SIGINT)
	require.NoError(t, read.Close())
	require.Zero(t, slow.Ends(e2e.Patience))

	// Afterwards the file of the daemon is read.
	c.Close()
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	w.Succeeds("stop")
	out = w.Run("logs", "goblin", "-n", "5")
	require.Equal(t, e2e.ExitOK, out.Code, out.Stderr)
	require.Contains(t, out.Stdout, "daemon stopped")
	require.Contains(t, out.Stderr, "no daemon is running; showing")
	out = w.Run("logs", "-f")
	require.Equal(t, e2e.ExitConnect, out.Code)
}
