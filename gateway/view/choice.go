package view

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"goblin/gateway/config"
	"goblin/gateway/policy"
	"goblin/gateway/state"
	"goblin/registry"
	"goblin/registry/definition"
)

// choice is a profile, without what is off, as the registry asks about it. It implements
// [registry.Visibility].
type choice struct {
	profile config.Profile
	servers map[string]bool
	uris    *policy.URIFilter
	off     off
	own     config.MetaTools // of Goblin's tools
	name    string           // of what it shows, see [Key]
	lists   *part            // what of it lists have; nil: all
	// What it is where less is listed, nil for the same: without Goblin's tools where no more
	// than above is, and without those that are about skills where there are none: hardly a
	// server has some, and every model would read about them.
	few, unskilled *choice
	above          int
	skip           []string // Goblin's tools that are left out in such a choice
}

// aboutSkills are those tools.
var aboutSkills = []string{"catalog_skills", "search_skills"}

func newChoice(cfg *config.Config, p config.Profile, switched []state.ToggleEntry, hidden ...string) *choice {
	c := &choice{profile: p, servers: make(map[string]bool), uris: policy.NewURIFilter(p.Resources), off: newOff(p.Name, switched, hidden)}
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; p.Has(s) {
			c.servers[s.Name] = true
		}
	}
	if p.Name != config.DefaultProfile { // it goes on where there was none
		c.name = p.Name
	}
	c.choose(cfg.ProfileMetaTools(&p), cfg.Gateway.MetaToolsAbove)
	return c
}

// everything is the name of what [WholeProfile] shows.
const everything = "+"

// whole chooses everything. Those who see it are offered Goblin's own tools also where
// lists do not have them.
func whole(cfg *config.Config) *choice {
	c := newChoice(cfg, config.DefaultView(), nil)
	c.name = everything
	if c.own.Auto {
		above := c.above
		c.choose(config.MetaTools{All: true}, 0)
		c.lists = needed(c.name, above)
	}
	return c
}

// equal reports whether both choose the same.
func (c *choice) equal(o *choice) bool {
	return maps.Equal(c.servers, o.servers) && reflect.DeepEqual(c.profile, o.profile) && maps.Equal(c.off.things, o.off.things) &&
		maps.Equal(c.off.hidden, o.off.hidden) && reflect.DeepEqual(c.own, o.own) && c.above == o.above && reflect.DeepEqual(c.lists, o.lists)
}

func (c *choice) Server(name string) bool { return name == registry.Local || c.servers[name] }

func (c *choice) Overrides(server string) *definition.Set { return c.profile.Overrides[server] }

func (c *choice) All(server string, k registry.Kind) bool {
	return c.profileHasAll(server, k) && c.off.of[place{server, k}] == nil && !c.off.hides(server)
}

func (c *choice) profileHasAll(server string, k registry.Kind) bool {
	switch {
	case server == registry.Local:
		return k != registry.Tool
	case k == registry.Tool:
		return c.profile.Tools.IsEmpty()
	case k == registry.Prompt:
		return c.profile.Prompts.IsEmpty()
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
		return k != registry.Tool || c.own.Has(name) && !slices.Contains(c.skip, name)
	case k == registry.Tool:
		return c.profile.Tools.MatchOriginal(server, name)
	case k == registry.Prompt:
		return c.profile.Prompts.MatchOriginal(server, name)
	case k == registry.Template:
		return c.uris.MatchTemplate(name)
	}
	return c.uris.Match(name)
}

// off are the things that the user turned off, in one profile or for all clients.
type off struct {
	things map[thing]bool // true: for this profile alone
	of     map[place]*policy.URIFilter
	hidden map[string]bool // servers of which it is unknown what is off, see [switches.Store.Hidden]
}

type place struct {
	server string
	kind   registry.Kind
}

type thing struct {
	place
	name string
}

func newOff(profile string, switched []state.ToggleEntry, hidden []string) off {
	o := off{things: make(map[thing]bool), of: make(map[place]*policy.URIFilter), hidden: make(map[string]bool)}
	for _, server := range hidden {
		o.hidden[server] = true
	}
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
		uris := policy.NewURIFilter(*f)
		if uris == nil {
			uris = new(policy.URIFilter)
		}
		o.of[at] = uris
	}
	return o
}

// literally is a URI as a glob that fits it. Nothing of it is dropped when the glob is
// read as a URI: what is off by one query or fragment is not off by all.
var literally = strings.NewReplacer("*", "[*]", "?", "[?-?]", "[", "[[]", `\`, `\\`, "#", "[#]", ";", "[;]")

func thingOf(s *state.ToggleEntry) (thing, bool) {
	for k := range registry.Kind(registry.Kinds) {
		if k.String() == s.Kind {
			return thing{place{s.Server, k}, s.Name}, slices.Contains(state.ToggleKinds, s.Kind)
		}
	}
	return thing{}, false
}

// has reports whether a thing is off. A resource is so however its URI is spelled.
func (o off) has(server string, k registry.Kind, name string) bool {
	if o.hides(server) {
		return true
	}
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

// hides reports whether all entries of a server are hidden.
func (o off) hides(server string) bool {
	return len(o.hidden) > 0 && (o.hidden[server] || o.hidden[state.EveryServer])
}

// hidesAll reports whether all entries of a server of the profile are hidden.
func (c *choice) hidesAll(server string) bool {
	return c.off.hides(server) && (c.off.hidden[state.EveryServer] || c.Server(server))
}

// readable lets through all but what readers are bound to disagree about, which no filter
// lets through.
var readable = policy.NewURIFilter(config.Filter{Deny: []string{""}})
