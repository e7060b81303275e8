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

// WarnUnreadable warns of a config's damaged state files, and of disabled entries in
// unknown profiles.
func (a *App) WarnUnreadable(cfg *config.Config) []config.Problem {
	return slices.Concat(a.unreadableOff(cfg), a.unreadablePins(cfg), a.unreadableUsage(cfg))
}

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
		warnings = append(warnings, config.Problem{File: path, Text: "skipped an entry: " + text})
	}
	reported := make(map[string]bool)
	for _, s := range store.Disabled() {
		if _, ok := cfg.Profile(s.Profile); !ok && s.Profile != "" && !reported[s.Profile] {
			reported[s.Profile] = true
			warnings = append(warnings, config.Problem{File: path, Text: fmt.Sprintf("it disables entries in unknown profile %q%s", s.Profile, cfg.SuggestProfile(s.Profile))})
		}
	}
	return warnings
}

func (a *App) unreadableUsage(cfg *config.Config) []config.Problem {
	path := a.UsagePath(cfg)
	if path == "" {
		return nil
	}
	line, err := telemetry.CheckUsage(path)
	if err == nil {
		return nil
	}
	return []config.Problem{{File: path, Line: line, Text: fmt.Sprintf("cannot read recorded usage: %v; the next daemon moves the file aside and restarts the counts", err)}}
}
