package command

import (
	"path/filepath"
	"strings"

	"goblin/gateway/cli"
	"goblin/gateway/config"
)

// startable reports whether a server would be started at all.
func startable(s *config.Server) bool { return !s.Disabled && s.Problem == "" }

// usable checks a server that the user named.
func usable(cfg *config.Config, name string) error {
	s, ok := cfg.Server(name)
	switch {
	case !ok:
		return cli.Fail(cli.CodeNotFound, "there is no server %q%s", name, cli.Meant(name, serverNames(cfg), "; the config names none"))
	case s.Disabled:
		return cli.Fail(cli.CodeConnect, "server %q is disabled; remove \"disabled: true\" from %s", name, configName(cfg))
	case s.Problem != "":
		return cli.Fail(cli.CodeConnect, "server %q cannot start: %s", name, s.Problem)
	}
	return nil
}

func serverNames(cfg *config.Config) []string {
	return each(cfg.Servers, func(s *config.Server) string { return s.Name })
}

// each makes a text of every item.
func each[T any](items []T, text func(*T) string) []string {
	out := make([]string, len(items))
	for i := range items {
		out[i] = text(&items[i])
	}
	return out
}

// configName is a config as a user knows it.
func configName(cfg *config.Config) string {
	return fileName(cfg.Path)
}

// fileName is the same for a config that was only found.
func fileName(path string) string {
	if path == "" {
		return "the demo config"
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// settled reports that a name says for certain whose it is, if the server is in
// the config.
func settled(server, name string) bool {
	return strings.HasPrefix(name, "mcp://"+server+"/") || strings.HasPrefix(name, server+"/")
}

// owners guesses from a name which servers can own it, so that nothing else
// has to be started; nil when it tells nothing. The guess only saves time:
// names are resolved by the gateway.
func owners(cfg *config.Config, k kind, name string) []string {
	var found []string
	for i := range cfg.Servers {
		if s := cfg.Servers[i].Name; k.owns(s, name) {
			found = append(found, s)
		}
	}
	return found
}

// kind is one of the lists and what it is about.
type kind struct {
	list  string // the list, as it is typed
	noun  string
	typed string // what a name of it is called in help texts
	owns  func(server, name string) bool
}

var (
	toolKind = kind{"tools", "tool", "TOOL", func(server, name string) bool {
		return strings.HasPrefix(name, strings.ReplaceAll(server, ".", "_")+"_") || strings.HasPrefix(name, server+"/")
	}}
	promptKind = kind{"prompts", "prompt", "NAME", func(server, name string) bool {
		return strings.HasPrefix(name, server+"/") || strings.HasPrefix(name, server+"_")
	}}
	resourceKind = kind{"resources", "resource", "URI", func(server, name string) bool {
		return strings.HasPrefix(name, "mcp://"+server+"/") || strings.HasPrefix(name, server+"_")
	}}
)
