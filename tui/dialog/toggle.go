package dialog

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// ToggleEntries turns entries off for the clients that the screen looks at, or all of them on if
// each is off.
func ToggleEntries(a *uicontext.Context, entries []*registry.Entry) tea.Cmd {
	on := true
	for _, e := range entries {
		by, _ := a.Backend.HiddenReason(a.Profile, e)
		on = on && by != "" && by != hiddenBySearch
	}
	if len(entries) == 0 {
		return nil
	}
	view, word, whose := a.Profile, "off", "all clients"
	if on {
		word = "on"
	}
	if view != "" {
		whose = "clients of " + uicontext.SanitizeLine(view)
	}
	what := uicontext.SanitizeLine(entries[0].Listed) + " is"
	if n := len(entries); n > 1 {
		what = fmt.Sprintf("%d entries are", n)
	}
	return a.Do(func() error { return a.Backend.SetEntriesDisabled(view, on, entries...) }, "turn "+word,
		func() tea.Cmd { return a.Say("%s %s for %s", what, word, whose) })
}

// hiddenBySearch is the reason of entries that are not listed, but found by search.
const hiddenBySearch = "search"

// ToggleDisabledReason says why an entry cannot be turned off or on.
func ToggleDisabledReason(a *uicontext.Context, e *registry.Entry) string {
	switch {
	case e == nil:
		return "there is nothing here"
	case e.Kind == registry.Skill:
		return "skills cannot be turned off; filters in the config can leave them out"
	}
	if by, why := a.Backend.HiddenReason(a.Profile, e); by == "profile" {
		return why
	}
	return ""
}

// VisibilityFields tells in a detail under which other name clients see an entry, or why they do not.
func VisibilityFields(a *uicontext.Context, e *registry.Entry) []viewer.Field {
	by, why := a.Backend.HiddenReason(a.Profile, e)
	switch by {
	case "":
		if name := a.Backend.ListedAs(a.Profile, e); name != "" && name != e.Listed {
			return []viewer.Field{{Label: "listed as", Value: name}}
		}
		return nil
	case hiddenBySearch:
		return []viewer.Field{{Label: "listed", Value: "no: " + why}}
	}
	return []viewer.Field{{Label: "off", Value: fmt.Sprintf("%s (by %s)", why, by)}}
}
