// Package palette is the command palette: a text field that finds commands and entries.
//
// It must not know the key table or the panes' commands: the UI supplies them.
package palette

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"
)

// Command is a line of the palette: a binding, or a command that takes an argument or has
// no key.
type Command struct {
	Names       []string
	Arg         string // placeholder, such as "NAME"; "" if it takes none
	Long        string
	Keys        []string
	ArgOptional bool
	CursorOnly  bool                    // acts on the cursor and has no name of its own
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

// History holds the commands that one UI ran from the palette, the newest last.
type History struct{ lines []string }

const maxHistory = 50

func (h *History) add(line string) {
	h.lines = append(slices.DeleteFunc(h.lines, func(l string) bool { return l == line }), line)
	h.lines = h.lines[max(0, len(h.lines)-maxHistory):]
}
