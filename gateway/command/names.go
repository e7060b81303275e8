package command

import (
	"strings"

	"goblin/gateway/config"
	"goblin/gateway/daemon"
)

func each[T any](items []T, text func(*T) string) []string {
	out := make([]string, len(items))
	for i := range items {
		out[i] = text(&items[i])
	}
	return out
}

func namesServer(server, name string) bool {
	return strings.HasPrefix(name, "mcp://"+server+"/") || strings.HasPrefix(name, server+"/")
}

// likelyServers returns nil if the spelling suggests no server. The guess only saves
// time: the gateway resolves names.
func likelyServers(cfg *config.Config, k kind, name string) []string {
	var found []string
	for i := range cfg.Servers {
		if s := cfg.Servers[i].Name; k.owns(s, name) {
			found = append(found, s)
		}
	}
	return found
}

type kind struct {
	list string // the argument of list
	noun string
	owns func(server, name string) bool // reports whether the server may own the name
}

var (
	toolKind = kind{"tools", "tool", func(server, name string) bool {
		return strings.HasPrefix(name, strings.ReplaceAll(server, ".", "_")+"_") || strings.HasPrefix(name, server+"/")
	}}
	promptKind = kind{"prompts", "prompt", func(server, name string) bool {
		return strings.HasPrefix(name, server+"/") || strings.HasPrefix(name, server+"_")
	}}
	resourceKind = kind{"resources", "resource", func(server, name string) bool {
		return strings.HasPrefix(name, "mcp://"+server+"/") || strings.HasPrefix(name, server+"_")
	}}
)

func listedNames(items []daemon.Entry) []string { return each(items, (*daemon.Entry).ListedName) }
