package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// clientFiles lists the path suffixes of MCP clients' files that can serve as a config.
var clientFiles = []string{
	"/claude_desktop_config.json", "/.claude.json", "/.mcp.json", "/.cursor/mcp.json",
	"/code/user/mcp.json", "/code - insiders/user/mcp.json", "/vscodium/user/mcp.json", "/.vscode/mcp.json", "/windsurf/mcp_config.json", "/.gemini/settings.json",
	"/cline_mcp_settings.json", "/.kiro/settings/mcp.json", "/amazonq/mcp.json", "/amazonq/default.json",
	"/amazonq/agents/default.json", "/.amazonq/mcp.json", "/.amazonq/default.json", "/.amazonq/agents/default.json",
	"/.lmstudio/mcp.json", "/lm-studio/mcp.json", "/.junie/mcp/mcp.json", "/.copilot/mcp-config.json",
	"/settings/mcp_settings.json", "/.kilocode/mcp.json",
}

// fileKindClient is the file of Windsurf, which resolves ${file:PATH} itself.
const fileKindClient = "/windsurf/mcp_config.json"

// plainInClient reports whether the client that owns the file at path treats ${kind:…} as
// plain text.
func plainInClient(path, kind string) bool {
	full, err := filepath.Abs(path)
	if err != nil {
		full = path
	}
	full = strings.ToLower(filepath.ToSlash(full)) // some file systems ignore case
	isIn := func(end string) bool { return strings.HasSuffix(full, end) }
	return slices.ContainsFunc(clientFiles, isIn) && (kind != fileKind || !isIn(fileKindClient))
}
