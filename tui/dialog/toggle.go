package dialog

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// maxNames limits the names in a question about several entries.
const maxNames = 6

// ToggleEntries disables entries for the clients in view, or enables them if all are
// disabled. It asks before it changes several.
func ToggleEntries(a *uicontext.Context, entries []*registry.Entry) tea.Cmd {
	on := true
	for _, e := range entries {
		by, _ := a.Backend.HiddenReason(a.Profile, e)
		on = on && by != "" && by != hiddenBySearch
	}
	if len(entries) == 0 {
		return nil
	}
	view, do, done, whose := a.Profile, "disable", "Disabled", "all clients"
	if on {
		do, done = "enable", "Enabled"
	}
	if view != "" {
		whose = "clients of " + uicontext.SanitizeLine(view)
	}
	what, n := uicontext.SanitizeLine(entries[0].Listed), len(entries)
	if n > 1 {
		what = termtext.Count(n, entries[0].Kind.String())
	}
	change := func() tea.Cmd {
		return a.Do(func() error { return a.Backend.SetEntriesDisabled(view, on, entries...) }, do,
			func() tea.Cmd { return a.Say("%s %s for %s", done, what, whose) })
	}
	if n == 1 {
		return change()
	}
	names := make([]string, 0, maxNames+1)
	for _, e := range entries[:min(n, maxNames)] {
		names = append(names, uicontext.SanitizeLine(e.Listed))
	}
	if n > maxNames {
		names = append(names, fmt.Sprintf("and %d more", n-maxNames))
	}
	return a.Push(&Confirm{
		Screen: a, Title: strings.ToUpper(do[:1]) + do[1:] + " " + what + "?", Yes: do, Then: change,
		Text: []string{"For " + whose + ":"}, Body: strings.Join(names, "\n"),
	})
}

// hiddenBySearch is the reason of entries that only search finds.
const hiddenBySearch = "search"

// ToggleDisabledReason returns why an entry cannot be toggled, or "".
func ToggleDisabledReason(a *uicontext.Context, e *registry.Entry) string {
	switch {
	case e == nil:
		return "nothing selected"
	case e.Kind == registry.Skill:
		return "skills can't be disabled here; filter them in the config"
	}
	if by, why := a.Backend.HiddenReason(a.Profile, e); by == "profile" {
		return why
	}
	return ""
}

// VisibilityFields returns a different listed name of an entry, or the reason it is
// hidden.
func VisibilityFields(a *uicontext.Context, e *registry.Entry) []viewer.Field {
	by, why := a.Backend.HiddenReason(a.Profile, e)
	switch by {
	case "":
		if name := a.Backend.ListedAs(a.Profile, e); name != "" && name != e.Listed {
			return []viewer.Field{{Label: "listed as", Value: name}}
		}
		return nil
	case hiddenBySearch:
		return []viewer.Field{{Label: "not listed", Value: why}}
	}
	return []viewer.Field{{Label: "hidden", Value: fmt.Sprintf("%s (by %s)", why, by)}}
}
