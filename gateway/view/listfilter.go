package view

import (
	"fmt"

	"goblin/gateway/config"
	"goblin/registry"
	"goblin/registry/definition"
)

// listFilter selects the tools in lists: Goblin's own, those of servers, or both.
type listFilter struct {
	name         string // see [Key]
	own, servers bool
	withoutMeta  *listFilter // for at most metaAbove tools; nil: no change
	metaAbove    int
}

// newListFilter lists Goblin's own tools only above a number of tools.
func newListFilter(name string, above int) *listFilter {
	return &listFilter{name: name, own: true, servers: true, withoutMeta: &listFilter{name: name, servers: true}, metaAbove: above}
}

func (p *listFilter) Server(string) bool { return true }

func (p *listFilter) All(server string, k registry.Kind) bool {
	switch {
	case k != registry.Tool:
		return true
	case server == registry.Local:
		return p.own
	}
	return p.servers
}

func (p *listFilter) Has(server string, k registry.Kind, _ string) bool { return p.All(server, k) }

func (p *listFilter) Overrides(string) *definition.Set { return nil }

func (p *listFilter) WithLists(listed [registry.Kinds]int) registry.Visibility {
	if p.withoutMeta != nil && totalCount(listed) <= p.metaAbove {
		return p.withoutMeta
	}
	return p
}

func totalCount(listed [registry.Kinds]int) (n int) {
	for _, of := range listed {
		n += of
	}
	return n
}

// WithLists implements [registry.Visibility]. Clients with few entries need none of
// Goblin's own tools.
func (c *profileFilter) WithLists(listed [registry.Kinds]int) registry.Visibility {
	switch {
	case c.withoutMeta != nil && totalCount(listed) <= c.metaAbove:
		return c.withoutMeta
	case c.withoutSkills != nil && listed[registry.Skill] == 0:
		return c.withoutSkills
	}
	return c
}

// setMetaTools sets Goblin's visible and listed tools.
func (c *profileFilter) setMetaTools(m config.MetaTools, above int) {
	c.metaTools = m
	c.metaAbove = above
	c.withoutMeta = nil
	c.withoutSkills = nil
	without := func(names []string) *profileFilter {
		less := *c
		less.skippedTools = names
		return &less
	}
	unskilled := without(skillTools)
	if m.Auto {
		c.withoutMeta = without(config.OwnTools())
	}
	c.withoutSkills = unskilled
	if c.profile.Expose == config.ExposeSearch {
		c.lists = &listFilter{name: c.name, own: true}
	}
}

func (c *profileFilter) whyMissing(name string) (Reason, string) {
	whose, by := "gateway", ByConfig
	if !c.profile.MetaTools.Unset {
		whose, by = fmt.Sprintf("profile %q", c.profile.Name), ByProfile
	}
	switch {
	case c.metaTools.Auto && c.metaTools.Has(name):
		return by, fmt.Sprintf(`listed for clients that see more than %d entries: "meta_tools" of %s is auto`, c.metaAbove, whose)
	case c.metaTools.Has(name):
		return by, "listed while a server offers skills"
	case name == config.CallTool && (c.metaTools.All || c.metaTools.Auto):
		return by, `listed if "expose" of a profile is search, or if "meta_tools" names it`
	}
	return by, fmt.Sprintf(`not in "meta_tools" of %s`, whose)
}
