package config

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"goblin/registry/definition"
	"goblin/registry/rawjson"
	"goblin/registry/suggest"
)

// OverrideTarget identifies the entry that an override changes.
type OverrideTarget struct {
	Profile string // "" for the server's own overrides
	Server  string
	Kind    string // "tools", "prompts" or "resources"
	Name    string // the server's own name
}

// OverrideLine returns the line of an override in the file, or 0 if there is none.
func (c *Config) OverrideLine(at OverrideTarget) int { return c.overrideLines[at] }

// Overrides returns the overrides of servers by server name.
func (c *Config) Overrides() map[string]*definition.Set {
	var all map[string]*definition.Set
	for i := range c.Servers {
		if s := &c.Servers[i]; s.Overrides != nil {
			if all == nil {
				all = make(map[string]*definition.Set)
			}
			all[s.Name] = s.Overrides
		}
	}
	return all
}

const (
	overrideName   = `^[A-Za-z0-9_-]{1,128}$`
	overridePrompt = `^[A-Za-z0-9_.-]{1,128}$`
)

var (
	overrideNameSyntax   = pattern(overrideName)
	overridePromptSyntax = pattern(overridePrompt)
)

func overrideNameComplaint(s string) string {
	if !overrideNameSyntax().MatchString(s) {
		return "is not a valid tool name; use 1 to 128 letters, digits, _ and -"
	}
	return ""
}

func overridePromptComplaint(s string) string {
	if !overridePromptSyntax().MatchString(s) {
		return "is not a valid prompt name; use 1 to 128 letters, digits, . _ and -"
	}
	return ""
}

func emptyComplaint(s string) string {
	if s == "" {
		return "is empty"
	}
	return noNUL(s)
}

func overrideKeys() []field[definition.Set] {
	return []field[definition.Set]{
		key("tools", "By the server's own tool names.",
			byOwnName("tools", toolOverrideKeys), func(s *definition.Set) *map[string]*definition.Override { return &s.Tools }),
		key("prompts", "By the server's own prompt names.",
			byOwnName("prompts", promptOverrideKeys), func(s *definition.Set) *map[string]*definition.Override { return &s.Prompts }),
		key("resources", "By the server's own resource URIs and URI templates.",
			byOwnName("resources", resourceOverrideKeys), func(s *definition.Set) *map[string]*definition.Override { return &s.Resources }),
	}
}

func toolOverrideKeys() []field[definition.Override] {
	return append(textOverrideKeys(
		key("name", "Name for clients, after the server's prefix.",
			text(overrideNameComplaint), func(o *definition.Override) *string { return &o.Name })),
		key("annotations", "Hints, merged with the server's.",
			annotations(), func(o *definition.Override) *[]definition.Member { return &o.Annotations }),
		key("arguments", "Arguments that are added to each call. Clients don't see them and can't set them.",
			values(), func(o *definition.Override) *[]definition.Member { return &o.Arguments }))
}

func promptOverrideKeys() []field[definition.Override] {
	return append(textOverrideKeys(
		key("name", "Name for clients, after the server's prefix.",
			text(overridePromptComplaint), func(o *definition.Override) *string { return &o.Name })),
		key("arguments", "Arguments that are always added. Clients don't see them and can't set them.",
			values(), func(o *definition.Override) *[]definition.Member { return &o.Arguments }))
}

func resourceOverrideKeys() []field[definition.Override] {
	return textOverrideKeys(key("name", "Display name; the URI stays.",
		text(emptyComplaint), func(o *definition.Override) *string { return &o.Label }))
}

func textOverrideKeys(name field[definition.Override]) []field[definition.Override] {
	return []field[definition.Override]{
		name,
		key("title", "Title instead of the server's.",
			optional(text(noNUL)), func(o *definition.Override) **string { return &o.Title }),
		key("description", "Description instead of the server's.",
			optional(text(noNUL)), func(o *definition.Override) **string { return &o.Description }),
	}
}

func optional[V any](k kind[V]) kind[*V] {
	return kind[*V]{
		schema: func(*V) object {
			var zero V
			return k.schema(zero)
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst **V) {
			var v V
			before := len(r.errs)
			k.read(r, at, n, &v)
			if len(r.errs) == before {
				*dst = &v
			}
		},
	}
}

// onlyTexts is the kind whose overrides change only texts.
const onlyTexts = "resources"

type unreadyOverride struct {
	OverrideTarget
	why string
}

func (r *reader) isUnready(of OverrideTarget) bool {
	return slices.ContainsFunc(r.unreadyOverrides, func(u unreadyOverride) bool { return u.OverrideTarget == of })
}

// dropUnready hides entries whose overrides are not ready. A call without an argument
// that the override fixes would do something else.
func (r *reader) dropUnready(p *Profile) {
	filters := map[string]*Filter{"tools": &p.Tools, "prompts": &p.Prompts}
	for _, u := range r.unreadyOverrides {
		f := filters[u.Kind]
		if f == nil || !f.MatchOriginal(u.Server, u.Name) {
			continue
		}
		f.Deny = append(f.Deny, literalGlob.Replace(u.Server+"/"+u.Name))
		if p.Pending == nil {
			p.Pending = make(map[OverrideTarget]string)
		}
		p.Pending[u.OverrideTarget] = u.why
	}
	r.unreadyOverrides = nil
}

var literalGlob = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`)

func byOwnName(of string, table func() []field[definition.Override]) kind[map[string]*definition.Override] {
	return kind[map[string]*definition.Override]{
		schema: func(map[string]*definition.Override) object {
			return object{"type": []string{"object", "null"}, "additionalProperties": tableSchema(table(), new(definition.Override))}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *map[string]*definition.Override) {
			for _, p := range r.pairs(at, n) {
				o := new(definition.Override)
				place := r.overriding
				place.Kind, place.Name = of, p.key.Value
				if place.Profile != "" {
					r.override = &place
				}
				readTable(r, at.key(p.key.Value), table(), p.val, o)
				r.override = nil
				if of == onlyTexts && r.isUnready(place) {
					continue // leaving out a text is harmless
				}
				if *dst == nil {
					*dst = make(map[string]*definition.Override)
				}
				(*dst)[p.key.Value] = o
				if r.overrides == nil {
					r.overrides = make(map[OverrideTarget]*yaml.Node)
				}
				r.overrides[place] = p.key
			}
		},
	}
}

func overridesOfServers() kind[map[string]*definition.Set] {
	set := section(overrideKeys)
	return kind[map[string]*definition.Set]{
		schema: func(map[string]*definition.Set) object {
			return object{"type": []string{"object", "null"}, "additionalProperties": set.schema(definition.Set{})}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *map[string]*definition.Set) {
			for _, p := range r.pairs(at, n) {
				r.overriding.Server = p.key.Value
				s := new(definition.Set)
				set.read(r, at.key(p.key.Value), p.val, s)
				if *dst == nil {
					*dst = make(map[string]*definition.Set)
				}
				(*dst)[p.key.Value] = s
				r.overriddenBy = append(r.overriddenBy, overriddenBy{r.overriding.Profile, p.key})
			}
		},
	}
}

type overriddenBy struct {
	profile string
	key     *yaml.Node
}

var hints = []string{"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}

func annotations() kind[[]definition.Member] {
	title := text(noNUL)
	return kind[[]definition.Member]{
		schema: func([]definition.Member) object {
			keys := object{"title": title.schema("")}
			for _, name := range hints[1:] {
				keys[name] = object{"type": "boolean"}
			}
			return object{"type": []string{"object", "null"}, "additionalProperties": false, "properties": keys}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *[]definition.Member) {
			*dst = nil
			for _, p := range r.pairs(at, n) {
				within, at := at, at.key(p.key.Value)
				switch name := p.key.Value; {
				case !slices.Contains(hints, name):
					r.unknown(within, p.key, hints)
				case name == hints[0]:
					var s string
					title.read(r, at, p.val, &s)
					*dst = append(*dst, definition.Member{Name: name, Value: rawjson.Quote(s)})
				default:
					var b bool
					flag().read(r, at, p.val, &b)
					*dst = append(*dst, definition.Member{Name: name, Value: strconv.AppendBool(nil, b)})
				}
			}
		},
	}
}

func values() kind[[]definition.Member] {
	return kind[[]definition.Member]{
		schema: func([]definition.Member) object { return object{"type": []string{"object", "null"}} },
		read: func(r *reader, at keyPath, n *yaml.Node, dst *[]definition.Member) {
			given := make(map[string][]byte)
			for _, p := range r.pairs(at, n) {
				if raw, ok := r.raw(at.key(p.key.Value), p.val); ok {
					given[p.key.Value] = raw
				}
			}
			*dst = nil
			for _, name := range slices.Sorted(maps.Keys(given)) {
				*dst = append(*dst, definition.Member{Name: name, Value: given[name]})
			}
		},
	}
}

func (r *reader) raw(at keyPath, n *yaml.Node) (raw []byte, ok bool) {
	n = target(n)
	switch n.Kind {
	case yaml.SequenceNode:
		raw = []byte{'['}
		for i, c := range n.Content {
			one, ok := r.raw(at.item(i), c)
			if !ok {
				return nil, false
			}
			if i > 0 {
				raw = append(raw, ',')
			}
			raw = append(raw, one...)
		}
		return append(raw, ']'), true
	case yaml.MappingNode:
		raw = []byte{'{'}
		for _, p := range r.pairs(at, n) {
			one, ok := r.raw(at.key(p.key.Value), p.val)
			if !ok {
				return nil, false
			}
			raw = rawjson.AppendMember(raw, rawjson.Quote(p.key.Value), one)
		}
		return append(raw, '}'), true
	}
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return []byte("null"), true
	case "!!bool":
		b, ok := boolean(n)
		return strconv.AppendBool(nil, b), ok
	case "!!int", "!!float":
		if rawjson.Valid([]byte(n.Value)) == nil {
			return []byte(n.Value), true
		}
		if i, ok := integer(n); ok {
			return strconv.AppendInt(nil, i, 10), true
		}
		var f float64
		if n.Decode(&f) == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return strconv.AppendFloat(nil, f, 'g', -1, 64), true
		}
		r.fail(n, "%s is a number that JSON cannot represent", at)
		return nil, false
	}
	s, ok := r.text(at, n, false)
	switch {
	case !ok:
	case r.server != nil:
		r.server.overridden = append(r.server.overridden, r.named...)
	default:
		r.overridden = append(r.overridden, r.named...)
	}
	return rawjson.Quote(s), ok
}

// checkOverrides reports overrides without effect and several entries with one name.
func (r *reader) checkOverrides(cfg *Config) {
	for _, name := range r.overridden {
		if cfg.variables == nil {
			cfg.variables = make(map[string]string)
		}
		cfg.variables[name], _ = r.env(name)
	}
	for at, n := range r.overrides {
		if cfg.overrideLines == nil {
			cfg.overrideLines = make(map[OverrideTarget]int)
		}
		cfg.overrideLines[at] = n.Line
	}
	names := make([]string, len(cfg.Servers))
	for i := range cfg.Servers {
		names[i] = cfg.Servers[i].Name
		r.checkEqual(OverrideTarget{Server: names[i]}, cfg.Servers[i].Overrides, nil)
	}
	for _, by := range r.overriddenBy {
		if i := slices.Index(names, by.key.Value); i < 0 {
			tail := ""
			if guess := nearest(by.key.Value, names); guess != "" {
				tail = suggest.DidYouMean(guess)
			}
			r.warn(by.key, `"overrides" in profile %s: unknown server %s%s`, quote(by.profile), quote(by.key.Value), tail)
		} else if p, ok := cfg.Profile(by.profile); ok && !p.Has(&cfg.Servers[i]) {
			r.warn(by.key, `"overrides" in profile %s: the profile does not include server %s`, quote(by.profile), quote(by.key.Value))
		}
	}
	for _, p := range cfg.Profiles {
		for server, set := range p.Overrides {
			if s, ok := cfg.Server(server); ok {
				r.checkEqual(OverrideTarget{Profile: p.Name, Server: server}, set.Merge(s.Overrides), s.Overrides)
			}
		}
	}
}

// checkEqual reports entries with one name, unless below already does.
func (r *reader) checkEqual(at OverrideTarget, set, below *definition.Set) {
	if set == nil {
		return
	}
	if below == nil {
		below = new(definition.Set)
	}
	for _, kind := range []struct {
		at, one    string
		all, known map[string]*definition.Override
	}{{"tools", "tool", set.Tools, below.Tools}, {"prompts", "prompt", set.Prompts, below.Prompts}} {
		at.Kind = kind.at
		given := func(name string, by map[string]*definition.Override) string {
			if o := by[name]; o != nil && o.Name != "" {
				return o.Name
			}
			return name
		}
		first := make(map[string]string)
		for _, own := range []bool{true, false} { // an unrenamed entry keeps its name
			for _, name := range slices.Sorted(maps.Keys(kind.all)) {
				is := given(name, kind.all)
				if (is == name) != own {
					continue
				}
				other, taken := first[is]
				if !taken {
					first[is] = name
					continue
				}
				if at.Profile != "" && given(name, kind.known) == is && given(other, kind.known) == is {
					continue // reported for the server
				}
				at.Name = name
				n := r.overrides[at]
				if n == nil { // the other one has the override
					n = r.overrides[OverrideTarget{Profile: at.Profile, Server: at.Server, Kind: at.Kind, Name: other}]
				}
				if n == nil {
					n = r.overrides[OverrideTarget{Server: at.Server, Kind: at.Kind, Name: name}]
				}
				r.warn(n, "the overrides of server %s give the %ss %s and %s the same name %s, so %s keeps its own",
					quote(at.Server), kind.one, quote(other), quote(name), quote(is), quote(name))
			}
		}
	}
}
