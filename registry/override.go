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

// listingRule says how the entries of a server are listed, and how the config overrides them.
type listingRule struct {
	*names.Rule
	overrides *definition.Set
}

// newListingRules returns the rules of the configured servers by name. most is the longest listed
// name, in bytes.
func newListingRules(servers []string, most int, overrides map[string]*definition.Set) map[string]*listingRule {
	rules := make(map[string]*listingRule, len(servers))
	for s, named := range names.Rules(servers, most) {
		rules[s] = &listingRule{named, overrides[s]}
	}
	return rules
}

// overridesOf are a server's overrides for things of a kind, nil for none.
func (u *listingRule) overridesOf(k Kind) map[string]*definition.Override {
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

// configName returns the name that the config gives a tool, or else the tool's own name.
func (u *listingRule) configName(tool string) string {
	if o := u.overridesOf(Tool)[tool]; o != nil && o.Name != "" {
		return o.Name
	}
	return tool
}

// applyOverrides applies the config's overrides to drafts.
func applyOverrides(c buildOptions, drafts []draft, ps *listProblems) {
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
		if d.repaired != nil && d.repaired.legacy != nil {
			d.repaired.legacy, _ = apply[c.kind](d.repaired.legacy)
		}
		d.item, d.override = apply[c.kind](d.item)
		if o.Name != "" {
			d.configName = o.Name
		}
		d.item = bytes.Trim(d.item, " \t\r\n")
		d.key = rawjson.Get(d.item, nameMember(c.kind))
		if c.kind == Tool {
			d.links = resourceLinks(d.item)
		}
		for _, why := range d.override.Problems {
			ps.add(slog.LevelWarn, d.name, "in its override, "+why)
		}
	}
	resolveRenames(drafts, ps)
	for _, name := range slices.Sorted(maps.Keys(idle)) { // what has a variable is a template
		if c.kind == Tool || c.kind == Prompt || (c.kind == Template) == strings.Contains(name, "{") {
			ps.add(slog.LevelWarn, name, "it is overridden in the config, but the server does not list it")
		}
	}
}

// resolveRenames drops a rename by an override if another entry already has the new name.
func resolveRenames(drafts []draft, ps *listProblems) {
	own, given := make([]string, len(drafts)), make([]string, len(drafts))
	for i := range drafts {
		own[i], given[i] = drafts[i].name, drafts[i].configName
	}
	for i, other := range definition.CheckRenames(own, given) {
		d := &drafts[i]
		ps.add(slog.LevelWarn, d.name, fmt.Sprintf("not renamed to %q by its override: %q has that name; it keeps its own", d.configName, own[other]))
		d.override, d.configName = d.override.WithoutName(), d.name
	}
}

// ByClientName finds the visible tool or prompt of a server by the name that clients call it by;
// nil for none.
func (s *Snapshot) ByClientName(server string, k Kind, given string) *Entry {
	if t := s.table(server); t != nil && !t.hidden {
		return t.runs[k].byClientName(hashKey(given), given)
	}
	return nil
}

// ShownList is a list of the whole catalog as this one has it, where overrides make it another:
// where the words differ, and not only how things are named or which there are.
func (s *Snapshot) ShownList(p Part) (shown Part, other bool) {
	if t := s.table(p.Server()); t != nil && t.runs[p.kind] != nil && t.overridden[p.kind] {
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
