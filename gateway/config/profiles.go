package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"goblin/registry/definition"
	"goblin/registry/suggest"
)

// Profile is a part of the catalog. It can only hide entries: what a server's own filters
// hide is in no profile.
type Profile struct {
	Name      string
	Servers   []string  // globs on names, or tagPrefix and a glob on tags; empty means all
	Tools     Filter    // on original names or server/original
	Prompts   Filter    // on original names or server/original
	Resources Filter    // on original URIs and templates
	MetaTools MetaTools // Unset means Gateway.MetaTools
	Expose    Expose
	Namespace Namespace                  // "" means Gateway.Namespace
	MaxResult int64                      // 0 means the server's limit, < 0 no limit
	Overrides map[string]*definition.Set // by server, on top of the server's own
	Pending   map[OverrideTarget]string  // entries hidden by unset variables, with reasons
}

// Namespace selects the form of listed resource URIs.
type Namespace string

// The forms of listed resource URIs.
const (
	NamespaceURI  Namespace = "uri"  // mcp://server/<original>
	NamespaceFlat Namespace = "flat" // ids without special characters
)

// ClientRule assigns a profile to clients whose name matches a glob.
type ClientRule struct{ Glob, Profile string }

// DefaultProfile is the profile of clients that get no other.
const DefaultProfile = "default"

const tagPrefix = "tag:"

// Profile returns the profile with the given name.
func (c *Config) Profile(name string) (*Profile, bool) {
	i := slices.IndexFunc(c.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return nil, false
	}
	return &c.Profiles[i], true
}

type profileKey struct{ profile, key string }

// ProfileLine returns the line of a profile's key in the file, or 0 if it is missing.
func (c *Config) ProfileLine(profile, key string) int {
	return c.profileLines[profileKey{profile, key}]
}

// ProfilesEqual reports whether clients see the same parts of servers with both configs.
func (c *Config) ProfilesEqual(o *Config) bool {
	tags := func(c *Config) (all [][]string) {
		for _, s := range c.Servers {
			all = append(all, append([]string{s.Name}, s.Tags...))
		}
		return all
	}
	own := func(c *Config) any { return [...]any{c.Gateway.MetaTools, c.Gateway.MetaToolsAbove} }
	return reflect.DeepEqual(c.Profiles, o.Profiles) && reflect.DeepEqual(c.Clients, o.Clients) &&
		reflect.DeepEqual(c.Overrides(), o.Overrides()) && reflect.DeepEqual(tags(c), tags(o)) && reflect.DeepEqual(own(c), own(o))
}

// SuggestProfile returns the hint for an unknown profile.
func (c *Config) SuggestProfile(name string) string {
	names := make([]string, len(c.Profiles))
	for i, p := range c.Profiles {
		names[i] = p.Name
	}
	if len(names) == 0 {
		return `; the config has no "profiles"`
	}
	return didYouMean(name, "known:", names)
}

// same treats empty and nil as equal.
func (p *Profile) same(o *Profile) bool {
	empty := func(p Profile) Profile {
		if len(p.Servers) == 0 {
			p.Servers = nil
		}
		for _, f := range []*Filter{&p.Tools, &p.Prompts, &p.Resources} {
			if f.IsEmpty() {
				*f = Filter{}
			}
		}
		if len(p.Overrides) == 0 {
			p.Overrides = nil
		}
		return p
	}
	return reflect.DeepEqual(empty(*p), empty(*o))
}

// Has reports whether the profile includes a server.
func (p *Profile) Has(s *Server) bool {
	return len(p.Servers) == 0 || slices.ContainsFunc(p.Servers, func(glob string) bool { return matchesServer(glob, s) })
}

func matchesServer(glob string, s *Server) bool {
	if tag, ok := strings.CutPrefix(glob, tagPrefix); ok {
		return slices.ContainsFunc(s.Tags, func(t string) bool { return Glob(tag, t) })
	}
	return Glob(glob, s.Name)
}

// MatchOriginal is like Match, but globs may also match server/original.
func (f Filter) MatchOriginal(server, original string) bool {
	if len(f.Allow)+len(f.Deny) == 0 {
		return true
	}
	full := server + "/" + original
	fits := func(glob string) bool { return Glob(glob, original) || Glob(glob, full) }
	return (len(f.Allow) == 0 || slices.ContainsFunc(f.Allow, fits)) && !slices.ContainsFunc(f.Deny, fits)
}

// IsEmpty reports whether the filter matches everything.
func (f Filter) IsEmpty() bool { return len(f.Allow)+len(f.Deny) == 0 }

func profileKeys() []field[Profile] {
	return []field[Profile]{
		key("servers", "Globs on server names, and tag:GLOB on tags; empty: all servers.",
			list(text(chooserComplaint)), func(p *Profile) *[]string { return &p.Servers }),
		key("tools", "Visible tools: globs on the server's own names or on server/name. `deny` wins.",
			section(filterKeys), func(p *Profile) *Filter { return &p.Tools }),
		key("prompts", "Visible prompts: globs on the server's own names or on server/name. `deny` wins.",
			section(filterKeys), func(p *Profile) *Filter { return &p.Prompts }),
		key("resources", "Visible resources, templates and skills: globs on the server's own URIs in any spelling. `deny` wins.",
			section(filterKeys), func(p *Profile) *Filter { return &p.Resources }),
		key("meta_tools", "Goblin's own tools, overriding `gateway.meta_tools`.",
			metaTools(), func(p *Profile) *MetaTools { return &p.MetaTools }),
		key("expose", "Listed tools. all: the profile's. search: Goblin's own, which find and call the others; these can also be called by name.",
			words(ExposeAll, ExposeSearch), func(p *Profile) *Expose { return &p.Expose }),
		key("namespace", "Form of listed resources, overriding `gateway.namespace`.",
			words(NamespaceURI, NamespaceFlat), func(p *Profile) *Namespace { return &p.Namespace }),
		key("max_result", "Maximum text of a tool result, overriding servers' `max_result`; off: no limit.",
			sizeOrOff(1<<10), func(p *Profile) *int64 { return &p.MaxResult }),
		key("overrides", "Overrides by server, on top of the servers' own `overrides`.",
			overridesOfServers(), func(p *Profile) *map[string]*definition.Set { return &p.Overrides }),
	}
}

// DefaultView returns the view of clients without a profile: all servers.
func DefaultView() Profile { return Profile{MetaTools: MetaTools{Unset: true}, Expose: ExposeAll} }

var profileName = pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func profiles() kind[[]Profile] {
	return kind[[]Profile]{
		schema: func([]Profile) object {
			def := DefaultView()
			return object{
				"type": []string{"object", "null"}, "additionalProperties": tableSchema(profileKeys(), &def),
				"propertyNames": object{"pattern": `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`},
			}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *[]Profile) {
			for _, p := range r.pairs(at, n) {
				if !profileName().MatchString(p.key.Value) {
					r.fail(p.key, "%s is not a valid profile name; use up to 64 letters, digits, and . _ - (not first)", quote(p.key.Value))
					continue
				}
				profile := DefaultView()
				profile.Name = p.key.Value
				r.overriding = OverrideTarget{Profile: profile.Name}
				seen := readTable(r, keyPath{self: "profile " + quote(p.key.Value)}, profileKeys(), p.val, &profile)
				seen[""] = p.key
				r.dropUnready(&profile)
				r.profiles = append(r.profiles, seen)
				*dst = append(*dst, profile)
			}
		},
	}
}

func clientRules() kind[[]ClientRule] {
	name := text(noNUL)
	return kind[[]ClientRule]{
		schema: func([]ClientRule) object {
			return object{"type": []string{"object", "null"}, "additionalProperties": name.schema("")}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *[]ClientRule) {
			for _, p := range r.pairs(at, n) {
				if c := globComplaint(p.key.Value); c != "" {
					r.fail(p.key, "%s in %s %s", quote(p.key.Value), at.inner(), c)
					continue
				}
				rule := ClientRule{Glob: p.key.Value}
				name.read(r, at.key(p.key.Value), p.val, &rule.Profile)
				r.rules = append(r.rules, p.key)
				*dst = append(*dst, rule)
			}
		},
	}
}

// tags warns of mistakes in other clients' files, since they use this key freely.
func tags() kind[[]string] {
	k := list(text(tagComplaint))
	read := k.read
	k.read = func(r *reader, at keyPath, n *yaml.Node, dst *[]string) {
		if r.lenient && n.Kind != yaml.SequenceNode {
			r.warn(n, "%s is not a list and is ignored", at)
			return
		}
		read(r, at, n, dst)
	}
	return k
}

func tagComplaint(s string) string {
	if s == "" || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return "must be a word without spaces"
	}
	return ""
}

func chooserComplaint(s string) string {
	return globComplaint(strings.TrimPrefix(s, tagPrefix))
}

func (r *reader) checkProfiles(cfg *Config) {
	if len(r.profiles) != len(cfg.Profiles) || len(r.rules) != len(cfg.Clients) {
		return // their mistakes are already reported
	}
	for i := range cfg.Profiles {
		p, seen := &cfg.Profiles[i], r.profiles[i]
		if cfg.profileLines == nil {
			cfg.profileLines = make(map[profileKey]int)
		}
		for key, n := range seen {
			cfg.profileLines[profileKey{p.Name, key}] = n.Line
		}
		at := keyPath{self: "profile " + quote(p.Name)}
		for _, glob := range p.Servers {
			if !slices.ContainsFunc(cfg.Servers, func(s Server) bool { return matchesServer(glob, &s) }) {
				r.warn(seen["servers"], "%s: %s matches no server%s", at.key("servers"), quote(glob), r.serverMeant(glob, cfg))
			}
		}
		if p.Namespace == NamespaceFlat {
			r.warn(seen["namespace"], "%s: %s", at.key("namespace"), flatIsNoURI)
		}
		nothing := DefaultView()
		nothing.Name = p.Name
		switch servers := seen["servers"]; {
		case p.same(&nothing):
			r.warn(seen[""], "profile %s is empty, so its clients see everything", quote(p.Name))
		case servers != nil && len(p.Servers) == 0:
			r.warn(servers, "%s is empty, so the profile includes all servers", at.key("servers"))
		}
		if len(cfg.Servers) > 0 && !slices.ContainsFunc(cfg.Servers, func(s Server) bool { return p.Has(&s) }) {
			r.warn(cmp.Or(seen["servers"], seen[""]), "profile %s includes no server, so its clients see nothing", quote(p.Name))
		}
	}
	r.checkRules(cfg)
}

func (r *reader) checkRules(cfg *Config) {
	for i, rule := range cfg.Clients {
		if _, ok := cfg.Profile(rule.Profile); !ok && rule.Profile != "" {
			r.fail(r.rules[i], "clients: %s: unknown profile %s%s", quote(rule.Glob), quote(rule.Profile), cfg.SuggestProfile(rule.Profile))
		}
		for j, first := range cfg.Clients[:i] {
			if Glob(first.Glob, rule.Glob) {
				r.warn(r.rules[i], "clients: %s never applies, because %s on line %d matches the same names first", quote(rule.Glob), quote(first.Glob), r.rules[j].Line)
				break
			}
		}
	}
}

func (r *reader) serverMeant(glob string, cfg *Config) string {
	wanted, byTag := strings.CutPrefix(glob, tagPrefix)
	var known []string
	for _, s := range cfg.Servers {
		if byTag {
			known = append(known, s.Tags...)
		} else {
			known = append(known, s.Name)
		}
	}
	if guess := nearest(wanted, known); guess != "" {
		return suggest.DidYouMean(guess)
	}
	return ""
}
