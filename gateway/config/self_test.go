package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

func TestGoblinsOwnEntryIsLeftOut(t *testing.T) {
	own, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	link := filepath.Join(folder, "mcp")
	require.NoError(t, os.Symlink(own, link))
	other := filepath.Join(folder, "other")
	require.NoError(t, os.WriteFile(other, []byte("#!/bin/sh\n"), 0o700))
	t.Setenv("PATH", folder)
	for _, c := range []struct {
		command, args string
		self          bool
	}{
		{"goblin", `[]`, true},
		{"/opt/bin/goblin", `["stdio"]`, true},
		{"goblin.exe", `["serve", "--listen", ":1"]`, true},
		{"goblin", `["--config", "x.json", "stdio"]`, true},
		{"goblin", `["--config=x.json"]`, true},
		{"goblin", `["--theme", "dark", "--tui"]`, true},
		{"goblin", `["--tui-tty", "/dev/pts/1"]`, true},
		{own, `["stdio", "--config", "x.json"]`, true},
		{own, `["daemon"]`, true},
		{own, `["host"]`, true},
		{link, `["stdio"]`, true},
		{"mcp", `[]`, true}, // found in PATH
		{own, `["demo-server", "clock"]`, false},
		{"goblin", `["demo-server", "clock"]`, false},
		{"goblin-server", `["stdio"]`, false},
		{other, `["stdio"]`, false},
		{"other", `[]`, false},
		{"nowhere", `[]`, false},
	} {
		entry := fmt.Sprintf("{\"command\": %s,\n \"args\": %s}", strconv.Quote(c.command), c.args)
		for name, src := range map[string]string{
			"c.json":      "{\"mcpServers\": {\"me\":\n " + entry + "}}",
			"goblin.yaml": "servers:\n  me: " + entry,
		} {
			cfg := parse(t, name, src)
			if !c.self {
				require.Empty(t, cfg.Servers[0].Problem, "%s %s", c.command, c.args)
				require.Empty(t, cfg.Warnings)
				continue
			}
			require.Equal(t, name+":2: this is Goblin itself, so it is disabled", cfg.Servers[0].Problem, "%s %s", c.command, c.args)
			require.True(t, cfg.Servers[0].Disabled, "disabled on purpose, not failed")
			require.Equal(t, []config.Problem{{File: name, Line: 2, Text: `server "me" is Goblin itself, so it is disabled`}}, cfg.Warnings)
		}
	}
}

func TestAnOwnEntryThatIsDisabledOrRemoteIsNoNews(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "c.json", `{"mcpServers": {"me": {"command": "goblin", "args": ["stdio"], "disabled": true}, "far": {"url": "http://goblin/mcp"}}}`)
	require.Empty(t, cfg.Warnings)
	require.Empty(t, cfg.Servers[1].Problem)
}

func TestAnOwnEntryUnderTheReservedNameIsToldOnce(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "c.json", `{"mcpServers": {"goblin": {"command": "/opt/bin/goblin", "args": ["stdio"]}, "a": {"command": "x"}}}`)
	require.Equal(t, []config.Problem{{File: "c.json", Line: 1, Text: `server "goblin" is Goblin itself, so it is disabled`}}, cfg.Warnings)
	require.Empty(t, cfg.Servers[1].Problem)
}

func TestAMistypedCommandIsNotAlsoMissing(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"comand: x":          `unknown key "comand" in server "a"; did you mean "command"?`,
		"endpoint: http://h": `unknown key "endpoint" in server "a"; did you mean "url"?`,
		"time_out: 5s": "unknown key \"time_out\" in server \"a\"; did you mean \"timeout\"?\n" +
			`goblin.yaml:1: server "a" needs "command" (a local program) or "url" (a remote server)`,
	} {
		_, err := config.Parse("goblin.yaml", []byte("servers: {a: {"+src+"}}"), env)
		require.EqualError(t, err, "goblin.yaml:1: "+want)
	}
}

func TestASpaceInACommandIsToldUnlessThereIsSuchAProgram(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "My Tools")
	require.NoError(t, os.Mkdir(folder, 0o700))
	program := filepath.Join(folder, "run")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700))
	cfg := parse(t, "goblin.yaml", "servers:\n  a: {command: "+program+"}\n  b: {command: "+program+" fast}\n  c: {command: echo hello world}")
	require.Equal(t, []config.Problem{
		{File: "goblin.yaml", Line: 3, Text: `"command" in server "b" contains a space; arguments belong in "args"`},
		{File: "goblin.yaml", Line: 4, Text: `"command" in server "c" contains a space; arguments belong in "args"`},
	}, cfg.Warnings)
}
