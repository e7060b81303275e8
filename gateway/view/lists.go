package view

import (
	"fmt"

	"goblin/gateway/config"
	"goblin/registry"
	"goblin/registry/definition"
)

// part chooses the tools that lists contain: Goblin's own, those of servers, or both. It
// implements [registry.Visibility].
type part struct {
	name         string // see [Key]
	own, servers bool
	few          *part // where no more than above is listed; nil: the same
	above        int
}

// needed lists Goblin's own tools where there is more than that.
func needed(name string, above int) *part {
	return &part{name: name, own: true, servers: true, few: &part{name: name, servers: true}, above: above}
}

func (p *part) Server(string) bool { return true }

func (p *part) All(server string, k registry.Kind) bool {
	switch {
	case k != registry.Tool:
		return true
	case server == registry.Local:
		return p.own
	}
	return p.servers
}

func (p *part) Has(server string, k registry.Kind, _ string) bool { return p.All(server, k) }

func (p *part) Overrides(string) *definition.Set { return nil }

func (p *part) WithLists(listed [registry.Kinds]int) registry.Visibility {
	if p.few != nil && sum(listed) <= p.above {
		return p.few
	}
	return p
}

func sum(listed [registry.Kinds]int) (n int) {
	for _, of := range listed {
		n += of
	}
	return n
}

// WithLists implements [registry.Visibility]: clients that see little need none of Goblin's own
// tools.
func (c *choice) WithLists(listed [registry.Kinds]int) registry.Visibility {
	switch {
	case c.few != nil && sum(listed) <= c.above:
		return c.few
	case c.unskilled != nil && listed[registry.Skill] == 0:
		return c.unskilled
	}
	return c
}

// choose says which of Goblin's own tools there are, and what lists have.
func (c *choice) choose(m config.MetaTools, above int) {
	c.own = m
	c.above = above
	c.few = nil
	c.unskilled = nil
	without := func(names []string) *choice {
		less := *c
		less.skip = names
		return &less
	}
	unskilled := without(aboutSkills)
	if m.Auto {
		c.few = without(config.OwnTools())
	}
	c.unskilled = unskilled
	if c.profile.Expose == config.ExposeSearch {
		c.lists = &part{name: c.name, own: true}
	}
}

// missing says by whom and why there is no tool of Goblin's own, of those that have a name.
func (c *choice) missing(name string) (Reason, string) {
	whose, by := "gateway", ByConfig
	if !c.profile.MetaTools.Unset {
		whose, by = fmt.Sprintf("profile %q", c.profile.Name), ByProfile
	}
	switch {
	case c.own.Auto && c.own.Has(name):
		return by, fmt.Sprintf(`listed for clients that see more than %d entries: "meta_tools" of %s is auto`, c.above, whose)
	case c.own.Has(name):
		return by, "listed when there are skills"
	case name == config.CallTool && (c.own.All || c.own.Auto):
		return by, `listed where "expose" of a profile is search, or "meta_tools" names it`
	}
	return by, fmt.Sprintf(`left out by "meta_tools" of %s`, whose)
}
