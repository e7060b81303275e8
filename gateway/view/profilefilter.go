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

// profileFilter selects a profile's entries that are not disabled.
type profileFilter struct {
	profile   config.Profile
	servers   map[string]bool
	uris      *policy.URIFilter
	disabled  disabledSet
	metaTools config.MetaTools // visible ones
	name      string           // see [Key]
	lists     *listFilter      // nil: lists have everything visible
	// For at most metaAbove entries, and for no skills; nil: no change. Few servers have
	// skills, but every model would read these tools.
	withoutMeta, withoutSkills *profileFilter
	metaAbove                  int
	skippedTools               []string // hidden by withoutMeta or withoutSkills
}

var skillTools = []string{"catalog_skills", "search_skills"}

func newProfileFilter(cfg *config.Config, p config.Profile, switched []state.ToggleEntry, hidden ...string) *profileFilter {
	c := &profileFilter{profile: p, servers: make(map[string]bool), uris: policy.NewURIFilter(p.Resources), disabled: newDisabledSet(p.Name, switched, hidden)}
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; p.Has(s) {
			c.servers[s.Name] = true
		}
	}
	if p.Name != config.DefaultProfile { // it continues versions of no profile
		c.name = p.Name
	}
	c.setMetaTools(cfg.ProfileMetaTools(&p), cfg.Gateway.MetaToolsAbove)
	return c
}

const fullName = "+"

// newFullFilter returns the filter for [FullProfile]. Its clients can use Goblin's tools
// that lists lack.
func newFullFilter(cfg *config.Config) *profileFilter {
	c := newProfileFilter(cfg, config.DefaultView(), nil)
	c.name = fullName
	if c.metaTools.Auto {
		above := c.metaAbove
		c.setMetaTools(config.MetaTools{All: true}, 0)
		c.lists = newListFilter(c.name, above)
	}
	return c
}

func (c *profileFilter) equal(o *profileFilter) bool {
	return maps.Equal(c.servers, o.servers) && reflect.DeepEqual(c.profile, o.profile) && maps.Equal(c.disabled.entries, o.disabled.entries) &&
		maps.Equal(c.disabled.hidden, o.disabled.hidden) && reflect.DeepEqual(c.metaTools, o.metaTools) && c.metaAbove == o.metaAbove && reflect.DeepEqual(c.lists, o.lists)
}

func (c *profileFilter) Server(name string) bool { return name == registry.Local || c.servers[name] }

func (c *profileFilter) Overrides(server string) *definition.Set { return c.profile.Overrides[server] }

func (c *profileFilter) All(server string, k registry.Kind) bool {
	return c.profileHasAll(server, k) && c.disabled.uris[serverKind{server, k}] == nil && !c.disabled.hidesServer(server)
}

func (c *profileFilter) profileHasAll(server string, k registry.Kind) bool {
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

func (c *profileFilter) Has(server string, k registry.Kind, name string) bool {
	return c.profileHas(server, k, name) && !c.disabled.has(server, k, name)
}

func (c *profileFilter) profileHas(server string, k registry.Kind, name string) bool {
	switch {
	case !c.Server(server):
		return false
	case server == registry.Local:
		return k != registry.Tool || c.metaTools.Has(name) && !slices.Contains(c.skippedTools, name)
	case k == registry.Tool:
		return c.profile.Tools.MatchOriginal(server, name)
	case k == registry.Prompt:
		return c.profile.Prompts.MatchOriginal(server, name)
	case k == registry.Template:
		return c.uris.MatchTemplate(name)
	}
	return c.uris.Match(name)
}

// disabledSet holds disabled entries, for a profile or for all clients.
type disabledSet struct {
	entries map[entryKey]bool // true: only in this profile
	uris    map[serverKind]*policy.URIFilter
	hidden  map[string]bool // see [state.ToggleStore.Hidden]
}

type serverKind struct {
	server string
	kind   registry.Kind
}

type entryKey struct {
	serverKind
	name string
}

func newDisabledSet(profile string, switched []state.ToggleEntry, hidden []string) disabledSet {
	o := disabledSet{entries: make(map[entryKey]bool), uris: make(map[serverKind]*policy.URIFilter), hidden: make(map[string]bool)}
	for _, server := range hidden {
		o.hidden[server] = true
	}
	denied := make(map[serverKind]*config.Filter)
	for i := range switched {
		t, ok := entryKeyOf(&switched[i])
		if !ok || switched[i].Profile != "" && switched[i].Profile != profile {
			continue
		}
		if alone, is := o.entries[t]; !is || alone {
			o.entries[t] = switched[i].Profile != ""
		}
		if denied[t.serverKind] == nil {
			denied[t.serverKind] = new(config.Filter)
		}
		if t.kind == registry.Resource {
			denied[t.serverKind].Deny = append(denied[t.serverKind].Deny, escapeGlob.Replace(t.name))
		}
	}
	for at, f := range denied {
		uris := policy.NewURIFilter(*f)
		if uris == nil {
			uris = new(policy.URIFilter)
		}
		o.uris[at] = uris
	}
	return o
}

// escapeGlob converts a URI to a glob for only that URI, with its query and fragment.
var escapeGlob = strings.NewReplacer("*", "[*]", "?", "[?-?]", "[", "[[]", `\`, `\\`, "#", "[#]", ";", "[;]")

func entryKeyOf(s *state.ToggleEntry) (entryKey, bool) {
	for k := range registry.Kind(registry.Kinds) {
		if k.String() == s.Kind {
			return entryKey{serverKind{s.Server, k}, s.Name}, slices.Contains(state.ToggleKinds, s.Kind)
		}
	}
	return entryKey{}, false
}

// has matches a resource in every spelling of its URI.
func (o disabledSet) has(server string, k registry.Kind, name string) bool {
	if o.hidesServer(server) {
		return true
	}
	at := serverKind{server, k}
	uris := o.uris[at]
	if uris == nil {
		return false
	}
	if _, is := o.entries[entryKey{at, name}]; is {
		return true
	}
	return k == registry.Resource && !uris.Match(name) && validURIs.Match(name)
}

func (o disabledSet) hidesServer(server string) bool {
	return len(o.hidden) > 0 && (o.hidden[server] || o.hidden[state.AllServers])
}

func (c *profileFilter) hidesServer(server string) bool {
	return c.disabled.hidesServer(server) && (c.disabled.hidden[state.AllServers] || c.Server(server))
}

// validURIs matches URIs that all parsers read alike.
var validURIs = policy.NewURIFilter(config.Filter{Deny: []string{""}})
