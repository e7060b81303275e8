package command

import (
	"context"
	"fmt"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/control"
	"goblin/gateway/pins"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// hostPatience bounds what a check of the config waits for the running host.
const hostPatience = 2 * time.Second

// longDescriptions are warnings of tools whose descriptions clients will cut, as
// far as they can be known without a start of the servers: from the running host,
// else from what is remembered of tools.
func (a *App) longDescriptions(ctx context.Context, cfg *config.Config) (warnings []config.Problem) {
	check := func(server, tool, description string) {
		s, ok := cfg.Server(server)
		if why := registry.LongDescription(description); ok && !s.Disabled && why != "" {
			warnings = append(warnings, config.Problem{File: cfg.Path, Text: fmt.Sprintf("tool %q of server %q: %s", tool, server, why)})
		}
	}
	if place, err := a.Place(cfg.Path); err == nil {
		ctx, cancel := context.WithTimeout(ctx, hostPatience)
		defer cancel()
		if tools, err := (control.Remote{Place: place}).List(ctx, control.ListQuery{Kind: "tools"}); err == nil {
			for _, tool := range tools {
				check(tool.Server, tool.OriginalName, tool.Description)
			}
			return warnings
		}
	}
	path, err := a.Pins(cfg)
	if err != nil || path == "" {
		return nil
	}
	store, err := pins.Open(path)
	if err != nil {
		return nil // whoever needs them tells
	}
	store.Each(func(server, tool string, definition []byte) {
		description, _ := rawjson.String(rawjson.Get(definition, "description"))
		check(server, tool, description)
	})
	return warnings
}
