package cli

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

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/daemon"
)

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
		{daemon.ErrNotRunning, 4, "goblin: no daemon is running for this config; start one with \"goblin serve\", or let a client do it\n"},
		{context.DeadlineExceeded, 6, "goblin: context deadline exceeded\n"},
		{os.ErrDeadlineExceeded, 6, "goblin: i/o timeout\n"},
		{context.Canceled, 1, "goblin: interrupted\n"},
		{&Error{Code: 7}, 7, ""},
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
	require.Equal(t, []string{"/opt/goblin", "stdio"}, a.ClientCommand(demo, "/opt/goblin"))
	require.Equal(t, []string{"goblin", "stdio"}, a.ClientCommand(demo, "/tmp/go-build12/goblin"), "a program of go run is gone later")
	require.Equal(t, []string{"goblin", "stdio"}, a.ClientCommand(demo, ""))
	require.Equal(t, []string{"/opt/goblin", "stdio"}, a.ClientCommand(usual, "/opt/goblin"))
	other := &config.Config{Path: "/srv/it's mine/$x.yaml"}
	require.Equal(t, []string{"/my programs/goblin", "stdio", "--config", "/srv/it's mine/$x.yaml"}, a.ClientCommand(other, "/my programs/goblin"))
	a.Getenv = func(name string) string { return map[string]string{"XDG_CONFIG_HOME": "/cfg"}[name] }
	require.Equal(t, []string{"goblin", "stdio"}, a.ClientCommand(&config.Config{Path: "/cfg/goblin/config.yaml"}, ""))
	require.Equal(t, []string{"goblin", "stdio", "--config", usual.Path}, a.ClientCommand(usual, ""))
}

func TestABuildHasAVersion(t *testing.T) {
	require.Equal(t, "v9", BuildVersion("v9").Version)
	require.NotEmpty(t, BuildVersion("").Version)
}
