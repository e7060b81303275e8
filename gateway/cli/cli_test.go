package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
		{daemon.ErrNotRunning, 4, "goblin: no daemon is running for this config; start one with \"goblin serve\", or connect a client\n"},
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
	require.Equal(t, []string{"goblin", "stdio"}, a.ClientCommand(demo, "/tmp/go-build12/goblin"), "go run removes its program")
	require.Equal(t, []string{"goblin", "stdio"}, a.ClientCommand(demo, ""))
	require.Equal(t, []string{"/opt/goblin", "stdio"}, a.ClientCommand(usual, "/opt/goblin"))
	other := &config.Config{Path: "/srv/it's mine/$x.yaml"}
	require.Equal(t, []string{"/my programs/goblin", "stdio", "--config", "/srv/it's mine/$x.yaml"}, a.ClientCommand(other, "/my programs/goblin"))
	a.Getenv = func(name string) string { return map[string]string{"XDG_CONFIG_HOME": "/cfg"}[name] }
	require.Equal(t, []string{"goblin", "stdio"}, a.ClientCommand(&config.Config{Path: "/cfg/goblin/config.yaml"}, ""))
	require.Equal(t, []string{"goblin", "stdio", "--config", usual.Path}, a.ClientCommand(usual, ""))
}

func TestABuildHasAVersion(t *testing.T) {
	release, development := BuildVersion("v9"), BuildVersion("")
	require.Equal(t, "9", release.Version)
	require.Empty(t, release.Build, "a release is identified by its version")
	require.Equal(t, "9", release.Handshake())
	require.Equal(t, Release, development.Version)
	require.NotEmpty(t, development.Build)
	require.NotEqual(t, BuildVersion(Release).Handshake(), development.Handshake(), "they must not share a daemon")
}

// Release notes come from the newest section with a date.
func TestTheChangelogHasTheRelease(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	newest := regexp.MustCompile(`(?m)^## \[([^\]]+)\] - \d{4}-\d\d-\d\d$`).FindSubmatch(text)
	require.NotNil(t, newest)
	require.Equal(t, Release, string(newest[1]), "set Release in version.go, or the section of CHANGELOG.md")
}

func TestPseudoVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"v0.0.0-20261127145246-09ac0d17ec4b":       true,
		"v1.2.4-0.20261127145246-09ac0d17ec4b":     true,
		"v1.2.4-rc1.0.20261127145246-09ac0d17ec4b": true,
		"v1.2.3":              false,
		"v1.2.3-rc1":          false,
		"v1.2.3-09ac0d17ec4b": false,
	} {
		require.Equal(t, want, isPseudoVersion(version), version)
	}
}

// The format of a build ID depends on the system.
func TestBuildIDs(t *testing.T) {
	elf := "\x7fELF\x02\x01" + strings.Repeat("\x00", 300)
	for name, c := range map[string]struct{ head, want string }{
		"ELF":                     {elf + "\x04\x00\x00\x00\x07\x00\x00\x00\x04\x00\x00\x00Go\x00\x00a/b/c/d\x00\x04", "a/b/c/d"},
		"ELF, big-endian":         {elf + "\x00\x00\x00\x04\x00\x00\x00\x07\x00\x00\x00\x04Go\x00\x00a/b/c/d\x00\x04", "a/b/c/d"},
		"ELF, cut off":            {elf + "\x04\x00\x00\x00\xff\xff\xff\xff\x04\x00\x00\x00Go\x00\x00a/b", "a/b"},
		"ELF without ID":          {elf, ""},
		"Mach-O or PE":            {"MZ\x90\xff Go build ID: \"a/b/c/d\"\n \xffcode", "a/b/c/d"},
		"Mach-O or PE without ID": {"MZ\x90code", ""},
		"empty":                   {"", ""},
	} {
		require.Equal(t, c.want, goBuildID([]byte(c.head)), name)
	}

	self, err := os.Executable()
	require.NoError(t, err)
	want, err := exec.Command("go", "tool", "buildid", self).Output()
	require.NoError(t, err)
	own := buildID("")
	require.Len(t, own, shortBuildID)
	require.Contains(t, string(want), "/"+own)
	require.Equal(t, "3a6b32c5-"+own, buildID("3a6b32c57a1f9d0e"))
}
