// Package palette is the command palette: it finds commands, entries, servers and keys.
//
// It must not know the key table, the panes' commands or the config: the UI supplies
// them. Searches run in commands, and answers to an earlier text are dropped.
package palette

import (
	"cmp"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/report"
)

// Command is a line of the palette: a binding, or a command that takes an argument or has
// no key.
type Command struct {
	Names       []string
	Arg         string // placeholder, such as "NAME"; "" if it takes none
	Long        string
	SearchWords string // synonyms for the search
	Keys        []string
	ArgOptional bool
	CursorOnly  bool                    // acts on the cursor and has no name of its own
	Setting     bool                    // of this UI; each value is a line
	Why         func(arg string) string // why it is disabled, or ""; may be nil
	Run         func(arg string) tea.Cmd
	Args        func() []string         // values to choose from; nil if unknown
	About       func(arg string) string // describes a value; may be nil
}

// Usage returns the name with the placeholder of the argument.
func (c *Command) Usage() string {
	switch {
	case c.Arg == "":
		return c.Names[0]
	case c.ArgOptional:
		return c.Names[0] + " [" + c.Arg + "]"
	}
	return c.Names[0] + " " + c.Arg
}

func (c *Command) whyNot(arg string) string {
	if c.Why == nil {
		return ""
	}
	return c.Why(arg)
}

func (c *Command) about(arg string) string {
	if c.About == nil {
		return c.Long
	}
	return cmp.Or(c.About(arg), c.Long)
}

func (c *Command) needsArg() bool { return c.Arg != "" && !c.ArgOptional }

// Options are the parts of the UI that a palette uses.
type Options struct {
	Commands []Command
	// ConfigKeys returns the keys of the config. It may read files, and may be nil.
	ConfigKeys func() []report.ConfigKey
	// EditConfig opens the config in the editor at a line. It is nil without a config.
	EditConfig func(line int) tea.Cmd
	// Leave closes the dialogs behind the palette before a line runs.
	Leave   func() tea.Cmd
	History *History
}

// History holds what one UI ran from the palette, the newest last.
type History struct{ used []used }

type used struct {
	line   string
	entry  entryID // of a line that opened an entry
	server string  // of a line that went to a server
}

type entryID struct {
	kind         registry.Kind
	server, name string
}

// Limits of the history, and of its lines shown without input.
const (
	maxHistory = 50
	maxRecent  = 5
)

func (h *History) add(u used) {
	h.used = append(slices.DeleteFunc(h.used, func(o used) bool { return o.line == u.line }), u)
	h.used = h.used[max(0, len(h.used)-maxHistory):]
}

// recency returns a larger number for a line that was used later, and 0 for others.
func (h *History) recency(line string) int {
	return 1 + slices.IndexFunc(h.used, func(u used) bool { return u.line == line })
}
