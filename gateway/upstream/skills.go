package upstream

import (
	"context"
	"strings"

	"goblin/gateway/upstream/timing"
	"goblin/registry"
)

// RefreshSkills fetches skills again that may be old; ok is false for a server without any.
func (s *Server) RefreshSkills(ctx context.Context) (h timing.Hints, ok bool) {
	ls := s.lists.Load()
	if ls == nil || !listings[registry.Skill].offered(ls.link.Info()) {
		return h, false
	}
	if ls.link.Err() == nil {
		if wait := s.skills.AwaitFresh(func() { ls.mark(registry.Skill) }); wait != nil {
			select {
			case <-wait:
			case <-ls.link.done:
			case <-ctx.Done():
			}
		}
	}
	return s.skills.Hints(), true
}

// offered reports whether a server declares that it has such a list.
func (g *listing) offered(info Info) bool { return info.Has(strings.Fields(g.capability)...) }
