package gateway

import (
	"fmt"
	"slices"
	"strings"

	"goblin/gateway/config"
	"goblin/gateway/fleet"
	"goblin/gateway/logins"
	"goblin/registry"
)

// hopLocal reports errors that concern only the connection they came on:
// headers that do not match, and a revision that is not spoken (2026-07-28).
func hopLocal(code int) bool { return code == -32020 || code == -32022 }

// unlisted is err, with a word about why the tool or prompt may be missing: it
// is withheld, or the server whose names begin like this one is not there to
// list it.
func (g *Gateway) unlisted(err *registry.NotFoundError) error {
	if b := g.Servers.Get(err.Owner); b != nil && !b.Listed() {
		if _, down := b.Conn(); logins.Required(down) {
			return down
		}
	}
	if err.Kind != registry.Tool && err.Kind != registry.Prompt {
		return err
	}
	told := *err
	if err.Kind == registry.Tool {
		if slices.Contains(config.OwnTools(), err.Name) {
			told.Absent = "it is Goblin's own, and not among gateway.meta_tools"
			return &told
		}
		if p := g.reg.Withheld(err.Name); p != nil {
			told.Absent = fleet.Withheld(p)
			return &told
		}
	}
	for _, s := range g.reg.States() {
		if s.Name != err.Owner || s.Listed || s.State == registry.StateReady {
			continue
		}
		is := "is "
		switch s.State {
		case registry.StateFailed:
			is = "has "
		case registry.StateNeedsLogin:
			is = ""
		}
		told.Absent = fmt.Sprintf("server %q %s%s, so its %ss are unknown", s.Name, is, s.State, err.Kind)
		return &told
	}
	return err
}

// list joins names for a message.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
