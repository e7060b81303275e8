//go:build interop || conformance

package interop

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// packages are the packages of the comparisons, at exact versions. Node comes from npm
// too: Inspector and the conformance suite need version 22. Two older SDKs have aliases,
// and request the revision in their name.
var packages = map[string]string{
	"node": "22.23.3",
	"@modelcontextprotocol/server-everything": "2026.8.31",
	"@modelcontextprotocol/server-filesystem": "2026.8.31",
	"@modelcontextprotocol/server-memory":     "2026.8.31",
	"@modelcontextprotocol/sdk":               "1.32.2",
	"@modelcontextprotocol/client":            "2.4.0",
	"@modelcontextprotocol/server":            "2.4.0",
	"@modelcontextprotocol/node":              "2.1.2",
	"zod":                                     "4.6.7",
	"oidc-provider":                           "9.13.3",
	"sdk-2025-06-18":                          "npm:@modelcontextprotocol/sdk@1.22.0",
	"sdk-2024-11-05":                          "npm:@modelcontextprotocol/sdk@1.9.0",
	"@modelcontextprotocol/inspector":         "2.12.0",
	"@modelcontextprotocol/conformance":       "0.2.0-alpha.12",

	"@modelcontextprotocol/ext-apps":                "2.0.4",
	"@modelcontextprotocol/server-budget-allocator": "2.0.3",
	"@modelcontextprotocol/server-system-monitor":   "2.0.3",
}

// npm installs missing packages into the user's cache folder and returns the folder that
// holds node_modules.
func npm(t *testing.T) string {
	t.Helper()
	dir := cacheDir(t)
	lock := flock.New(filepath.Join(dir, "lock"))
	require.NoError(t, lock.Lock())
	defer func() { _ = lock.Unlock() }()
	manifest := filepath.Join(dir, "package.json")
	if _, err := os.Stat(manifest); os.IsNotExist(err) {
		require.NoError(t, os.WriteFile(manifest, []byte("{\"private\":true}\n"), 0o600))
	}
	args := []string{"install", "--no-audit", "--no-fund", "--no-package-lock", "--save-exact"}
	missing := false
	for name, version := range packages {
		args = append(args, name+"@"+version)
		text, err := os.ReadFile(filepath.Join(dir, "node_modules", filepath.FromSlash(name), "package.json"))
		// The version of an alias follows another package's name.
		_, alias, _ := strings.Cut(strings.TrimPrefix(version, "npm:@"), "@")
		missing = missing || err != nil || e2e.Str(json.RawMessage(text), "version") != cmp.Or(alias, version)
	}
	if missing {
		cmd := exec.Command("npm", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "npm %s: %s", strings.Join(args, " "), out)
	}
	return dir
}

func cacheDir(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	dir := filepath.Join(cache, "goblin-interop")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return dir
}

func nodeBinary(dir string) string { return filepath.Join(dir, "node_modules", "node", "bin", "node") }
