package registry

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"goblin/registry/definition"
	"goblin/registry/names"
	"goblin/registry/rawjson"
)

// rule says how a server's entries are listed, and what the config has clients see of them.
type rule struct {
	*names.Rule
	overrides *definition.Set
}

// newRules are the rules of the configured servers, in their order, for listed names of so
// many bytes at most.
func newRules(servers []string, most int, overrides map[string]*definition.Set) map[string]*rule {
	rules := make(map[string]*rule, len(servers))
	for s, named := range names.Rules(servers, most) {
		rules[s] = &rule{named, overrides[s]}
	}
	return rules
}

// overridesOf are a server's overrides for things of a kind, nil for none.
func (u *rule) overridesOf(k Kind) map[string]*definition.Override {
	switch {
	case u == nil || u.overrides == nil:
		return nil
	case k == Tool:
		return u.overrides.Tools
	case k == Prompt:
		return u.overrides.Prompts
	case k == Resource || k == Template:
		return u.overrides.Resources
	}
	return nil
}

// given is the name that the config gives a tool, or its own.
func (u *rule) given(tool string) string {
	if o := u.overridesOf(Tool)[tool]; o != nil && o.Name != "" {
		return o.Name
	}
	return tool
}

// override makes drafts what the config has clients see of them.
func override(c recipe, drafts []draft, ps *problems) {
	all := c.rule.overridesOf(c.kind)
	if len(all) == 0 {
		return
	}
	idle := maps.Clone(all)
	for i := range drafts {
		d := &drafts[i]
		o := all[d.name]
		delete(idle, d.name)
		if o == nil {
			continue
		}
		apply := map[Kind]func([]byte) ([]byte, *definition.AppliedOverride){Tool: o.Tool, Prompt: o.Prompt, Resource: o.Resource, Template: o.Resource}
		if d.fixed != nil && d.fixed.legacy != nil {
			d.fixed.legacy, _ = apply[c.kind](d.fixed.legacy)
		}
		d.item, d.over = apply[c.kind](d.item)
		if o.Name != "" {
			d.given = o.Name
		}
		d.item = bytes.Trim(d.item, " \t\r\n")
		d.key = rawjson.Get(d.item, keyOf(c.kind))
		if c.kind == Tool {
			d.links = linksOf(d.item)
		}
		for _, why := range d.over.Problems {
			ps.add(slog.LevelWarn, d.name, "in its override, "+why)
		}
	}
	giveOnce(drafts, ps)
	for _, name := range slices.Sorted(maps.Keys(idle)) { // what has a variable is a template
		if c.kind == Tool || c.kind == Prompt || (c.kind == Template) == strings.Contains(name, "{") {
			ps.add(slog.LevelWarn, name, "it is overridden in the config, but the server does not list it")
		}
	}
}

// giveOnce takes names away that overrides give to two, or that another has by itself:
// those keep their own.
func giveOnce(drafts []draft, ps *problems) {
	own, given := make([]string, len(drafts)), make([]string, len(drafts))
	for i := range drafts {
		own[i], given[i] = drafts[i].name, drafts[i].given
	}
	for i, other := range definition.CheckRenames(own, given) {
		d := &drafts[i]
		ps.add(slog.LevelWarn, d.name, fmt.Sprintf("not renamed to %q by its override: %q has that name; it keeps its own", d.given, own[other]))
		d.over, d.given = d.over.WithoutName(), d.name
	}
}

// ByClientName finds the visible tool or prompt of a server by the name that clients call it by;
// nil for none.
func (s *Snapshot) ByClientName(server string, k Kind, given string) *Entry {
	if t := s.table(server); t != nil && !t.hidden {
		return t.runs[k].called(hashKey(given), given)
	}
	return nil
}

// ShownList is a list of the whole catalog as this one has it, where overrides make it another:
// where the words differ, and not only how things are named or which there are.
func (s *Snapshot) ShownList(p Part) (shown Part, other bool) {
	if t := s.table(p.Server()); t != nil && t.runs[p.kind] != nil && t.other[p.kind] {
		return Part{p.kind, t.runs[p.kind]}, true
	}
	return p, false
}

// ShownEntry is an entry of the whole catalog as this one has it, nil where it has not.
func (s *Snapshot) ShownEntry(e *Entry) *Entry {
	if t := s.table(e.Server); t != nil {
		return t.runs[e.Kind].name(hashKey(e.Name), e.Name)
	}
	return nil
}
