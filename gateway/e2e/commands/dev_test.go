//go:build e2e

package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const (
	toolA = `{"name": "a", "inputSchema": {"type": "object", "properties": {"y": {"type": "string"}}}}`
	toolB = `{"name": "b", "inputSchema": {"type": "object"}}`
	build = "grep -q syntax tools.js && { echo tools.js:1: no such word >&2; exit 3; }; cp tools.js built.json"
)

// source writes the source of a server: a script with these tools.
func source(t *testing.T, folder string, tools ...string) {
	t.Helper()
	put(t, filepath.Join(folder, "tools.js"), `{"name": "shop", "tools": [`+strings.Join(tools, ", ")+`]}`)
}

// put replaces a file as editors do.
func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".tmp", []byte(text), 0o600))
	require.NoError(t, os.Rename(path+".tmp", path))
}

// developed starts "goblin dev" on pipes in a folder of its own.
func developed(t *testing.T, flags ...string) (w *e2e.World, p *e2e.Program, out *e2e.Buffer) {
	t.Helper()
	w = e2e.NewWorld(t)
	w.Written, w.Config = true, ""
	w.Cwd = filepath.Join(w.Dir, "shop")
	require.NoError(t, os.Mkdir(w.Cwd, 0o700))
	source(t, w.Cwd, toolA)
	out = new(e2e.Buffer)
	p = w.Start(func(cmd *exec.Cmd) { cmd.Stdout = out }, append(append([]string{"dev"}, flags...), "--", e2e.TestServer, "built.json")...)
	return w, p, out
}

func shows(t *testing.T, out *e2e.Buffer, texts ...string) {
	t.Helper()
	for _, text := range texts {
		e2e.Eventually(t, text+" after\n"+out.String(), func() bool { return strings.Contains(out.String(), text) })
	}
}

func TestDevBuildsRestartsAndComparesOnPipes(t *testing.T) {
	t.Parallel()
	w, p, out := developed(t, "--build", build)
	shows(t, out, "watching 1 file in "+w.Cwd, "building: "+build, "started in", ": 1 tool\n")

	shows(t, &p.Stderr, "press Ctrl-C to stop")
	config := regexp.MustCompile(`--config (\S+)"`).FindStringSubmatch(p.Stderr.String())
	require.NotNil(t, config, p.Stderr.String())
	editor := w.Pipe("stdio", "--config", config[1])
	editor.Init()
	require.Equal(t, []string{"dev_a"}, editor.Names("tools"))
	require.Equal(t, `shop:a:{}`, editor.CallText("dev_a", e2e.Obj{}))

	put(t, filepath.Join(w.Cwd, "tools.js"), "syntax error")
	shows(t, out, "build failed after ", ": exit status 3\n  tools.js:1: no such word\n")
	require.Equal(t, `shop:a:{}`, editor.CallText("a", e2e.Obj{}), "the process before runs")

	required := strings.Replace(toolA, `"properties"`, `"required": ["y"], "properties"`, 1)
	source(t, w.Cwd, required, toolB)
	shows(t, out, "restarted in ", ": +1 ~1\n", "  ~ tool a: argument \"y\" is now required\n", "  + tool b\n")
	require.Equal(t, `shop:b:{}`, editor.CallText("dev_b", e2e.Obj{}), "the editor's connection stays")
	require.Equal(t, []string{"dev_a", "dev_b"}, editor.Names("tools"))

	source(t, w.Cwd, required)
	shows(t, out, ": -1\n  - tool b\n")
	p.Signal(syscall.SIGINT)
	require.Zero(t, p.Ends(e2e.Patience))
	editor.CallUntilItWorks("a") // its client starts a daemon
	require.Contains(t, editor.CallText("a", e2e.Obj{"y": ""}), "shop:a:")
	editor.Close()
	require.Empty(t, w.Survivors(e2e.TestServer, e2e.Patience, nil))
}

func TestDevStopsABuildThatRunsAtCtrlC(t *testing.T) {
	t.Parallel()
	w, p, out := developed(t, "--build", "trap '' TERM; echo $$ > pid; sleep 1000; sleep 1000")
	shows(t, out, "building: ")
	e2e.Eventually(t, "the build", func() bool { _, err := os.Stat(filepath.Join(w.Cwd, "pid")); return err == nil })
	p.Signal(syscall.SIGINT)
	require.Zero(t, p.Ends(e2e.Patience))
	require.Empty(t, w.Survivors("sleep", e2e.Patience, nil))
}

func TestDevPrintsTheStderrOfAServerThatDoesNotStartOnce(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Written, w.Config, w.Cwd = true, "", w.Dir
	p := w.Start(nil, "dev", "--", "sh", "-c", "echo broken >&2; echo >> starts; exit 1")
	e2e.Eventually(t, "several starts", func() bool {
		starts, _ := os.ReadFile(filepath.Join(w.Cwd, "starts"))
		return len(starts) > 3
	})
	p.Signal(syscall.SIGINT)
	require.Zero(t, p.Ends(e2e.Patience))
	require.Equal(t, 1, strings.Count(p.Stderr.String(), "dev: broken\n"), p.Stderr.String())
}

func TestDevRunsMarkedSavedCalls(t *testing.T) {
	t.Parallel()
	w, _, out := developed(t, "--build", build)
	require.NoError(t, os.Mkdir(filepath.Join(w.Cwd, "saved"), 0o700))
	for name, text := range map[string]string{
		"one.yaml":   "call: a\ndev: true\nexpect:\n  - {path: \"$.content[0].text\", matches: shop}\n",
		"two.yaml":   "call: dev_b\ndev: true\n",
		"three.yaml": "call: gone\n",
	} {
		put(t, filepath.Join(w.Cwd, "saved", name), text)
	}
	shows(t, out, "started in")
	source(t, w.Cwd, toolA, toolB)
	shows(t, out, "saved calls: 2 passed, 0 failed\n")
	source(t, w.Cwd, toolA)
	shows(t, out, "saved calls: 1 passed, 1 failed\n  saved/two.yaml: line 1: unknown tool \"dev_b\"")
}

func TestSecretsStayHiddenInStoredAnswersOfRebuiltServers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	answer := e2e.Obj{"content": []e2e.Obj{{"type": "text", "text": "key hunter22"}}}
	w.Backend("shop", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("a")}, "calls": e2e.Obj{"a": answer}}, e2e.Obj{
		"env": e2e.Obj{"API_KEY": "hunter22"}, "cwd": w.Dir, "watch": "*.txt",
	})
	save(t, w, map[string]string{
		"1.yaml": "call: shop_a\ndev: true\nexpect:\n  - {same: true}\n", "1.answer.json": `{"content": [{"type": "text", "text": "key [hidden]"}]}`,
	})
	p := w.Start(nil, "serve", "--listen", "127.0.0.1:0")
	shows(t, &p.Stderr, "started: 1 tool")
	put(t, filepath.Join(w.Dir, "x.txt"), "changed")
	shows(t, &p.Stderr, "saved calls: 1 passed, 0 failed")
}

func TestASecondDevUsesTheFirst(t *testing.T) {
	t.Parallel()
	w, p, out := developed(t, "--build", build)
	shows(t, out, "started in")
	second := w.Run("dev", "--build", "echo other; "+build, "--", e2e.TestServer, "built.json")
	require.Equal(t, e2e.ExitFailure, second.Code)
	require.Contains(t, second.Stderr, "this command is already running (pid ")
	shows(t, out, "building: echo other; ")
	p.Signal(syscall.SIGINT)
	require.Zero(t, p.Ends(e2e.Patience))
}

func TestDevRejectsWrongArguments(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Written, w.Config = true, ""
	for _, c := range []struct{ args, want string }{
		{"", "dev needs a command after --"},
		{"--watch a[ -- x", `--watch: pattern "a[" is not valid`},
		{"--watch /etc -- x", `must be relative to the server's folder`},
		{"--name goblin -- x", "--name must be letters"},
		{"--listen 0.0.0.0:1 -- x", "--listen: "},
		{"--config c.yaml -- x", "dev reads no config"},
	} {
		out := w.Run(append([]string{"dev"}, strings.Fields(c.args)...)...)
		require.Equal(t, e2e.ExitUsage, out.Code, c.args)
		require.Contains(t, out.Stderr, c.want)
	}
}
