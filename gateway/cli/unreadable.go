package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"goblin/gateway/config"
	"goblin/gateway/state"
	"goblin/gateway/telemetry"
)

// WarnUnreadable warns of files of what is remembered of a config that cannot be read, or tell
// of what there is not.
func (a *App) WarnUnreadable(cfg *config.Config) []config.Problem {
	return slices.Concat(a.unreadableOff(cfg), a.unreadablePins(cfg), a.unreadableUsage(cfg))
}

// unreadablePins warns of the file of pinned tools, if that cannot be read.
func (a *App) unreadablePins(cfg *config.Config) []config.Problem {
	path, err := a.PinsPath(cfg)
	if path == "" || err != nil {
		return nil
	}
	store, err := state.OpenPins(path)
	if err == nil {
		err = store.Damaged()
	}
	if err == nil {
		return nil
	}
	return []config.Problem{{File: path, Text: strings.Replace(err.Error(), path+": ", "", 1)}}
}

// unreadableOff warns of the file of what is off, if that cannot be read, and of what it
// turns off in profiles that there are not.
func (a *App) unreadableOff(cfg *config.Config) (warnings []config.Problem) {
	path := a.TogglesPath(cfg)
	if path == "" {
		return nil
	}
	store, err := state.OpenToggles(path)
	if mistake, ok := errors.AsType[*state.ToggleFileError](err); ok {
		return []config.Problem{{File: path, Line: mistake.Line, Text: mistake.Err.Error()}}
	}
	for _, text := range store.Skipped() {
		warnings = append(warnings, config.Problem{File: path, Text: "an entry is skipped: " + text})
	}
	told := make(map[string]bool)
	for _, s := range store.Disabled() {
		if _, ok := cfg.Profile(s.Profile); !ok && s.Profile != "" && !told[s.Profile] {
			told[s.Profile] = true
			warnings = append(warnings, config.Problem{File: path, Text: fmt.Sprintf("it turns things off in profile %q, which there is not%s", s.Profile, cfg.SuggestProfile(s.Profile))})
		}
	}
	return warnings
}

// unreadableUsage warns of the file of what was counted, if that cannot be read.
func (a *App) unreadableUsage(cfg *config.Config) []config.Problem {
	path := a.UsagePath(cfg)
	if path == "" {
		return nil
	}
	line, err := telemetry.CheckUsage(path)
	if err == nil {
		return nil
	}
	return []config.Problem{{File: path, Line: line, Text: fmt.Sprintf("what was counted cannot be read: %v; the next daemon sets the file aside, and counts anew", err)}}
}
