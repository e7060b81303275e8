package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/control"
	"goblin/gateway/downstream"
	"goblin/gateway/host"
)

func TestValidateTellsEveryMistake(t *testing.T) {
	const wrong = "servers:\n  a: {comand: x}\n  b: {command: [], url: 3}\nbogus: 1\n"
	got := try{config: wrong}.run(t, "validate")
	require.Equal(t, CodeConfig, got.code)
	require.Empty(t, got.out)
	require.Regexp(t, `(?m)^goblin: .*goblin\.yaml:2: unknown key "comand".*did you mean "command"\?$`, got.err)
	require.Regexp(t, `(?m)goblin\.yaml:3: `, got.err)
	require.Regexp(t, `(?m)goblin\.yaml:4: .*bogus`, got.err)

	got = try{config: wrong}.run(t, "validate", "--json")
	require.Equal(t, CodeConfig, got.code)
	require.Empty(t, got.err)
	report := decodeJSON(t, got.out).(map[string]any)
	require.Equal(t, false, report["valid"])
	require.GreaterOrEqual(t, len(report["errors"].([]any)), 3)
	require.EqualValues(t, 2, report["errors"].([]any)[0].(map[string]any)["line"])

	for _, args := range [][]string{{"list", "tools"}, {"call", "x"}, {"status"}, {"stop"}} {
		require.Equal(t, CodeConfig, try{config: wrong}.run(t, args...).code, "%v", args)
	}
}

func TestValidateOfAGoodConfigIsShort(t *testing.T) {
	const good = "servers:\n  a: {command: x}\n  b: {command: \"${SURELY_NOT_SET}\"}\n  c: {url: \"http://127.0.0.1:1\", disabled: true}\ngateway: {listen: \"127.0.0.1:99\", auth_token: t0ken-t0ken}\n"
	got := try{config: good}.run(t, "validate")
	require.Zero(t, got.code)
	require.Contains(t, got.out, "is fine but for 1 warning: 3 servers.\n")
	require.Contains(t, got.out, "c       http   disabled\n")
	require.Contains(t, got.out, "HTTP is served at http://127.0.0.1:99/mcp.\n")
	require.Regexp(t, `(?m)goblin\.yaml:3: warning: .*SURELY_NOT_SET`, got.err)

	report := decodeJSON(t, try{config: good}.run(t, "validate", "--json").out).(map[string]any)
	require.Equal(t, true, report["valid"])
	require.Len(t, report["servers"], 3)
	require.Len(t, report["warnings"], 1)

	require.Equal(t, string(config.Schema()), try{}.run(t, "validate", "--schema").out)
}

func TestWithoutAHostItsCommandsAreCode4(t *testing.T) {
	for _, args := range [][]string{{"status"}, {"stop"}, {"restart", "a"}} {
		got := try{}.run(t, args...)
		require.Equal(t, CodeConnect, got.code, "%v", args)
		require.Regexp(t, `^goblin: no host is running for .*goblin\.yaml; start one with "goblin serve --config .*goblin\.yaml", or let a client do it\n$`, got.err)
	}
}

func TestStatusTellsScreensFromClients(t *testing.T) {
	var out bytes.Buffer
	a := &App{Out: &out}
	since := time.Now()
	editor := control.Session{ID: "1", Transport: "socket", Client: "editor", Since: since}
	watch := control.Session{ID: "2", Transport: downstream.ScreenTransport, Client: "goblin", Since: since, Screen: control.Screen{Terminal: "xterm\x1b over SSH", Width: 120, Height: 35}}
	require.NoError(t, a.printStatus(control.Status{Sessions: []control.Session{editor, watch}}))
	require.Regexp(t, `(?s)CLIENT .*\neditor .*\n\nSCREEN +SIZE +SINCE\nxterm\\x1b over SSH  120x35  0 s ago\n$`, out.String())
	require.NotRegexp(t, `(?m)^goblin`, out.String())
	out.Reset()
	script := control.Session{ID: "3", Transport: downstream.ScreenTransport, Client: "goblin lua", Since: since}
	watch.Owner = true
	require.NoError(t, a.printStatus(control.Status{Sessions: []control.Session{watch, script}}))
	require.Contains(t, out.String(), "over SSH (the host's own)")
	require.Contains(t, out.String(), "goblin lua")
	out.Reset()
	require.NoError(t, a.printStatus(control.Status{Sessions: []control.Session{watch}}))
	require.Contains(t, out.String(), "No clients are connected.\n\nSCREEN")
	out.Reset()
	require.NoError(t, a.printStatus(control.Status{Sessions: []control.Session{editor}}))
	require.NotContains(t, out.String(), "SCREEN")
}

func TestVersion(t *testing.T) {
	require.Contains(t, try{}.run(t, "version").out, "goblin test (go1")
	require.Equal(t, "test", decodeJSON(t, try{}.run(t, "version", "--json").out).(map[string]any)["version"])
	require.Equal(t, "v9", BuildVersion("v9").Version)
	require.NotEmpty(t, BuildVersion("").Version)
}

func TestEveryCommandIsExplained(t *testing.T) {
	for _, c := range (&App{}).Commands() {
		require.NotEmpty(t, c.Short, c.Name())
		require.NotEmpty(t, c.Long, c.Name())
		require.NotEmpty(t, c.Example, c.Name())
		require.NotNil(t, c.Flags().Lookup("json"), c.Name())
		require.True(t, strings.HasPrefix(strings.TrimSpace(c.Example), "goblin "), c.Name())
	}
}

func TestExitCodes(t *testing.T) {
	tests := []struct {
		err  error
		want int
		says string
	}{
		{nil, 0, ""},
		{fmt.Errorf("write: %w", syscall.EPIPE), 0, ""},
		{errors.New("x\ny"), 1, "goblin: x\\ny\n"},
		{Fail(CodeUsage, "bad"), 2, "goblin: bad\n"},
		{errors.Join(Fail(CodeTimeout, "late"), nil), 6, "goblin: late\n"},
		{&config.Errors{Problems: []config.Problem{{File: "f", Line: 1, Text: "one"}, {File: "f", Line: 2, Text: "two"}}}, 3, "goblin: f:1: one\ngoblin: f:2: two\n"},
		{host.ErrNoHost, 4, "goblin: no host is running for this config; start one with \"goblin serve\", or let a client do it\n"},
		{context.DeadlineExceeded, 6, "goblin: context deadline exceeded\n"},
		{context.Canceled, 1, "goblin: interrupted\n"},
		{errTold(7), 7, ""},
	}
	for _, tt := range tests {
		var errs bytes.Buffer
		require.Equal(t, tt.want, (&App{Err: &errs}).Report(tt.err), "%v", tt.err)
		require.Equal(t, tt.says, errs.String())
	}
}

func secretive() *config.Config {
	return &config.Config{
		Gateway: config.Gateway{AuthToken: "gateway-token"},
		Servers: []config.Server{{
			Env:     map[string]string{"KEY": "env \"secret\"", "DEBUG": "true"},
			Headers: map[string]string{"Authorization": "Bearer header-secret", "X-Key": "plain-secret"},
			URL:     "https://user:url-password@example.com/mcp?key=query%20secret&v=1",
		}},
	}
}

func TestLogsHoldNoSecretsAndNoControlCharacters(t *testing.T) {
	file := filepath.Join(t.TempDir(), "goblin.log")
	cfg := secretive()
	cfg.Log = config.Log{File: file, Level: slog.LevelWarn}
	for range 2 {
		a := &App{Err: &bytes.Buffer{}, mask: config.NewMask(cfg)}
		logger, closer, err := a.Logger(cfg, a.Err)
		require.NoError(t, err)
		logger.Info("not at this level")
		logger.With("token", "gateway-token").WithGroup("g").Warn("failed plain-secret", "err", errors.New("env \"secret\" \x1b]0;x\x07"))
		require.NoError(t, closer.Close())
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), "\n"), "appended: %s", text)
	require.NotContains(t, string(text), "secret")
	require.NotContains(t, string(text), "gateway-token")
	require.NotContains(t, string(text), "\x1b")
	require.Contains(t, string(text), "token=[hidden]")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	cfg.Log.File = filepath.Join(file, "no")
	_, _, err = (&App{}).Logger(cfg, nil)
	require.Equal(t, CodeConfig, ExitCode(err))
}

func TestClientsGetACommandThatFindsTheConfig(t *testing.T) {
	a := &App{Getenv: func(name string) string { return map[string]string{"HOME": "/home/me"}[name] }}
	demo, usual := &config.Config{Demo: true}, &config.Config{Path: "/home/me/.config/goblin/config.yaml"}
	require.Equal(t, "/opt/goblin stdio", a.ClientCommand(demo, "/opt/goblin"))
	require.Equal(t, "goblin stdio", a.ClientCommand(demo, "/tmp/go-build12/goblin"), "a program of go run is gone later")
	require.Equal(t, "goblin stdio", a.ClientCommand(demo, ""))
	require.Equal(t, "/opt/goblin stdio", a.ClientCommand(usual, "/opt/goblin"))
	other := &config.Config{Path: "/srv/it's mine/$x.yaml"}
	require.Equal(t, `'/my programs/goblin' stdio --config '/srv/it'\''s mine/$x.yaml'`, a.ClientCommand(other, "/my programs/goblin"))
	a.Getenv = func(name string) string { return map[string]string{"XDG_CONFIG_HOME": "/cfg"}[name] }
	require.Equal(t, "goblin stdio", a.ClientCommand(&config.Config{Path: "/cfg/goblin/config.yaml"}, ""))
	require.Equal(t, "goblin stdio --config "+usual.Path, a.ClientCommand(usual, ""))
}

func TestSizesAreShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 12345: "12 kB", 999_600: "1.0 MB", 5_000_000_000: "5.0 GB"} {
		require.Equal(t, want, size(n))
	}
}
