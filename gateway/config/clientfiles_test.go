package config_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

// --config may name a client's own file. Clients know no references.
func TestReferencesInTheFileOfAClientArePlainText(t *testing.T) {
	t.Parallel()
	const text = `{"mcpServers": {"a": {"url": "https://h/${keyring:k}", "headers": {"A": "${file:/k}", "B": "${cmd:id}", "C": "${X}"}}}}`
	plain := map[string]string{"A": "${file:/k}", "B": "${cmd:id}", "C": "x"}
	for path, want := range map[string]map[string]string{
		"/home/me/.cursor/mcp.json":                  plain,
		"/home/me/.Cursor/MCP.json":                  plain,
		"/home/me/.claude.json":                      plain,
		"/home/me/.config/Code/User/mcp.json":        plain,
		"/home/me/.config/VSCodium/User/mcp.json":    plain,
		"/home/me/.copilot/mcp-config.json":          plain,
		"/home/me/.codeium/windsurf/mcp_config.json": {"A": "resolved", "B": "${cmd:id}", "C": "x"},
		"/home/me/.config/goblin/config.json":        {"A": "resolved", "B": "resolved", "C": "x"},
		"/home/me/mcp.json":                          {"A": "resolved", "B": "resolved", "C": "x"},
		"/home/user/mcp.json":                        {"A": "resolved", "B": "resolved", "C": "x"},
		"/home/me/mcp-config.json":                   {"A": "resolved", "B": "resolved", "C": "x"},
		"/home/me/mcp_settings.json":                 {"A": "resolved", "B": "resolved", "C": "x"},
	} {
		cfg, err := config.Parse(path, []byte(text), func(string) (string, bool) { return "x", true })
		require.NoError(t, err, path)
		require.Len(t, cfg.Servers, 1)
		s, err := cfg.Servers[0].Resolve(t.Context(), func(context.Context, string, []string, string) (string, error) { return "resolved", nil })
		require.NoError(t, err, path)
		require.Equal(t, want, s.Headers, path)
		require.Equal(t, want["B"] == "${cmd:id}", len(cfg.Warnings) > 0, path)
	}
}
