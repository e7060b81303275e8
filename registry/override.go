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

type listingRule struct {
	*names.Rule
	overrides *definition.Set
}

func newListingRules(servers []string, most int, overrides map[string]*definition.Set) map[string]*listingRule {
	rules := make(map[string]*listingRule, len(servers))
	for s, named := range names.Rules(servers, most) {
		rules[s] = &listingRule{named, overrides[s]}
	}
	return rules
}

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

func (u *listingRule) configName(tool string) string {
	if o := u.overridesOf(Tool)[tool]; o != nil && o.Name != "" {
		return o.Name
	}
	return tool
}

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
			ps.add(slog.LevelWarn, d.name, "override: "+why)
		}
	}
	resolveRenames(drafts, ps)
	for _, name := range slices.Sorted(maps.Keys(idle)) { // names with variables are templates
		if c.kind == Tool || c.kind == Prompt || (c.kind == Template) == strings.Contains(name, "{") {
			ps.add(slog.LevelWarn, name, "overridden in the config but not listed by the server")
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
		ps.add(slog.LevelWarn, d.name, fmt.Sprintf("not renamed to %q by its override: %q already has that name", d.configName, own[other]))
		d.override, d.configName = d.override.WithoutName(), d.name
	}
}

// ByClientName returns a server's visible tool or prompt by its name for clients, or nil.
func (s *Snapshot) ByClientName(server string, k Kind, given string) *Entry {
	if t := s.table(server); t != nil && !t.hidden {
		return t.runs[k].byClientName(hashKey(given), given)
	}
	return nil
}

// ShownList returns a list of the whole catalog as this catalog shows it. other reports
// whether overrides changed its texts; other names or missing entries do not count.
func (s *Snapshot) ShownList(p Part) (shown Part, other bool) {
	if t := s.table(p.Server()); t != nil && t.runs[p.kind] != nil && t.overridden[p.kind] {
		return Part{p.kind, t.runs[p.kind]}, true
	}
	return p, false
}

// ShownEntry returns an entry of the whole catalog as this catalog shows it, or nil.
func (s *Snapshot) ShownEntry(e *Entry) *Entry {
	if t := s.table(e.Server); t != nil {
		return t.runs[e.Kind].name(hashKey(e.Name), e.Name)
	}
	return nil
}
