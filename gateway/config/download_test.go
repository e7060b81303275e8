package config_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

func TestCommandsThatMayDownloadTheServerHaveTwoMinutesToStart(t *testing.T) {
	t.Parallel()
	const usual, long = 20 * time.Second, 2 * time.Minute
	for entry, want := range map[string]time.Duration{
		`command: npx, args: [-y, pkg]`:                                   long,
		`command: /opt/node/bin/npx, args: [-y, pkg]`:                     long,
		`command: 'C:\Program Files\nodejs\npx.cmd', args: [pkg]`:         long,
		`command: NPX.EXE, args: [pkg]`:                                   long,
		`command: uvx, args: [pkg]`:                                       long,
		`command: bunx, args: [pkg]`:                                      long,
		`command: pipx, args: [run, pkg]`:                                 long,
		`command: docker, args: [run, -i, --rm, image]`:                   long,
		`command: podman, args: [run, image]`:                             long,
		`command: npm, args: [exec, --, pkg]`:                             long,
		`command: npm, args: [start]`:                                     usual,
		`command: pnpm, args: [dlx, pkg]`:                                 long,
		`command: pnpm, args: [start]`:                                    usual,
		`command: yarn, args: [dlx, pkg]`:                                 long,
		`command: bun, args: [x, pkg]`:                                    long,
		`command: bun, args: [server.ts]`:                                 usual,
		`command: uv, args: [--directory, /srv, run, server.py]`:          long,
		`command: uv, args: [tool, run, pkg]`:                             long,
		`command: deno, args: [run, -A, 'npm:pkg']`:                       long,
		`command: cmd, args: [/c, npx, -y, pkg]`:                          long,
		`command: cmd.exe, args: [/d, /s, /c, "npx -y pkg"]`:              long,
		`command: cmd, args: [/c, node, server.js]`:                       usual,
		`command: env, args: [A=b, npx, pkg]`:                             long,
		`command: sh, args: [-c, "exec npx -y pkg"]`:                      long,
		`command: bash, args: [-lc, "env A=b uvx pkg"]`:                   long,
		`command: bash, args: [run.sh, npx]`:                              usual,
		`command: powershell, args: [-NoProfile, -Command, "npx -y pkg"]`: long,
		`command: node, args: [server.js, npx]`:                           usual,
		`command: env`:                                                    usual,
		`command: npx, args: [pkg], startup_timeout: 7s`:                  7 * time.Second,
		`url: 'https://npx.example'`:                                      usual,
	} {
		cfg, err := config.Parse(filepath.Join(t.TempDir(), "goblin.yaml"), []byte("servers: {s: {"+entry+"}}"), func(string) (string, bool) { return "", false })
		require.NoError(t, err, entry)
		require.Equal(t, want, cfg.Servers[0].StartupTimeout, entry)
	}
}

func TestHandshakeWaitIsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"servers: {}": 5 * time.Second,
		"gateway: {handshake_wait: 0}\nservers: {}":    0,
		"gateway: {handshake_wait: 1.5s}\nservers: {}": 1500 * time.Millisecond,
	} {
		cfg, err := config.Parse("goblin.yaml", []byte(text), func(string) (string, bool) { return "", false })
		require.NoError(t, err, text)
		require.Equal(t, want, cfg.Gateway.HandshakeWait, text)
	}
	_, err := config.Parse("goblin.yaml", []byte("gateway: {handshake_wait: soon}\nservers: {}"), func(string) (string, bool) { return "", false })
	require.Error(t, err)
	require.True(t, strings.Contains(err.Error(), "handshake_wait"), err)
}
