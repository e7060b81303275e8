//go:build e2e

package commands

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// save writes the files of saved calls into a folder of the world.
func save(t *testing.T, w *e2e.World, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(w.Dir, "saved", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// orders is a server whose tool create returns an id that the tool get needs.
func orders() e2e.Obj {
	structured := func(v e2e.Obj) e2e.Obj {
		return e2e.Obj{"content": []e2e.Obj{{"type": "text", "text": "ok"}}, "structuredContent": v}
	}
	schema := e2e.Obj{"type": "object", "properties": e2e.Obj{"id": e2e.Obj{"type": "string"}}, "required": []string{"id"}}
	return e2e.Obj{
		"tools":     []e2e.Obj{e2e.Tool("create", e2e.Obj{"outputSchema": schema}), e2e.Tool("get"), e2e.Tool("wrong", e2e.Obj{"outputSchema": schema})},
		"resources": []e2e.Obj{e2e.Resource("order:///7")},
		"calls":     e2e.Obj{"create": structured(e2e.Obj{"id": "o-7", "when": "now"}), "wrong": structured(e2e.Obj{"id": 7})},
		"reads":     e2e.Obj{"order:///7": "seven"},
		"on":        e2e.Obj{"tools/call get": e2e.Actions(e2e.Do("echo"))},
	}
}

const (
	createCall = `# the first of two
call: shop_create
capture: {id: "$.structuredContent.id"}
expect:
  - {schema: true}
`
	getCall = `call: shop_get
arguments: {id: "${id}", n: 1}
expect:
  - {path: "$.content[0].text", matches: "\"id\":\"o-7\""}
`
)

func TestSavedCallsOfTheDemoPass(t *testing.T) {
	t.Parallel()
	folder, err := filepath.Abs("../../demo/saved")
	require.NoError(t, err)
	w := e2e.DemoWorld(t)
	junit := filepath.Join(w.Dir, "junit.xml")
	out := w.Succeeds("test", folder, "--junit", junit)
	root := validJUnit(t, junit)
	require.Equal(t, root.number(t, "tests"), strings.Count(out, "ok    "))
	require.GreaterOrEqual(t, root.number(t, "tests"), 6)
	require.Zero(t, root.number(t, "failures")+root.number(t, "errors"))
	require.Len(t, root.Children, 2, "one suite per folder")
}

func TestSavedCallsRunAgainstDaemonCommandAndRecording(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", orders())
	save(t, w, map[string]string{"orders/1.yaml": createCall, "orders/2.yaml": getCall, "own.yaml": "read: order:///7\nexpect:\n  - {path: \"$.contents[0].uri\", equals: \"order:///7\"}\n"})
	out := w.Succeeds("test")
	require.Contains(t, out, "3 calls: 3 passed")
	require.Equal(t, 1, b.Starts())

	recording := filepath.Join(w.Dir, "recording")
	w.Succeeds("test", "--record", recording)
	require.Equal(t, 2, b.Starts())
	require.Contains(t, w.Succeeds("test", "saved", "--from", recording), "3 passed")
	require.Equal(t, 2, b.Starts(), "the recording answers")

	c := w.Bridged()
	c.Names("tools")
	require.Contains(t, w.Succeeds("test"), "3 passed")
	require.Equal(t, 3, b.Starts(), "the daemon's server answers")
}

func TestSavedCallsOfACommandUseItsOwnNames(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	spec := orders()
	spec["resources"] = []e2e.Obj{e2e.Resource("order:///7"), e2e.Resource("ui://order/7")}
	_, script := w.Fake("x", spec)
	save(t, w, map[string]string{
		"1.yaml": strings.ReplaceAll(createCall, "shop_", ""),
		"2.yaml": strings.ReplaceAll(getCall, "shop_", ""),
		"3.yaml": "read: order:///7\nexpect:\n  - {path: \"$.contents[0].uri\", equals: \"order:///7\"}\n",
		"4.yaml": "call: crate\n",
		"5.yaml": "read: ui://order/7\nexpect:\n  - {path: \"$.contents[0].uri\", equals: \"ui://order/7\"}\n",
		"6.yaml": "read: order:///8\nexpect:\n  - {path: $.error.data.uri, equals: \"order:///8\"}\n",
	})
	recorded := filepath.Join(w.Dir, "recording")
	for _, args := range [][]string{{"--record", recorded, "--", e2e.TestServer, script}, {"--from", recorded}} {
		out := w.Run(append([]string{"test", "saved"}, args...)...)
		require.Equal(t, e2e.ExitFailure, out.Code)
		require.Contains(t, out.Stdout, "6 calls: 5 passed, 1 failed", args)
		require.Contains(t, out.Stdout, `saved/4.yaml:1: unknown tool "crate"; did you mean "create"?`)
	}

	out := w.Run("test", "saved/1.yaml", "--", "/no/such/program")
	require.Equal(t, e2e.ExitConnect, out.Code)
	require.Contains(t, out.Stdout, `"/no/such/program" not found`)
	require.Contains(t, out.Stdout, `1 failed`)
}

func TestFailedSavedCallsShowPlaceAndDifference(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", orders())
	save(t, w, map[string]string{
		"a/1.yaml": "call: shop_crate\ncapture: {id: $.id}\n",
		"a/2.yaml": getCall,
		"a/3.yaml": "call: shop_get\n\narguments:\n  id: ${NOT_SET}\n  n: ${N:-3}\n",
		"b/1.yaml": "call: shop_create\nexpect:\n  - {path: $.structuredContent.id, equals: o-8}\n  - {time: 1m}\n",
		"b/2.yaml": "call: shop_wrong\nexpect:\n  - {schema: true}\n",
		"b/3.yaml": "read: mcp://shop/none\n",
		"c/1.yaml": createCall,
	})
	junit, sarif := filepath.Join(w.Dir, "j.xml"), filepath.Join(w.Dir, "s.sarif")
	out := w.Run("test", "--junit", junit, "--sarif", sarif)
	require.Equal(t, e2e.ExitFailure, out.Code, out.Stderr)
	for _, want := range []string{
		"saved/a/1.yaml:1: ", `did you mean "shop_create"`,
		"${id} was not captured because " + filepath.Join(w.Dir, "saved/a/1.yaml") + " failed",
		"saved/a/3.yaml:4: ${NOT_SET} is not set",
		`saved/b/1.yaml:3: $.structuredContent.id equals "o-8": got "o-7"`,
		"saved/b/2.yaml:3: schema: ", "RESOURCE_NOT_FOUND", "7 calls: 1 passed, 5 failed, 1 skipped",
	} {
		require.Contains(t, out.Stdout, want)
	}
	root := validJUnit(t, junit)
	require.Equal(t, []int{7, 5, 0}, []int{root.number(t, "tests"), root.number(t, "failures"), root.number(t, "errors")})
	require.Equal(t, 1, root.Children[0].number(t, "skipped"))
	text, err := os.ReadFile(sarif)
	require.NoError(t, err)
	require.Len(t, e2e.Each(text, "runs", 0, "results"), 1)
	require.Equal(t, "saved-call/schema", e2e.Str(text, "runs", 0, "results", 0, "ruleId"))
	require.Equal(t, "3", string(e2e.At(text, "runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine")))
}

func TestHostileAnswersStayTextInReports(t *testing.T) {
	t.Parallel()
	const evil = "]]> </failure>\x1b[31m\u0000\n::error::owned | <script>x</script> `a` [l](http://x) ##[add-mask]x ![i](y) www.evil\n|evil|"
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("evil")},
		"calls": e2e.Obj{"evil": e2e.Obj{"isError": true, "content": []e2e.Obj{{"type": "text", "text": evil}}}},
	})
	save(t, w, map[string]string{"1.yaml": "call: shop_evil\nexpect:\n  - {path: \"$.content[0].text\", equals: fine}\n  - {same: true}\n"})
	require.NoError(t, os.WriteFile(filepath.Join(w.Dir, "saved", "1.answer.json"), []byte(`{"isError": true, "content": []}`), 0o600))
	summary, junit := filepath.Join(w.Dir, "summary.md"), filepath.Join(w.Dir, "j.xml")
	w.Env = append(w.Env, "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="+summary, "GITHUB_WORKSPACE="+w.Dir)
	out := w.Run("test", "--junit", junit)
	require.Equal(t, e2e.ExitFailure, out.Code)

	root := validJUnit(t, junit)
	failure := root.testCase(t, "1.yaml").Children[0]
	require.Contains(t, failure.Text, "]]> </failure>")
	require.NotContains(t, failure.Text, "\x1b")

	for line := range strings.Lines(out.Stdout) {
		require.NotRegexp(t, `^\s*::`, line)
	}
	require.NotContains(t, out.Stdout+out.Stderr, "##[")
	require.NotContains(t, out.Stdout, "\x1b")
	annotations := strings.Split(strings.TrimSpace(out.Stderr), "\n")
	require.Len(t, annotations, 2, out.Stderr)
	require.True(t, strings.HasPrefix(annotations[0], "::error file=saved/1.yaml,line=3,title=goblin test%3A shop_evil::"), annotations[0])

	text, err := os.ReadFile(summary)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "| failed |"))
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "|") {
			require.Equal(t, 6, strings.Count(line, "|"), line)
		}
	}
	for _, markup := range []string{"<script>", "`a`", "](http", "![", "www.", "\x1b"} {
		require.NotContains(t, string(text), markup)
	}

	save(t, w, map[string]string{"2.yaml": "call: \"shop_evil\\e[2J##[add-mask]x\"\n"})
	out = w.Run("test")
	require.NotRegexp(t, `\x1b|##\[`, out.Stdout+out.Stderr)
	save(t, w, map[string]string{"2.yaml": "\"##[add-mask]x\": 1\n"})
	require.NotContains(t, w.Run("test").Stderr, "##[")
	require.NoError(t, os.Remove(filepath.Join(w.Dir, "saved", "2.yaml")))

	w.Env = w.Env[:len(w.Env)-3]
	out = w.Run("test", "--json")
	require.NotContains(t, out.Stderr, "::error", "annotations are for GitHub only")
	require.Equal(t, "failed", e2e.Str(json.RawMessage(strings.SplitN(out.Stdout, "\n", 2)[0]), "state"))
}

func TestSavedCallsWithoutAnswerFail(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form))
	w.Backend("down", e2e.Obj{"on": e2e.Obj{"start": e2e.Actions(e2e.Do("crash", e2e.Obj{"code": 5, "text": "the reason"}))}})
	save(t, w, map[string]string{"ask.yaml": "call: b_ask\n", "hang.yaml": "call: b_hang\n", "x/down.yaml": "call: down_tool\n"})
	junit := filepath.Join(w.Dir, "j.xml")
	out := w.Run("test", "--timeout", "300ms", "--junit", junit)
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stdout, "asked for input (elicitation/create: who?), but a test has no user")
	require.Contains(t, out.Stdout, "hang.yaml:1: no answer within 300 ms")
	require.Contains(t, out.Stdout, `server "down"`)
	root := validJUnit(t, junit)
	require.Equal(t, []int{2, 1}, []int{root.number(t, "failures"), root.number(t, "errors")})
	require.Equal(t, "error", root.testCase(t, "down.yaml").Children[0].XMLName.Local)
	require.Equal(t, e2e.ExitConnect, w.Run("test", "saved/x").Code)
}

func TestDeniedSavedCallsHaveTheResultOfClients(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", orders())
	w.Rules = []string{`{when: "name:shop_get", then: deny, text: Ask first.}`}
	save(t, w, map[string]string{"1.yaml": "call: shop_get\nexpect:\n" +
		"  - {path: $.isError, equals: true}\n" +
		"  - {path: \"$.content[0].text\", equals: Ask first.}\n" +
		"  - {path: \"$._meta['goblin/error'].code\", equals: DENIED}\n"})
	require.Contains(t, w.Succeeds("test"), "1 passed")
}

func TestFailedListsAreTheReasonOfMissingEntries(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("buy")}, "on": e2e.Obj{"tools/list": e2e.Actions(
		e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32000, "message": "no database"}}),
	)}})
	save(t, w, map[string]string{"1.yaml": "call: shop_buy\n"})
	out := w.Run("test")
	require.Equal(t, e2e.ExitConnect, out.Code, out.Stdout)
	require.Regexp(t, `1\.yaml:1: server "shop": tools/list failed: .*no database`, out.Stdout)
	out = w.Run("call", "shop_buy")
	require.Equal(t, e2e.ExitConnect, out.Code)
	require.Regexp(t, `server "shop" is ready: tools/list failed: .*no database`, out.Stderr)
	require.Contains(t, w.Run("list", "tools").Stderr, "tools/list failed")
}

func TestUpdateAcceptsAnswersAndDefinitions(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", orders())
	old := "sha256:" + strings.Repeat("0", 64)
	save(t, w, map[string]string{
		"1.yaml": "# kept\ncall: shop_create # kept too\nexpect:\n  - {definition: \"" + old + "\"}\n  - {same: true, ignore: [$.structuredContent.when]}\n",
		"2.yaml": "call: shop_create\nexpect:\n  - {same: true}\n  - {path: $.isError, equals: true}\n",
	})
	sarif := filepath.Join(w.Dir, "s.sarif")
	require.Equal(t, e2e.ExitFailure, w.Run("test", "--sarif", sarif).Code)
	text, err := os.ReadFile(sarif)
	require.NoError(t, err)
	require.Equal(t, "saved-call/definition", e2e.Str(text, "runs", 0, "results", 0, "ruleId"))

	out := w.Run("test", "--update")
	require.Equal(t, e2e.ExitFailure, out.Code, "another check failed")
	require.Contains(t, out.Stdout, "updated "+filepath.Join(w.Dir, "saved", "1.answer.json"))
	require.NoFileExists(t, filepath.Join(w.Dir, "saved", "2.answer.json"))
	file, err := os.ReadFile(filepath.Join(w.Dir, "saved", "1.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(file), "# kept\ncall: shop_create # kept too\n")
	require.NotContains(t, string(file), old)
	require.Contains(t, w.Succeeds("test", "saved/1.yaml"), "1 passed")

	stored := filepath.Join(w.Dir, "saved", "1.answer.json")
	answer, err := os.ReadFile(stored)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(stored, bytes.Replace(answer, []byte("o-7"), []byte("o-9"), 1), 0o600))
	out = w.Run("test", "saved/1.yaml")
	require.Contains(t, out.Stdout, `$.structuredContent.id "o-9" → "o-7"`)
}

// Stored answers belong into a version control system.
func TestStoredAnswersHoldNoSecretAndStayInTheirFolder(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	const secret = "s3cret-of-the-config"
	spec := orders()
	spec["calls"].(e2e.Obj)["get"] = e2e.Obj{"content": []e2e.Obj{{"type": "text", "text": "token " + secret}}}
	delete(spec, "on")
	w.Backend("shop", spec, e2e.Obj{"env": e2e.Obj{"API_TOKEN": secret}})
	save(t, w, map[string]string{"1.yaml": "call: shop_get\nexpect: [{same: true}]\n"})
	require.Contains(t, w.Succeeds("test", "--update"), "1 passed")
	stored := filepath.Join(w.Dir, "saved", "1.answer.json")
	answer, err := os.ReadFile(stored)
	require.NoError(t, err)
	require.Contains(t, string(answer), "token [hidden]")
	require.Contains(t, w.Succeeds("test"), "1 passed", "the answer is compared without the secret")

	other := filepath.Join(w.Dir, "other.json")
	require.NoError(t, os.WriteFile(other, []byte(`{"private":"of-another-program"}`), 0o600))
	require.NoError(t, os.Remove(stored))
	require.NoError(t, os.Symlink(other, stored))
	for _, args := range [][]string{{"test"}, {"test", "--update"}} {
		out := w.Run(args...)
		require.Equal(t, e2e.ExitFailure, out.Code)
		require.Contains(t, out.Stdout+out.Stderr, "link out of its folder")
		require.NotContains(t, out.Stdout+out.Stderr, "of-another-program")
	}
	text, err := os.ReadFile(other)
	require.NoError(t, err)
	require.JSONEq(t, `{"private":"of-another-program"}`, string(text))
}

func TestInterruptedRunReportsTheFinishedCalls(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("sends a signal")
	}
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form))
	w.Backend("shop", orders())
	save(t, w, map[string]string{"1.yaml": createCall, "2.yaml": "call: b_hang\n", "3.yaml": getCall})
	junit := filepath.Join(w.Dir, "j.xml")
	var stdout e2e.Buffer
	p := w.Start(func(cmd *exec.Cmd) { cmd.Stdout = &stdout }, "test", "--junit", junit)
	b.WaitReceived("tools/call", 1)
	p.Signal(syscall.SIGINT)
	require.Equal(t, e2e.ExitFailure, p.Ends(e2e.Patience))
	require.Contains(t, stdout.String(), "3 calls: 1 passed, 2 skipped")
	require.Contains(t, p.Stderr.String(), "interrupted")
	root := validJUnit(t, junit)
	require.Equal(t, 2, root.Children[0].number(t, "skipped"))
	require.Empty(t, root.testCase(t, "1.yaml").Children)
}

func TestSavedCallsAreSelected(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", orders())
	w.Backend("other", e2e.Shop())
	save(t, w, map[string]string{"a/1.yaml": createCall, "a/2.yaml": getCall, "b/1.yaml": "call: other_stat\n", "b/2.yaml": "call: other_move\n", "b/3.yaml": "call: other_stat\n"})
	require.Contains(t, w.Succeeds("test", "--filter", "server:shop"), "2 calls: 2 passed")
	require.Contains(t, w.Succeeds("test", "--filter", "folder:/b tool:stat"), "2 calls: 2 passed")
	require.Equal(t, 1, b.Starts(), "servers without calls are not started")
	out := w.Run("test", "saved/b", "--fail-fast")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stdout, "3 calls: 1 passed, 1 failed, 1 skipped")
	require.Contains(t, out.Stdout, "not run: another call failed before")
}

func TestMistakesInSavedCallsStartNothing(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", orders())
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"test"}, e2e.ExitUsage, "no saved calls in " + filepath.Join(w.Dir, "saved")},
		{[]string{"test", "missing"}, e2e.ExitUsage, "missing: file does not exist"},
		{[]string{"test", "--"}, e2e.ExitUsage, "needs a command"},
		{[]string{"test", "--from", "x", "--", "y"}, e2e.ExitUsage, "not both"},
		{[]string{"test", "--profile", "x", "--", "y"}, e2e.ExitUsage, "no profiles"},
		{[]string{"test", "--timeout", "0s"}, e2e.ExitUsage, "must be positive"},
		{[]string{"test", "--junit", "none/x.xml"}, e2e.ExitUsage, `folder "none" does not exist`},
	} {
		out := w.Run(c.args...)
		require.Equal(t, c.code, out.Code, c.args)
		require.Contains(t, out.Stderr, c.want, c.args)
	}
	save(t, w, map[string]string{"1.yaml": createCall, "2.yaml": "call: x\nexpect:\n  - {tyme: 2s}\nmore: 1\n", ".hidden.yaml": "!", "x.answer.json": "{"})
	require.NoError(t, os.Mkdir(filepath.Join(w.Dir, "saved", "3.yaml"), 0o700))
	require.NoError(t, os.Symlink(".", filepath.Join(w.Dir, "saved", "loop")))
	if runtime.GOOS == "linux" {
		require.NoError(t, exec.Command("mkfifo", filepath.Join(w.Dir, "saved", "pipe.yaml")).Run())
	}
	out := w.Run("test", "saved")
	require.Equal(t, e2e.ExitConfig, out.Code)
	require.Contains(t, out.Stderr, "saved/2.yaml:3: ")
	require.Contains(t, out.Stderr, "saved/2.yaml:4: ")
	if runtime.GOOS == "linux" {
		require.Contains(t, out.Stderr, "saved/pipe.yaml: is a pipe")
	}
	require.NotContains(t, out.Stderr, "hidden")
	require.Zero(t, b.Starts())

	out = w.Run("test", "saved/1.yaml", "--filter", "nothing-like-this")
	require.Equal(t, e2e.ExitUsage, out.Code)
	require.Contains(t, out.Stderr, "no saved call matches")
}

func TestSavedCallsSeeTheProfile(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", orders())
	w.Profiles = e2e.Obj{"few": e2e.Obj{"servers": []string{"shop"}, "tools": e2e.Obj{"deny": []string{"create"}}}}
	save(t, w, map[string]string{"1.yaml": createCall})
	require.Contains(t, w.Succeeds("test"), "1 passed")
	out := w.Run("test", "--profile", "few")
	require.Equal(t, e2e.ExitFailure, out.Code, out.Stderr)
	require.Contains(t, out.Stdout, "1.yaml:2: ")
	save(t, w, map[string]string{"1.yaml": "call: shop_create\nexpect: [{path: $.error.data.code, equals: TOOL_NOT_FOUND}]\n"})
	require.Contains(t, w.Succeeds("test", "--profile", "few"), "1 passed")
	require.Equal(t, e2e.ExitNotFound, w.Run("test", "--profile", "none").Code)
}
