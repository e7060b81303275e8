package doctor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/doctor"
	"goblin/registry/report"
)

var tool = obj{"name": "stat", "inputSchema": obj{"type": "object", "properties": obj{"path": obj{"type": "string"}}}}

func tools(all ...any) obj { return obj{"name": "fake", "tools": all} }

func withSchema(s any) obj { return tools(obj{"name": "stat", "inputSchema": s}) }

func TestAHealthyLocalServerPassesEveryCheck(t *testing.T) {
	t.Parallel()
	s := tools(tool)
	s["prompts"] = []any{obj{"name": "p"}}
	r := examine(t, script(t, s))
	require.Equal(t, report.OK, r.State, "%v", r.Checks)
	require.Equal(t, []string{"command ok", "runs ok", "stdout ok", "handshake ok", "lists ok", "schemas ok", "limits ok"}, outline(r))
	require.Equal(t, "1 tool, 1 prompt", r.Checks[4].Text)
}

// Some servers list only what the client supports.
func TestAServerIsToldTheAbilitiesThatTheGatewayTells(t *testing.T) {
	t.Parallel()
	for whose, roots := range map[config.RootsFrom]bool{"": true, config.NoRoots: false} {
		s := tools(tool)
		log := filepath.Join(t.TempDir(), "log")
		s["log"] = log
		if roots {
			s["on"] = obj{"tools/list": []any{obj{"do": "request", "method": "roots/list"}, obj{"do": "result", "result": obj{"tools": s["tools"]}}}}
		}
		server := script(t, s)
		server.Roots = whose
		require.Equal(t, report.OK, examine(t, server, func(o *doctor.Options) {
			o.Config.Gateway.Roots = []config.Root{{URI: "file:///w", Name: "w"}, {URI: "file:///v"}}
		}).State)
		told, err := os.ReadFile(log)
		require.NoError(t, err)
		require.Contains(t, string(told), `"sampling":{"context":{},"tools":{}}`)
		require.Contains(t, string(told), `"elicitation":{"form":{},"url":{}}`)
		require.Equal(t, roots, strings.Contains(string(told), `"roots":{"listChanged":true}`))
		require.Equal(t, roots, strings.Contains(string(told), `"result":{"roots":[{"uri":"file:///w","name":"w"},{"uri":"file:///v"}]}`), string(told))
	}
}

// Each check has a server that fails it.
func TestTheChecksOfALocalServerStopAtWhatIsBroken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("x"), 0o600))
	on := func(key string, acts ...any) obj {
		s := tools(tool)
		s["on"] = obj{key: acts}
		return s
	}
	sh := func(line string) config.Server { return config.Server{Command: "/bin/sh", Args: []string{"-c", line}} }
	for name, tt := range map[string]struct {
		server config.Server
		check  string
		text   string
		fix    string
	}{
		"a variable is not set": {
			config.Server{Problem: "goblin.yaml:3: ${X} is not set; set it"}, "config", "${X} is not set", "set it",
		},
		"no such command":           {config.Server{Command: "no-such-program"}, "command", `"no-such-program" not found in PATH (`, "full path"},
		"no runtime":                {config.Server{Command: "dnx"}, "command", "not found in PATH", "install the .NET SDK"},
		"arguments in the command":  {config.Server{Command: "sh -c x"}, "command", "no program", "write command: sh and args: [-c, x]"},
		"no such file":              {config.Server{Command: filepath.Join(dir, "gone")}, "command", "no file", "fix the path"},
		"a folder":                  {config.Server{Command: dir}, "command", "is a folder", "program in it"},
		"not executable":            {config.Server{Command: plain}, "command", "is not executable", "chmod +x " + plain},
		"no folder to run in":       {config.Server{Command: "/bin/sh", Cwd: filepath.Join(dir, "gone")}, "cwd", "no folder", "cwd"},
		"an interpreter is missing": {config.Server{Command: executable(t, filepath.Join(dir, "script"), "#!/no/such/interpreter -x\n")}, "runs", "its interpreter /no/such/interpreter -x is missing", "first line"},
		"no program":                {config.Server{Command: executable(t, filepath.Join(dir, "data"), "\x01\x02\x03")}, "runs", "not a program for this machine", "build for"},
		"it ends at once":           {sh("echo boom >&2; exit 3"), "runs", "exit status 3; output: boom", "/bin/sh -c 'echo boom >&2; exit 3'"},
		"it ends without a word":    {sh("exit 0"), "runs", "the process exited", "run it yourself"},
		"it prints its help":        {sh("echo usage: x; exit 2"), "runs", "output: usage: x", "run it yourself"},
		"a banner and nothing else": {with(sh("echo 'Welcome to \033[31mX'; cat >/dev/null"), 500*time.Millisecond), "stdout", `"Welcome to \x1b[31mX"`, "a missing flag"},
		"it says nothing":           {with(sh("cat >/dev/null"), 300*time.Millisecond), "handshake", "did not answer initialize within 300ms", "raise startup_timeout"},
		"it refuses the handshake":  {script(t, on("initialize", obj{"do": "error", "error": obj{"code": -32000, "message": "no licence"}})), "handshake", "no licence", "args"},
		"it refuses its list":       {script(t, on("tools/list", obj{"do": "error", "error": obj{"code": -32000, "message": "no database"}})), "lists", "tools/list failed: no database", "authors"},
		"it dies of its list":       {script(t, on("tools/list", obj{"do": "crash", "code": 4})), "lists", "exit status 4", "run it yourself"},
		"an unknown type":           {script(t, withSchema(obj{"type": "object", "properties": obj{"n": obj{"type": "int"}}})), "schemas", `inputSchema.n: unknown type "int"`, "deny"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := examine(t, tt.server)
			c := last(t, r)
			require.Equal(t, report.Broken, r.State, "%v", r.Checks)
			require.Equal(t, tt.check, c.Name, "%v", r.Checks)
			require.Equal(t, report.Broken, c.State)
			require.Contains(t, c.Text, tt.text)
			require.Contains(t, c.Fix, tt.fix)
			for _, before := range r.Checks[:len(r.Checks)-1] {
				require.NotEqual(t, report.Broken, before.State)
			}
		})
	}
}

func with(s config.Server, startup time.Duration) config.Server {
	s.StartupTimeout = startup
	return s
}

// Problems of some clients only do not stop the checks.
func TestWhatOnlySomeClientsMindIsAWarning(t *testing.T) {
	t.Parallel()
	banner := tools(tool)
	banner["on"] = obj{"start": []any{obj{"do": "write", "text": "Listening\x1b]0;x\x07 on stdio"}}}
	for name, tt := range map[string]struct {
		script obj
		check  string
		text   string
	}{
		"a banner before the messages": {banner, "stdout", `"Listening\x1b]0;x\a on stdio"`},
		"a choice at the top":          {withSchema(obj{"type": "object", "anyOf": []any{obj{"required": []any{"a"}}}}), "schemas", "anyOf at the top level"},
		"an array of nothing":          {withSchema(obj{"type": "object", "properties": obj{"a": obj{"type": "array"}}}), "schemas", "inputSchema.a: array without items"},
		"a property with a blank":      {withSchema(obj{"type": "object", "properties": obj{"a b": obj{"type": "string"}}}), "schemas", `property "a b"`},
		"no schema":                    {tools(obj{"name": "stat"}), "definitions", `changed to satisfy clients: tool "stat": inputSchema set to {"type":"object"}`},
		"a schema of no object":        {withSchema(obj{"type": "string"}), "definitions", `tool "stat": inputSchema.type changed to "object"`},
		"a long description":           {tools(obj{"name": "stat", "inputSchema": obj{"type": "object"}, "description": strings.Repeat("word ", 1000)}), "limits", `tool "stat"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := examine(t, script(t, tt.script))
			require.Equal(t, report.Warning, r.State, "%v", r.Checks)
			found := r.Findings()
			require.Len(t, found, 1)
			require.Equal(t, tt.check, found[0].Name)
			require.Contains(t, found[0].Text, tt.text)
			require.NotEmpty(t, found[0].Fix)
			require.Contains(t, last(t, r).Name, "limits")
		})
	}
}

func TestALongCommandLineShowsNoPartOfASecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2secret"
	line := "exit 3 # " + strings.Repeat(secret+" ", 60)
	c := last(t, examine(t, config.Server{Command: "/bin/sh", Args: []string{"-c", line}}, func(o *doctor.Options) {
		o.Redact = func(s string) string { return strings.ReplaceAll(s, secret, "[hidden]") }
	}))
	require.Contains(t, c.Fix, "exit 3 # [hidden]")
	require.NotRegexp(t, `h\w*…`, c.Fix, "not even at the cut")
}

func TestAReportHoldsNothingThatReferencesStandFor(t *testing.T) {
	t.Parallel()
	const secret = "hunter2secret"
	cfg, err := config.Parse("/goblin.yaml", []byte(`servers: {it: {command: /bin/sh, args: ["-c", "echo no ${keyring:k} >&2; exit 3"], cwd: /}}`), os.LookupEnv)
	require.NoError(t, err)
	r := doctor.Server(t.Context(), doctor.Options{Config: cfg, Resolve: func(context.Context, string, []string, string) (string, error) {
		return secret, nil
	}}, &cfg.Servers[0])
	require.Equal(t, "${keyring:k}", r.Checks[0].Text)
	c := last(t, r)
	require.Contains(t, c.Text, "output: no [hidden]")
	require.NotContains(t, fmt.Sprint(r.Checks), secret)
}

func TestAProgramRunsInTheFolderOfTheConfig(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	c := last(t, examine(t, config.Server{Command: "/bin/sh", Args: []string{"-c", "pwd >&2; exit 3"}}, func(o *doctor.Options) {
		o.Config.Path = filepath.Join(dir, "goblin.yaml")
	}))
	require.Contains(t, c.Text, "output: "+dir)
}

func TestNamesThatClientsRefuseAreBroken(t *testing.T) {
	t.Parallel()
	long := script(t, tools(obj{"name": strings.Repeat("long", 20), "inputSchema": obj{"type": "object"}}))
	r := examine(t, long)
	require.Equal(t, report.OK, r.State)
	require.Contains(t, last(t, r).Text, "1 shortened, such as it_longlong")
	c := last(t, examine(t, long, func(o *doctor.Options) { o.Config.Gateway.MaxName = 120 }))
	require.Equal(t, report.Broken, c.State)
	require.Contains(t, c.Text, "too long for Claude Code")
	require.Contains(t, c.Fix, "max_name: 51")
}

// The test changes PATH, so it is not parallel.
func TestAProgramThatOnlyTheShellFinds(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	tools := filepath.Join(home, ".nvm/versions/node/v22.1.0/bin")
	executable(t, filepath.Join(tools, "mcp-only-here"), "#!/bin/sh\nexit 1\n")
	fix := `env: {PATH: "` + tools + `:${PATH}"}`

	c := last(t, examine(t, config.Server{Command: "mcp-only-here"}))
	require.Equal(t, report.Broken, c.State)
	require.Contains(t, c.Fix, fix, "not in PATH, but in the usual folder of such programs")

	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	r := examine(t, config.Server{Command: "mcp-only-here"})
	require.Equal(t, []string{"command warning", "runs broken"}, outline(r))
	require.Contains(t, r.Checks[0].Text, "clients started from the desktop don't have "+tools)
	require.Contains(t, r.Checks[0].Fix, fix)

	r = examine(t, config.Server{Command: "mcp-only-here", Env: map[string]string{"PATH": tools + ":/bin"}})
	require.Equal(t, report.OK, r.Checks[0].State, "the config has the path")
	r = examine(t, config.Server{Command: "sh", Args: []string{"-c", "exit 1"}})
	require.Equal(t, report.OK, r.Checks[0].State, "in every PATH")
}

func TestNoChildIsLeftBehind(t *testing.T) {
	t.Parallel()
	pid := filepath.Join(t.TempDir(), "pid")
	s := config.Server{Command: "/bin/sh", Args: []string{"-c", "echo $$ > " + pid + "; while :; do sleep 1; done"}, StartupTimeout: 300 * time.Millisecond}
	require.Equal(t, "handshake", last(t, examine(t, s)).Name)
	text, err := os.ReadFile(pid)
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	child, err := os.FindProcess(n)
	require.NoError(t, err)
	require.ErrorIs(t, child.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

func TestAllServersAreCheckedInTheOrderOfTheConfig(t *testing.T) {
	t.Parallel()
	o := doctor.Options{Version: "test", Config: &config.Config{Path: filepath.Join(t.TempDir(), "c.yaml"), Gateway: config.Gateway{MaxName: 51}}}
	for _, name := range []string{"z", "slow", "off", "a", "b", "c"} {
		s := script(t, tools(tool))
		if name == "slow" {
			s = script(t, obj{"tools": []any{tool}, "on": obj{"initialize": []any{obj{"do": "delay", "ms": 100}}}})
		}
		s.Name, s.Type, s.StartupTimeout, s.Timeout, s.Disabled = name, config.Stdio, 20*time.Second, 20*time.Second, name == "off"
		o.Config.Servers = append(o.Config.Servers, s)
	}
	var got []string
	for _, r := range doctor.Servers(t.Context(), o) {
		got = append(got, r.Server+" "+string(r.State))
	}
	require.Equal(t, []string{"z ok", "slow ok", "off disabled", "a ok", "b ok", "c ok"}, got)

	off := doctor.Server(t.Context(), o, &o.Config.Servers[2])
	require.Equal(t, report.Warning, off.State, "a disabled server is checked if it is named")
	require.Equal(t, "config", last(t, off).Name)
}

func TestSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	r := examine(t, config.Server{Command: "/bin/sh", Args: []string{"-c", "echo token hunter2 >&2; exit 1 # hunter2"}},
		func(o *doctor.Options) {
			o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "•••") }
		})
	c := last(t, r)
	require.Contains(t, c.Text, "token •••")
	require.NotContains(t, c.Text+c.Fix, "hunter2")
}
