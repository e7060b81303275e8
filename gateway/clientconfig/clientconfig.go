package clientconfig

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Machine is the environment in which client files are located.
type Machine struct {
	OS     string // as in runtime.GOOS
	Getenv func(string) string
	// Dir is an additional project folder to search, or "".
	Dir string
}

// CurrentMachine returns the Machine of this process.
func CurrentMachine(getenv func(string) string, dir string) Machine {
	return Machine{OS: runtime.GOOS, Getenv: getenv, Dir: dir}
}

// Client is a program that uses MCP servers.
type Client struct {
	Name  string // as typed by users
	Title string // for display
	// places returns its user-level files. The first one is created if none exists.
	places  func(m *Machine) []place
	project []place // relative to a project's folder
}

type place struct {
	path    string
	dialect *dialect
	// unread is the reason why the client does not read the file.
	unread string
	// only is true for files that Goblin reads but never edits.
	only bool
}

type format int

const (
	inJSON format = iota
	inTOML
	inYAML
)

// dialect is a syntax for servers in a client's file.
type dialect struct {
	format  format
	section []string   // path of keys to the servers
	also    []*dialect // alternatives in the same file, newest first
	old     bool       // only older client versions write it
	list    bool       // servers are a list of named entries
	expands variables
	unit    time.Duration // of numbers in "timeout"
	// projects is the key of the servers of single projects, by folder.
	projects string
	// entry returns keys to set in addition to command and args. A nil value removes a key.
	entry func(command string, args []string) map[string]any
}

// variables is a set of variable forms that a client expands.
type variables uint

const (
	braces    variables = 1 << iota // ${X}, ${X:-default}
	prefix                          // ${env:X}
	places                          // ${userHome}, ${pathSeparator}, ${/}
	workspace                       // ${workspaceFolder}
	inputs                          // ${input:x}
	files                           // ${file:x}
	curly                           // {env:X}, {file:x}
	dollar                          // $X
	doubled                         // ${{ secrets.X }}

	editor = prefix | places | workspace // shared by editors based on VS Code
)

func desktop(expands variables, unit time.Duration) *dialect {
	return &dialect{section: []string{"mcpServers"}, expands: expands, unit: unit}
}

var (
	claudeDesktop = desktop(0, 0)
	claudeCode    = &dialect{section: []string{"mcpServers"}, expands: braces, projects: "projects", unit: time.Millisecond}
	cursor        = desktop(editor, 0)
	windsurf      = desktop(prefix|files, 0)
	gemini        = desktop(braces|dollar, time.Millisecond)
	cline         = desktop(prefix, time.Second)
	kiro          = desktop(braces|editor, time.Millisecond)
	amazonQ       = desktop(braces|prefix, time.Millisecond)
	lmStudio      = desktop(0, 0)
	junie         = desktop(braces|editor, 0)
	kiloLegacy    = desktop(prefix|workspace, time.Second)
	unknown       = desktop(braces|editor|inputs, 0)
	copilot       = &dialect{section: []string{"mcpServers"}, expands: braces | dollar, unit: time.Millisecond, entry: func(string, []string) map[string]any {
		return map[string]any{"type": "local", "tools": []string{"*"}}
	}}
	vscode = &dialect{section: []string{"servers"}, expands: editor | inputs, entry: func(string, []string) map[string]any {
		return map[string]any{"type": "stdio"}
	}}
	vscodeSettings = &dialect{section: []string{"mcp", "servers"}, old: true, expands: editor | inputs}
	zed            = &dialect{section: []string{"context_servers"}, entry: func(string, []string) map[string]any {
		return map[string]any{"source": "custom", "env": map[string]string{}}
	}}
	opencodeServers = &dialect{section: []string{"mcp", "servers"}, expands: curly, unit: time.Millisecond, entry: func(command string, args []string) map[string]any {
		return map[string]any{"type": "local", "command": append([]string{command}, args...), "args": nil}
	}}
	opencode = &dialect{section: []string{"mcp"}, also: []*dialect{opencodeServers}, expands: curly, unit: time.Millisecond, entry: func(command string, args []string) map[string]any {
		return map[string]any{"type": "local", "command": append([]string{command}, args...), "args": nil, "enabled": true}
	}}
	codex = &dialect{format: inTOML, section: []string{"mcp_servers"}, unit: time.Second}
	goose = &dialect{format: inYAML, section: []string{"extensions"}, unit: time.Second, entry: func(command string, args []string) map[string]any {
		return map[string]any{"type": "stdio", "name": EntryName, "cmd": command, "args": args, "command": nil, "enabled": true, "timeout": 300}
	}}
	continueYAML = &dialect{format: inYAML, section: []string{"mcpServers"}, list: true, expands: doubled, unit: time.Millisecond}
)

// All lists the known clients in display order.
var All = []*Client{
	{
		Name: "claude-desktop", Title: "Claude Desktop",
		places: at(claudeDesktop, app("Claude/claude_desktop_config.json")),
	},
	{
		Name: "claude-code", Title: "Claude Code",
		places:  at(claudeCode, envOr("CLAUDE_CONFIG_DIR", ".claude.json", ".claude.json")),
		project: []place{{path: ".mcp.json", dialect: claudeCode}},
	},
	{
		Name: "cursor", Title: "Cursor",
		places:  at(cursor, home(".cursor/mcp.json")),
		project: []place{{path: ".cursor/mcp.json", dialect: cursor}},
	},
	{
		Name: "vscode", Title: "VS Code",
		places: func(m *Machine) []place {
			return slices.Concat(
				at(vscode, app("Code/User/mcp.json"))(m), at(vscodeSettings, app("Code/User/settings.json"))(m),
				at(vscode, app("Code - Insiders/User/mcp.json"), app("VSCodium/User/mcp.json"))(m))
		},
		project: []place{{path: ".vscode/mcp.json", dialect: vscode}},
	},
	{
		Name: "windsurf", Title: "Windsurf",
		places: at(windsurf, home(".codeium/windsurf/mcp_config.json")),
	},
	{
		Name: "codex", Title: "Codex",
		places:  at(codex, envOr("CODEX_HOME", "config.toml", ".codex/config.toml")),
		project: []place{{path: ".codex/config.toml", dialect: codex}},
	},
	{
		Name: "gemini", Title: "Gemini CLI",
		places:  at(gemini, envOr("GEMINI_CLI_HOME", ".gemini/settings.json", ".gemini/settings.json")),
		project: []place{{path: ".gemini/settings.json", dialect: gemini}},
	},
	{
		Name: "opencode", Title: "opencode",
		places: func(m *Machine) []place {
			list := at(opencode, xdg("opencode/opencode.json"), xdg("opencode/opencode.jsonc"), xdg("opencode/config.json"))(m)
			if file := m.Getenv("OPENCODE_CONFIG"); m.isAbs(file) {
				list = append([]place{{path: file, dialect: opencode}}, list...)
			}
			return list
		},
		project: []place{{path: "opencode.json", dialect: opencode}, {path: "opencode.jsonc", dialect: opencode}},
	},
	{
		Name: "zed", Title: "Zed",
		places:  at(zed, named("zed/settings.json", "Zed/settings.json")),
		project: []place{{path: ".zed/settings.json", dialect: zed}},
	},
	{
		Name: "cline", Title: "Cline",
		places: at(cline, app("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
			home(".cline/data/settings/cline_mcp_settings.json")),
	},
	{
		Name: "continue", Title: "Continue",
		places:  at(continueYAML, envOr("CONTINUE_GLOBAL_DIR", "config.yaml", ".continue/config.yaml")),
		project: []place{{path: ".continue/config.yaml", dialect: continueYAML}},
	},
	{
		Name: "goose", Title: "goose",
		places: at(goose, named("goose/config.yaml", "Block/goose/config/config.yaml")),
	},
	{
		Name: "kiro", Title: "Kiro",
		places:  at(kiro, home(".kiro/settings/mcp.json")),
		project: []place{{path: ".kiro/settings/mcp.json", dialect: kiro}},
	},
	{
		Name: "amazon-q", Title: "Amazon Q Developer",
		places: amazonQPlaces,
		project: []place{
			{path: ".amazonq/mcp.json", dialect: amazonQ},
			{path: ".amazonq/default.json", dialect: amazonQ},
			{path: ".amazonq/agents/default.json", dialect: amazonQ},
		},
	},
	{
		Name: "lm-studio", Title: "LM Studio",
		places: at(lmStudio, home(".lmstudio/mcp.json"), home(".cache/lm-studio/mcp.json")),
	},
	{
		Name: "junie", Title: "Junie",
		places:  at(junie, home(".junie/mcp/mcp.json")),
		project: []place{{path: ".junie/mcp/mcp.json", dialect: junie}},
	},
	{
		Name: "copilot", Title: "GitHub Copilot CLI",
		places: at(copilot, envOr("COPILOT_HOME", "mcp-config.json", ".copilot/mcp-config.json")),
	},
	{
		Name: "kilo", Title: "Kilo Code",
		places: func(m *Machine) []place {
			return slices.Concat(
				at(opencode, xdg("kilo/kilo.jsonc"), xdg("kilo/kilo.json"))(m),
				at(kiloLegacy, app("Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json"),
					home(".kilocode/cli/global/settings/mcp_settings.json"))(m))
		},
		project: []place{{path: ".kilocode/mcp.json", dialect: kiloLegacy}, {path: "kilo.jsonc", dialect: opencode}, {path: "kilo.json", dialect: opencode}},
	},
}

// Names returns the names of all clients.
func Names() []string {
	names := make([]string, len(All))
	for i, c := range All {
		names[i] = c.Name
	}
	return names
}

// Find returns the client with a name, or nil.
func Find(name string) *Client {
	for _, c := range All {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// at omits files without an absolute path.
func at(d *dialect, paths ...func(m *Machine) string) func(m *Machine) []place {
	return func(m *Machine) (list []place) {
		for _, path := range paths {
			if file := path(m); m.isAbs(file) {
				list = append(list, place{path: file, dialect: d})
			}
		}
		return list
	}
}

func (m *Machine) home() string {
	if m.OS == "windows" {
		if dir := m.Getenv("USERPROFILE"); m.isAbs(dir) {
			return dir
		}
	}
	return m.Getenv("HOME")
}

// homeReference differs on Windows, which sets no HOME.
func (m *Machine) homeReference() string {
	if m.OS == "windows" {
		return "${USERPROFILE}"
	}
	return "${HOME}"
}

// isAbs reports whether a path is absolute on the machine's system.
func (m *Machine) isAbs(path string) bool {
	if m.OS == "windows" {
		return len(path) > 2 && path[1] == ':' && strings.ContainsRune(`\/`, rune(path[2])) || strings.HasPrefix(path, `\\`)
	}
	return filepath.IsAbs(path)
}

func (m *Machine) join(dir, file string) string {
	switch {
	case dir == "":
		return ""
	case m.OS == "windows":
		return strings.TrimRight(dir, `\/`) + `\` + strings.ReplaceAll(file, "/", `\`)
	}
	return filepath.Join(dir, file)
}

func home(file string) func(m *Machine) string {
	return func(m *Machine) string { return m.join(m.home(), file) }
}

// envOr locates a file in the directory named by a variable, otherwise another file in
// the home directory.
func envOr(variable, there, other string) func(m *Machine) string {
	return func(m *Machine) string {
		if dir := m.Getenv(variable); dir != "" && (variable != "XDG_CONFIG_HOME" || m.isAbs(dir)) {
			return m.join(dir, there)
		}
		return home(other)(m)
	}
}

// xdg locates a file in the XDG config directory, which programs from Linux use on all
// systems.
func xdg(file string) func(m *Machine) string {
	return envOr("XDG_CONFIG_HOME", file, ".config/"+file)
}

// app locates a file in the config directory of desktop applications.
func app(file string) func(m *Machine) string {
	return func(m *Machine) string {
		switch m.OS {
		case "darwin":
			return home("Library/Application Support/" + file)(m)
		case "windows":
			return roaming(file)(m)
		}
		return xdg(file)(m)
	}
}

func named(file, windows string) func(m *Machine) string {
	return func(m *Machine) string {
		if m.OS == "windows" {
			return roaming(windows)(m)
		}
		return xdg(file)(m)
	}
}

func roaming(file string) func(m *Machine) string {
	return envOr("APPDATA", file, "AppData/Roaming/"+file)
}
