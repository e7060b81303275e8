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

// Profile is a part of the catalog. It only takes away: what a server's own filters
// leave out is in no profile.
type Profile struct {
	Name      string
	Servers   []string  // globs on names, or tagPrefix and a glob on tags; none: all servers
	Tools     Filter    // on original names, or server/original
	Prompts   Filter    // likewise
	Resources Filter    // on original URIs and templates
	MetaTools MetaTools // not said: those of the gateway
	Expose    Expose
	Namespace Namespace                  // not said: that of the gateway
	MaxResult int64                      // wins over those of servers; 0: theirs, less: off
	Overrides map[string]*definition.Set // by server, over what those have for all
	Pending   map[OverrideTarget]string  // what it lacks until its overrides can be as they say, and why they cannot
}

// Namespace is how resources are listed.
type Namespace string

// The namespaces.
const (
	NamespaceURI  Namespace = "uri"  // mcp://server/<original>
	NamespaceFlat Namespace = "flat" // ids without special characters
)

// ClientRule gives clients whose name fits a glob a profile.
type ClientRule struct{ Glob, Profile string }

// DefaultProfile is for clients that get no other.
const DefaultProfile = "default"

// tagPrefix begins what chooses servers by their tags.
const tagPrefix = "tag:"

// Profile finds a profile by its name.
func (c *Config) Profile(name string) (*Profile, bool) {
	i := slices.IndexFunc(c.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return nil, false
	}
	return &c.Profiles[i], true
}

// profileKey is the place of a key of a profile.
type profileKey struct{ profile, key string }

// ProfileLine is the line of a profile's key in the file, 0 if it is not there.
func (c *Config) ProfileLine(profile, key string) int {
	return c.profileLines[profileKey{profile, key}]
}

// ProfilesEqual reports whether clients see the same parts of servers by both configs.
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

// SuggestProfile tells the user which profile may be meant, or which ones there are, when
// there is none of this name.
func (c *Config) SuggestProfile(name string) string {
	names := make([]string, len(c.Profiles))
	for i, p := range c.Profiles {
		names[i] = p.Name
	}
	if len(names) == 0 {
		return `; the config has no "profiles"`
	}
	return didYouMean(name, "known are", names)
}

// same reports whether both say the same, however they are written.
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

// Has reports whether a profile has a server.
func (p *Profile) Has(s *Server) bool {
	return len(p.Servers) == 0 || slices.ContainsFunc(p.Servers, func(glob string) bool { return matchesServer(glob, s) })
}

func matchesServer(glob string, s *Server) bool {
	if tag, ok := strings.CutPrefix(glob, tagPrefix); ok {
		return slices.ContainsFunc(s.Tags, func(t string) bool { return Glob(tag, t) })
	}
	return Glob(glob, s.Name)
}

// MatchOriginal is Match for what a server calls original, which globs may also name as
// server/original.
func (f Filter) MatchOriginal(server, original string) bool {
	if len(f.Allow)+len(f.Deny) == 0 {
		return true
	}
	full := server + "/" + original
	fits := func(glob string) bool { return Glob(glob, original) || Glob(glob, full) }
	return (len(f.Allow) == 0 || slices.ContainsFunc(f.Allow, fits)) && !slices.ContainsFunc(f.Deny, fits)
}

// IsEmpty reports whether it lets everything through.
func (f Filter) IsEmpty() bool { return len(f.Allow)+len(f.Deny) == 0 }

func profileKeys() []field[Profile] {
	return []field[Profile]{
		key("servers", "Globs on the names of servers, and tag:GLOB on their tags; empty: all servers.",
			list(text(chooserComplaint)), func(p *Profile) *[]string { return &p.Servers }),
		key("tools", "Which of their tools: globs on the server's own names, or on server/name. `deny` wins.",
			section(filterKeys), func(p *Profile) *Filter { return &p.Tools }),
		key("prompts", "Which of their prompts: globs on the server's own names, or on server/name. `deny` wins.",
			section(filterKeys), func(p *Profile) *Filter { return &p.Prompts }),
		key("resources", "Which of their resources, templates and skills: globs on the server's own URIs, however they are spelled. `deny` wins.",
			section(filterKeys), func(p *Profile) *Filter { return &p.Resources }),
		key("meta_tools", "Which of Goblin's own tools, as in `gateway.meta_tools`, over which it wins.",
			metaTools(), func(p *Profile) *MetaTools { return &p.MetaTools }),
		key("expose", "Which tools are listed. all: those of the profile. search: Goblin's own, by which the others are found and called; these can be called by their names, too.",
			words(ExposeAll, ExposeSearch), func(p *Profile) *Expose { return &p.Expose }),
		key("namespace", "How resources are listed, as in `gateway.namespace`, over which it wins.",
			words(NamespaceURI, NamespaceFlat), func(p *Profile) *Namespace { return &p.Namespace }),
		key("max_result", "How much text of a tool's result clients get at a time, as in `max_result` of servers, over which it wins; off: all of it.",
			sizeOrOff(1<<10), func(p *Profile) *int64 { return &p.MaxResult }),
		key("overrides", "What its clients see of tools, prompts and resources, by server, as in `overrides` of servers, over which it comes.",
			overridesOfServers(), func(p *Profile) *map[string]*definition.Set { return &p.Overrides }),
	}
}

// DefaultView returns the profile of clients that are given none: all servers.
func DefaultView() Profile { return Profile{MetaTools: MetaTools{Unset: true}, Expose: ExposeAll} }

var profileName = pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// profiles is a mapping of names to profiles, in the order of the file.
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
					r.fail(p.key, "%s is not a name for a profile: letters, digits, and after the first also . _ - ; at most 64", quote(p.key.Value))
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

// clientRules is a mapping of globs to names of profiles, in the order of the file.
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

// tags are words. Other clients write what they like under that key.
func tags() kind[[]string] {
	k := list(text(tagComplaint))
	read := k.read
	k.read = func(r *reader, at keyPath, n *yaml.Node, dst *[]string) {
		if r.lenient && n.Kind != yaml.SequenceNode {
			r.warn(n, "%s is no list and is ignored", at)
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

// checkProfiles finds what profiles and clients name in vain.
func (r *reader) checkProfiles(cfg *Config) {
	if len(r.profiles) != len(cfg.Profiles) || len(r.rules) != len(cfg.Clients) {
		return // mistakes in them are told already
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
				r.warn(seen["servers"], "%s: %s fits no server%s", at.key("servers"), quote(glob), r.serverMeant(glob, cfg))
			}
		}
		if p.Namespace == NamespaceFlat {
			r.warn(seen["namespace"], "%s: %s", at.key("namespace"), flatIsNoURI)
		}
		nothing := DefaultView()
		nothing.Name = p.Name
		switch servers := seen["servers"]; {
		case p.same(&nothing):
			r.warn(seen[""], "profile %s names nothing, so its clients see everything", quote(p.Name))
		case servers != nil && len(p.Servers) == 0:
			r.warn(servers, "%s is empty, so the profile has all servers", at.key("servers"))
		}
		if len(cfg.Servers) > 0 && !slices.ContainsFunc(cfg.Servers, func(s Server) bool { return p.Has(&s) }) {
			r.warn(cmp.Or(seen["servers"], seen[""]), "profile %s has no server, so its clients see nothing", quote(p.Name))
		}
	}
	r.checkRules(cfg)
}

// checkRules reports rules for clients whose profile does not exist, and rules that never
// apply.
func (r *reader) checkRules(cfg *Config) {
	for i, rule := range cfg.Clients {
		if _, ok := cfg.Profile(rule.Profile); !ok && rule.Profile != "" {
			r.fail(r.rules[i], "clients: %s has the profile %s, which there is not%s", quote(rule.Glob), quote(rule.Profile), cfg.SuggestProfile(rule.Profile))
		}
		for j, first := range cfg.Clients[:i] {
			if Glob(first.Glob, rule.Glob) {
				r.warn(r.rules[i], "clients: %s never counts, since %s on line %d comes first and fits the same names", quote(rule.Glob), quote(first.Glob), r.rules[j].Line)
				break
			}
		}
	}
}

// serverMeant is the server or tag whose name is like a glob that fits none.
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
