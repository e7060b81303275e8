package views

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"goblin/gateway/config"
	"goblin/gateway/filter"
	"goblin/gateway/switches"
	"goblin/registry"
)

// choice is a profile, without what is off, as the registry asks about it. It implements
// [registry.Choice].
type choice struct {
	profile config.Profile
	servers map[string]bool
	uris    *filter.URIs
	off     off
	// bare is the same without Goblin's tools that are about skills, for a catalog in which
	// those that are chosen have none: the tools are listed from the first skill of anybody
	// on. nil in such a choice itself.
	bare *choice
}

// aboutSkills are those tools.
var aboutSkills = []string{"catalog_skills", "search_skills"}

func newChoice(cfg *config.Config, p config.Profile, switched []switches.Switch) *choice {
	c := &choice{profile: p, servers: make(map[string]bool), uris: filter.New(p.Resources), off: newOff(p.Name, switched)}
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; p.Has(s) {
			c.servers[s.Name] = true
		}
	}
	bare := *c
	c.bare = &bare
	return c
}

// narrow is the catalog as the choice shows it, after before.
func (c *choice) narrow(now, before *registry.Snapshot) *registry.Snapshot {
	first, second := c, c.bare
	switch {
	case before != nil && before.Choice() == registry.Choice(c):
	case before != nil && before.Choice() == registry.Choice(c.bare), now.Count(registry.Skill) == 0:
		first, second = second, first // the other way round it would be made twice
	}
	is := now.Narrow(first, before)
	if (first == c) != (is.Count(registry.Skill) > 0) {
		is = now.Narrow(second, before)
	}
	return is
}

// equal reports whether both choose the same.
func (c *choice) equal(o *choice) bool {
	return maps.Equal(c.servers, o.servers) && reflect.DeepEqual(c.profile, o.profile) && maps.Equal(c.off.things, o.off.things)
}

func (c *choice) Server(name string) bool { return name == registry.Local || c.servers[name] }

func (c *choice) All(server string, k registry.Kind) bool {
	return c.profileHasAll(server, k) && c.off.of[place{server, k}] == nil
}

func (c *choice) profileHasAll(server string, k registry.Kind) bool {
	switch {
	case server == registry.Local:
		return k != registry.Tool || c.profile.MetaTools.All && c.bare != nil
	case k == registry.Tool:
		return c.profile.Tools.Empty()
	case k == registry.Prompt:
		return c.profile.Prompts.Empty()
	}
	return c.uris == nil
}

func (c *choice) Has(server string, k registry.Kind, name string) bool {
	return c.profileHas(server, k, name) && !c.off.has(server, k, name)
}

func (c *choice) profileHas(server string, k registry.Kind, name string) bool {
	switch {
	case !c.Server(server):
		return false
	case server == registry.Local:
		return k != registry.Tool || c.profile.MetaTools.Has(name) && (c.bare != nil || !slices.Contains(aboutSkills, name))
	case k == registry.Tool:
		return c.profile.Tools.MatchOf(server, name)
	case k == registry.Prompt:
		return c.profile.Prompts.MatchOf(server, name)
	case k == registry.Template:
		return c.uris.MatchTemplate(name)
	}
	return c.uris.Match(name)
}

// off is what the user turned off of a profile, or for all.
type off struct {
	things map[thing]bool // true: for this profile alone
	of     map[place]*filter.URIs
}

type place struct {
	server string
	kind   registry.Kind
}

type thing struct {
	place
	name string
}

func newOff(profile string, switched []switches.Switch) off {
	o := off{things: make(map[thing]bool), of: make(map[place]*filter.URIs)}
	denied := make(map[place]*config.Filter)
	for i := range switched {
		t, ok := thingOf(&switched[i])
		if !ok || switched[i].Profile != "" && switched[i].Profile != profile {
			continue
		}
		if alone, is := o.things[t]; !is || alone {
			o.things[t] = switched[i].Profile != ""
		}
		if denied[t.place] == nil {
			denied[t.place] = new(config.Filter)
		}
		if t.kind == registry.Resource {
			denied[t.place].Deny = append(denied[t.place].Deny, literally.Replace(t.name))
		}
	}
	for at, f := range denied {
		uris := filter.New(*f)
		if uris == nil {
			uris = new(filter.URIs)
		}
		o.of[at] = uris
	}
	return o
}

// literally is a URI as a glob that fits it. Nothing of it is dropped when the glob is
// read as a URI: what is off by one fragment is not off by all.
var literally = strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]", `\`, `\\`, "#", "[#]", ";", "[;]")

func thingOf(s *switches.Switch) (thing, bool) {
	for k := range registry.Kind(registry.Kinds) {
		if k.String() == s.Kind {
			return thing{place{s.Server, k}, s.Name}, slices.Contains(switches.Kinds, s.Kind)
		}
	}
	return thing{}, false
}

func (o off) empty() bool { return len(o.things) == 0 }

// has reports whether a thing is off. A resource is so however its URI is spelled.
func (o off) has(server string, k registry.Kind, name string) bool {
	at := place{server, k}
	uris := o.of[at]
	if uris == nil {
		return false
	}
	if _, is := o.things[thing{at, name}]; is {
		return true
	}
	return k == registry.Resource && !uris.Match(name) && readable.Match(name)
}

// readable lets through all but what readers are bound to disagree about, which no filter
// lets through.
var readable = filter.New(config.Filter{Deny: []string{""}})
