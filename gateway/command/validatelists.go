package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/policy"
	"goblin/gateway/state"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/definition"
	"goblin/registry/rawjson"
)

const daemonTimeout = 2 * time.Second

// listWarnings returns warnings about long descriptions, and about overrides and profile
// globs that match nothing. It uses the running daemon's lists, or the recorded tools.
func (a *App) listWarnings(ctx context.Context, cfg *config.Config) (warnings []config.Problem) {
	var things []policy.OverriddenEntry
	listed := make(view.ListedNames)
	add := func(t policy.OverriddenEntry, description string) {
		s, ok := cfg.Server(t.Server)
		things = append(things, t)
		listed.Add(t.Server, t.Kind, t.Name)
		if why := definition.LongDescription(description); ok && !s.Disabled && why != "" && t.Kind == registry.Tool {
			warnings = append(warnings, config.Problem{File: cfg.Path, Text: fmt.Sprintf("tool %q of server %q: %s", t.Name, t.Server, why)})
		}
	}
	check := func(kinds ...registry.Kind) []config.Problem {
		return slices.Concat(warnings, policy.CheckOverrides(cfg, slices.Values(things), kinds...), view.UnusedGlobs(cfg, listed, kinds...))
	}
	if a.daemonLists(ctx, cfg, add) {
		return append(check(), view.UnusedRules(cfg, listed)...)
	}
	path, err := a.PinsPath(cfg)
	if err != nil || path == "" {
		return nil
	}
	store, err := state.OpenPins(path)
	if err != nil {
		return nil // other commands report it
	}
	store.ForEach(func(server, tool string, definition []byte) {
		description := rawjson.GetString(definition, "description")
		add(policy.OverriddenEntry{Server: server, Kind: registry.Tool, Name: tool, Definition: definition}, description)
	})
	return check(registry.Tool)
}

// daemonLists returns false without a daemon.
func (a *App) daemonLists(ctx context.Context, cfg *config.Config, add func(t policy.OverriddenEntry, description string)) bool {
	place, err := a.FindDaemon(cfg.Path)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	all := make(map[registry.Kind][]daemon.Entry)
	for k := registry.Tool; k <= registry.Template; k++ {
		if all[k], err = (daemon.Remote{Place: place}).List(ctx, daemon.ListQuery{Kind: k.String() + "s"}); err != nil {
			return false
		}
	}
	for k, entries := range all {
		for _, e := range entries {
			own := e.Definition
			if e.Overridden != nil {
				own = e.Overridden
			}
			add(policy.OverriddenEntry{Server: e.Server, Kind: k, Name: e.OriginalLabel(), Definition: own}, e.Description)
		}
	}
	return true
}
