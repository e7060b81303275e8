package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
)

func TestServersThatGoblinCannotStartYetStayInTheirClient(t *testing.T) {
	env, dir := inHome(t, map[string]string{".cursor/mcp.json": `{"mcpServers": {"fine": {"command": "x"}, "lame": {"command": "y", "args": ["${env:SURELY_NOT_SET}"]}}}`})
	path := filepath.Join(dir, "config.yaml")
	require.Zero(t, try{env: env}.runIn(t, path, "init").code)
	got := try{env: env}.runIn(t, path, "install", "cursor", "--replace")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "removed (now run by Goblin): fine\n  kept (Goblin can't start them yet): lame\n")
	left := readFile(t, filepath.Join(dir, ".cursor/mcp.json"))
	require.Contains(t, left, `"lame"`)
	require.NotContains(t, left, `"fine"`)
}

func TestAFileThatWasMadeForGoblinIsSaidToBeDeleted(t *testing.T) {
	env, dir := inHome(t, nil)
	path := configAt(t, dir, "servers: {a: {command: x}}\n")
	made := try{env: env}.runIn(t, path, "install", "cursor").out
	require.Contains(t, made, "mcp.json. Restart Cursor.\n")
	got := try{env: env}.runIn(t, path, "uninstall", "cursor")
	require.Contains(t, got.out, strings.Replace(made, "Updated", "Deleted", 1))
	require.NoFileExists(t, filepath.Join(dir, ".cursor/mcp.json"))
}

func TestInstallTellsOfEachClientAndOneThatFailsStopsNoOther(t *testing.T) {
	env, dir := inHome(t, map[string]string{".cursor/mcp.json": "{oops", ".kiro/settings/mcp.json": kiroFile})
	path := configAt(t, dir, threeServers)
	got := try{env: env}.runIn(t, path, "install", "cursor", "kiro")
	require.Equal(t, cli.CodeFailure, got.code)
	require.Contains(t, got.err, "Cursor: "+filepath.Join(dir, ".cursor/mcp.json")+" is unchanged: not valid JSON (line 1)")
	require.Contains(t, got.out, "Updated "+filepath.Join(dir, ".kiro/settings/mcp.json")+". Restart Kiro.")
	written := readFile(t, filepath.Join(dir, ".kiro/settings/mcp.json"))
	require.Contains(t, written, `"args": ["stdio", "--config", "`+path+`"]`)

	got = try{env: env}.runIn(t, path, "uninstall", "kiro", "--dry-run")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "Nothing was written.")
	require.Contains(t, got.out, "\n-")
	require.NotContains(t, got.out, "s3cret")
	require.Equal(t, written, readFile(t, filepath.Join(dir, ".kiro/settings/mcp.json")))
	got = try{env: env}.runIn(t, path, "uninstall", "kiro")
	require.Zero(t, got.code, got.err)
	require.Equal(t, kiroFile, readFile(t, filepath.Join(dir, ".kiro/settings/mcp.json")))
	got = try{env: env}.runIn(t, path, "uninstall", "kiro")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Contains(t, got.err, "has no Goblin entry")

	got = try{env: env}.runIn(t, path, "install", "--print", "zed")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, `"context_servers"`)
	require.NoFileExists(t, filepath.Join(dir, ".config/zed/settings.json"))
}
