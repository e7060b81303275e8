//go:build e2e

package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// sound returns a server without defects.
func sound(changes ...e2e.Obj) e2e.Obj {
	refused := e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32602, "message": "unknown"}}))
	return e2e.Merge(e2e.Obj{
		"version": "2025-11-25", "on": e2e.Obj{"tools/call": refused},
		"tools": []e2e.Obj{{"name": "echo", "description": "Returns its input", "inputSchema": e2e.Obj{"type": "object"}, "annotations": e2e.Obj{"readOnlyHint": true}}},
	}, changes)
}

var nameless = e2e.Obj{"tools": []e2e.Obj{{"name": "echo", "inputSchema": e2e.Obj{"type": "object"}, "annotations": e2e.Obj{"readOnlyHint": true}}}}

func TestCheckExitCodesAndOutputs(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("sound", sound())
	w.Backend("warned", sound(nameless))
	w.Backend("broken", sound(e2e.Obj{"tools": []e2e.Obj{{"name": "a b"}}}))
	w.Backend("evil", sound(e2e.Obj{"tools": []e2e.Obj{{"name": "##[error]x\n::error::x"}}}))
	w.Backend("gone", sound(), e2e.Obj{"command": "no-such-program"})
	w.Backend("evil-end", sound(), e2e.Obj{"command": "sh", "args": []string{"-c", "echo '##[add-mask]x' >&2; exit 1"}})

	out := w.Run("check", "sound")
	require.Zero(t, out.Code, out.Stdout+out.Stderr)
	require.Regexp(t, `^sound: 0 errors, 0 warnings, 0 notes; sound 1\.0\.0; 1 tool, \d+ tokens; ready after .*\n$`, out.Stdout)
	require.Empty(t, out.Stderr)

	require.Zero(t, w.Run("check", "warned").Code)
	out = w.Run("check", "warned", "--strict")
	require.Equal(t, 1, out.Code)
	require.Contains(t, out.Stdout, "Warnings\n  description/missing  tool echo: no description\n    models choose tools by their descriptions; fix: describe ")

	file := filepath.Join(w.Dir, "check.sarif")
	out = w.Run("check", "broken", "--json", "--sarif", file)
	require.Equal(t, 1, out.Code, out.Stderr)
	var found struct {
		Errors   int
		Findings []struct{ Rule, Level string }
	}
	require.NoError(t, json.Unmarshal([]byte(out.Stdout), &found))
	require.Positive(t, found.Errors)
	require.Equal(t, "error", found.Findings[0].Level)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	place := e2e.At(text, "runs", 0, "results", 0, "locations", 0, "physicalLocation")
	require.Equal(t, "goblin.yaml", filepath.Base(e2e.Str(place, "artifactLocation", "uri")))
	config, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	line, err := strconv.Atoi(string(e2e.At(place, "region", "startLine")))
	require.NoError(t, err)
	require.Contains(t, strings.Split(string(config), "\n")[line-1], "broken")

	w.Env = append(w.Env, "GITHUB_ACTIONS=true")
	for _, args := range [][]string{{"check", "evil"}, {"check", "evil", "--json"}, {"check", "evil-end"}, {"check", "evil-end", "--json"}, {"doctor", "evil-end"}} {
		out = w.Run(args...)
		require.NotRegexp(t, `(?m)##\[|^\s*::`, out.Stdout+out.Stderr)
		require.Contains(t, out.Stdout, "[", args)
	}
	w.Env = w.Env[:len(w.Env)-1]

	out = w.Run("check", "gone")
	require.Equal(t, 4, out.Code)
	require.Regexp(t, `command +"no-such-program" not found in PATH`, out.Stdout)
	require.Regexp(t, `^goblin: server "gone" cannot be checked: "no-such-program" not found in PATH .*; install it`, out.Stderr)

	out = w.Run("check", "soundd")
	require.Equal(t, 7, out.Code)
	require.Contains(t, out.Stderr, `did you mean "sound"?`)
	require.Equal(t, 2, w.Run("check").Code)
	require.Equal(t, 2, w.Run("check", "--").Code)
	require.Equal(t, 2, w.Run("check", "ftp://example.com").Code)
	require.Equal(t, 2, w.Run("check", "sound", "--sarif", "none/x.sarif").Code)
	require.NotContains(t, w.Run("check", "http://a /${HOME}").Stderr, ";\n")
	require.Equal(t, 3, w.Run("check", "x", "--config", filepath.Join(w.Dir, "none.yaml")).Code)
}

func TestCheckOfACommandHasTheShellsEnvironmentAndFolder(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	_, path := w.Fake("it", sound())
	w.Cwd = w.Dir
	e2e.WriteProgram(t, filepath.Join(w.Dir, "server.sh"), `#!/bin/sh
test "$1 $KEY" = '${HOME} of the shell' && exec `+e2e.TestServer+` `+path)
	out := w.Run("check", "--sarif", "check.sarif", "--", "./server.sh", "${HOME}")
	require.Equal(t, 4, out.Code, "without the variable")
	text, err := os.ReadFile(filepath.Join(w.Dir, "check.sarif"))
	require.NoError(t, err)
	require.Equal(t, "server.sh", e2e.Str(text, "runs", 0, "results", 0, "locations", 0, "physicalLocation", "artifactLocation", "uri"))
	w.Env = append(w.Env, "KEY=of the shell")
	out = w.Run("check", "--", "./server.sh", "${HOME}")
	require.Zero(t, out.Code, out.Stdout+out.Stderr)
	require.Contains(t, out.Stdout, "server: 0 errors")
}

func TestCheckOfARemoteServer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Remote("remote", "/mcp", sound(nameless, e2e.Obj{"prompts": []e2e.Obj{{"name": "p", "description": "x"}}}))
	w.Remote("old", "/sse", sound(nameless), e2e.Obj{"type": "sse"})
	w.Remote("modern", "/mcp", sound(nameless, e2e.Obj{"era": "modern"}))
	for _, name := range []string{"remote", "old", "modern"} {
		out := w.Run("check", name)
		require.Zero(t, out.Code, "%s: %s", name, out.Stdout+out.Stderr)
		require.Contains(t, out.Stdout, "description/missing  tool echo", name)
		require.Contains(t, out.Stdout, "1 tool, ", name)
	}
	require.Contains(t, w.Run("check", "remote").Stdout, "answer/unknown-name  prompts/get")
	out := w.Run("check", w.Backends[0].Conf["url"].(string))
	require.Zero(t, out.Code, out.Stderr)
	require.Contains(t, out.Stdout, "server: 0 errors")
	out = w.Run("check", "http://127.0.0.1:1/mcp")
	require.Equal(t, 4, out.Code)
	require.Contains(t, out.Stderr, "no connection to 127.0.0.1:1")
}

func TestCheckOfAServerWithTheStatelessProtocolOnly(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("modern", sound(nameless, e2e.Obj{"era": "modern"}))
	out := w.Run("check", "modern", "--json")
	require.Zero(t, out.Code, out.Stdout+out.Stderr)
	require.Equal(t, "2026-07-28", e2e.Str(json.RawMessage(out.Stdout), "protocolVersion"))
	var rules []string
	for _, f := range e2e.Each(json.RawMessage(out.Stdout), "findings") {
		rules = append(rules, e2e.Str(f, "rule"))
	}
	require.Equal(t, []string{"description/missing"}, rules)
}

func TestCheckStopsAllProcessesOnAnInterrupt(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("stuck", sound(e2e.Obj{"ignoreTerm": true, "ignoreEOF": true, "on": e2e.Obj{"tools/list": e2e.Actions(e2e.Do("grandchild"), e2e.Do("hang"))}}))
	p := w.Start(nil, "check", "stuck")
	b.WaitEvent("wait", "hang")
	p.Signal(syscall.SIGINT)
	require.NotZero(t, p.Ends(e2e.Patience))
	b.Wait("the exit of the server", func() bool { return len(b.Procs) == 1 && b.Procs[0].Gone })
	require.Empty(t, w.Processes("testserver"))
}

func TestCheckReportsWhyTheSuiteDidNotRun(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("sound", sound())
	w.Env = append(w.Env, "PATH="+w.Dir)
	for _, c := range []struct{ node, want string }{
		{"", "npx was not found in PATH; install Node.js 22 or later"},
		{"v20.1.0", "Node.js v20.1.0 is too old for the suite; install Node.js 22 or later"},
		{"v22.0.0", "npm error code E404"},
	} {
		if c.node != "" {
			program(t, w, "node", "echo "+c.node)
			program(t, w, "npx", "echo npm error code E404; echo npm notice; exit 1")
		}
		out := w.Run("check", "sound", "--conformance")
		require.Zero(t, out.Code, out.Stderr)
		require.Contains(t, out.Stdout, "Conformance\n  not run: "+c.want+"\n")
	}
}

// program puts a shell script into the folder of w.
func program(t *testing.T, w *e2e.World, name, script string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(w.Dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
}
