package report

import (
	"fmt"
	"strings"
)

// Limits holds the limits of a client; 0 means no known limit.
type Limits struct {
	Client       string `json:"client"`
	Tools        int    `json:"tools,omitempty"`
	Note         string `json:"toolsNote,omitempty"`    // on Tools
	Prefix       string `json:"namePrefix,omitempty"`   // before tool names
	Name         int    `json:"nameLength,omitempty"`   // including Prefix
	Description  int    `json:"description,omitempty"`  // characters; the rest is cut
	Instructions int    `json:"instructions,omitempty"` // bytes; the rest is cut
	Source       string `json:"source"`

	clientPrefixes []string // of the client's name, in lower case
}

// KnownLimits lists the known limits of clients. Name is set only for clients that fail
// on longer names. VS Code, Codex and Gemini CLI shorten them. In Claude Code, the
// model's API rejects all requests of the session. Cursor drops the tool, and includes
// the server's name in the length.
var KnownLimits = []Limits{
	{
		Client: "Claude Code", clientPrefixes: []string{"claude-code"}, Prefix: "mcp__goblin__", Name: 64, Description: 2048, Instructions: 2048,
		Source: "https://code.claude.com/docs/en/mcp https://github.com/anthropics/claude-code/issues/19882",
	},
	{
		Client: "Cursor", clientPrefixes: []string{"cursor"}, Tools: 40, Note: "80 in newer versions", Prefix: "goblin", Name: 59,
		Source: "https://mcptrove.com/blog/cursor-tool-limit-math https://github.com/ComposioHQ/composio/issues/2788",
	},
	{
		Client: "VS Code (Copilot)", clientPrefixes: []string{"visual studio code", "vscode", "code-oss", "github-copilot", "copilot"}, Tools: 128,
		Source: "https://code.visualstudio.com/docs/chat/chat-tools",
	},
	{
		Client: "Windsurf", clientPrefixes: []string{"windsurf", "codeium"}, Tools: 100,
		Source: "https://docs.windsurf.com/windsurf/cascade/mcp",
	},
}

// LimitsFor returns the limits of the client with this name, or nil if unknown.
func LimitsFor(client string) *Limits {
	client = strings.ToLower(client)
	for i := range KnownLimits {
		for _, name := range KnownLimits[i].clientPrefixes {
			if strings.HasPrefix(client, name) {
				return &KnownLimits[i]
			}
		}
	}
	return nil
}

// ListSizes holds the sizes of a client's lists.
type ListSizes struct {
	Tools            int
	Instructions     int // bytes
	LongName         string
	LongestDescribed string // the tool with the longest description
	Description      int    // its characters
}

// LimitViolation is a limit that a client's lists exceed.
type LimitViolation struct {
	Kind   string `json:"limit"` // tools, name, description or instructions
	Actual int    `json:"have"`
	Limit  int    `json:"most"`
	Text   string `json:"text"`
	Fix    string `json:"fix"`
}

// Violations returns the exceeded limits. name is the client's own name.
func (l *Limits) Violations(name string, s ListSizes) (all []LimitViolation) {
	if l == nil {
		return nil
	}
	add := func(limit string, have, most int, text, fix string) {
		if most > 0 && have > most {
			all = append(all, LimitViolation{limit, have, most, text, fix})
		}
	}
	most := fmt.Sprint(l.Tools)
	if l.Note != "" {
		most += " (" + l.Note + ")"
	}
	add("tools", s.Tools, l.Tools, fmt.Sprintf("%s accepts %s tools and gets %d", l.Client, most, s.Tools),
		fmt.Sprintf("give it a profile with fewer tools (profiles, and clients: {%q: NAME}), or disable tools (x in the UI, or goblin tools off)", name))
	add("name", len(l.Prefix)+len(s.LongName), l.Name, fmt.Sprintf("%s accepts names of %d characters including %q; %s has %d", l.Client, l.Name, l.Prefix, s.LongName, len(l.Prefix)+len(s.LongName)),
		fmt.Sprintf("set gateway.max_name: %d", l.Name-len(l.Prefix)))
	add("description", s.Description, l.Description, fmt.Sprintf("%s cuts descriptions after %d characters; %s has %d", l.Client, l.Description, s.LongestDescribed, s.Description),
		"ask the server's authors to put the important parts first, or disable the tool")
	add("instructions", s.Instructions, l.Instructions, fmt.Sprintf("%s cuts instructions after %d bytes and gets %d", l.Client, l.Instructions, s.Instructions),
		"give it a profile with fewer servers")
	return all
}
