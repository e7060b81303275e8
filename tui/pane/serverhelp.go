package pane

import (
	"cmp"
	"strconv"
	"strings"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/viewer"
)

// serverHelp returns the next steps for a server that is not ready. key returns the key
// of an action.
func serverHelp(s registry.ServerState, key func(string) string) []viewer.Section {
	note := func(text string) []viewer.Section { return []viewer.Section{{Kind: viewer.Note, Text: text}} }
	switch s.State {
	case registry.StateSleeping:
		return note("Idle until its next use; " + key("open") + " starts it now.")
	case registry.StateFailed, registry.StateRetrying:
		return note(key("reload") + " restarts it, " + key("pager") + " shows its output, " + key("edit-server") + " edits its entry, " + key("open") + " diagnoses it.")
	case registry.StateDisabled:
		return note("Disabled: not started, hidden. " + key("enable") + " enables it.")
	case registry.StateNeedsLogin:
		var blocks []viewer.Section
		if s.CanLogIn {
			blocks = append(note("Login required: "+key("log-in")+" opens your browser. Or run this in a terminal:"),
				viewer.Section{Kind: viewer.Text, Text: termtext.Goblin("login", s.Name)})
		}
		return append(blocks,
			viewer.Section{Kind: viewer.Note, Text: "Or set the required header, usually this one, in the config (" + key("edit-server") + "). The variable must be set where Goblin starts:"},
			viewer.Section{Kind: viewer.Text, Text: "servers:\n  " + yamlKey(s.Name) + ":\n    headers:\n      Authorization: Bearer ${" + variable(s.Name) + "}"})
	}
	return nil
}

func yamlKey(name string) string {
	for _, r := range name {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return strconv.Quote(name)
		}
	}
	return name
}

func variable(server string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, server)
	return cmp.Or(name, "MY") + "_TOKEN"
}
