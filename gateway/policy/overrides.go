package policy

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/definition"
	"goblin/registry/rawjson"
	"goblin/registry/suggest"
)

// OverriddenEntry is an entry that a server lists.
type OverriddenEntry struct {
	Server     string
	Kind       registry.Kind
	Name       string // the server's name for it
	Definition []byte // from the server; may contain another name
}

// CatalogEntries returns the servers' entries in a catalog, before overrides.
func CatalogEntries(s *registry.Snapshot) iter.Seq[OverriddenEntry] {
	return func(yield func(OverriddenEntry) bool) {
		for _, k := range []registry.Kind{registry.Tool, registry.Prompt, registry.Resource, registry.Template} {
			for e := range s.All(k) {
				t := OverriddenEntry{e.Server, k, e.Name, e.JSON()}
				if e.Override != nil {
					t.Definition = e.Original
				}
				if !yield(t) {
					return
				}
			}
		}
	}
}

var keys = map[registry.Kind]string{registry.Tool: "tools", registry.Prompt: "prompts", registry.Resource: "resources", registry.Template: "resources"}

type entriesByName map[string]map[string]OverriddenEntry

// CheckOverrides reports overrides that match no entry or don't fit it. It skips servers
// without entries, and kinds other than kinds if any are given.
func CheckOverrides(cfg *config.Config, things iter.Seq[OverriddenEntry], kinds ...registry.Kind) (problems []config.Problem) {
	servers := make(map[string]entriesByName)
	for name := range cfg.Overrides() {
		servers[name] = nil
	}
	for _, p := range cfg.Profiles {
		for name := range p.Overrides {
			servers[name] = nil
		}
	}
	if len(servers) == 0 {
		return nil
	}
	for t := range things {
		if _, overridden := servers[t.Server]; !overridden {
			continue
		}
		if servers[t.Server] == nil {
			servers[t.Server] = entriesByName{"tools": {}, "prompts": {}, "resources": {}}
		}
		servers[t.Server][keys[t.Kind]][t.Name] = t
	}
	c := checker{cfg: cfg, kinds: make(map[string]bool)}
	for _, k := range kinds {
		c.kinds[keys[k]] = true
	}
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		c.check(config.OverrideTarget{Server: s.Name}, s, s.Overrides, s.Overrides, servers[s.Name])
	}
	for _, p := range cfg.Profiles {
		for name, set := range p.Overrides {
			if s, ok := cfg.Server(name); ok {
				c.check(config.OverrideTarget{Profile: p.Name, Server: name}, s, set, set.Merge(s.Overrides), servers[name])
			}
		}
	}
	slices.SortStableFunc(c.problems, func(a, b config.Problem) int { return cmp.Or(a.Line-b.Line, cmp.Compare(a.Text, b.Text)) })
	return c.problems
}

type checker struct {
	cfg      *config.Config
	kinds    map[string]bool
	problems []config.Problem
}

func (c *checker) report(at config.OverrideTarget, format string, args ...any) {
	where := fmt.Sprintf("overrides of server %q", at.Server)
	if at.Profile != "" {
		where += fmt.Sprintf(" in profile %q", at.Profile)
	}
	c.problems = append(c.problems, config.Problem{File: c.cfg.Path, Line: c.cfg.OverrideLine(at), Text: where + ": " + fmt.Sprintf(format, args...)})
}

// all also contains the overrides that set inherits.
func (c *checker) check(at config.OverrideTarget, s *config.Server, set, all *definition.Set, has entriesByName) {
	if set == nil || has == nil {
		return
	}
	uris := NewURIFilter(s.Resources)
	for _, kind := range []struct {
		key, one string
		set, all map[string]*definition.Override
		permits  func(name string) bool
	}{
		{"tools", "tool", set.Tools, all.Tools, s.Tools.Match},
		{"prompts", "prompt", set.Prompts, all.Prompts, s.Prompts.Match},
		{"resources", "resource or template", set.Resources, all.Resources, func(name string) bool { return uris.Match(name) || uris.MatchTemplate(name) }},
	} {
		if len(c.kinds) > 0 && !c.kinds[kind.key] {
			continue
		}
		at.Kind = kind.key
		for _, name := range slices.Sorted(maps.Keys(kind.set)) {
			at.Name = name
			o := kind.set[name]
			t, ok := has[kind.key][name]
			if !ok {
				f := suggest.New(name)
				for other := range has[kind.key] {
					f.Add(other, other)
				}
				best := f.Best()
				slices.Sort(best)
				problem := fmt.Sprintf("unknown %s %q", kind.one, name)
				if !kind.permits(name) { // it may still exist
					problem = fmt.Sprintf("%s %q is hidden by the server's %q filter", kind.one, name, kind.key)
				}
				c.report(at, "%s%s", problem, suggest.DidYouMean(best...))
				continue
			}
			if other, taken := has[kind.key][o.Name]; taken && (kind.all[other.Name] == nil || kind.all[other.Name].Name == "") {
				c.report(at, "cannot rename %s %q to %q: the server already has that name", kind.one, name, o.Name)
			}
			var applied *definition.AppliedOverride
			switch t.Kind {
			case registry.Tool:
				_, applied = o.Tool(t.Definition)
			case registry.Prompt:
				_, applied = o.Prompt(t.Definition)
			default:
				continue
			}
			for _, why := range applied.Problems {
				c.report(at, "%s %q: %s", kind.one, name, why)
			}
		}
	}
}

// FillOverrides adds an edit that sets the overridden arguments of an entry in the member
// at path of params. The error is meant for the client.
func FillOverrides(e *registry.Entry, params []byte, edits []rawjson.Edit, path ...string) ([]rawjson.Edit, error) {
	if len(e.Override.Fill) == 0 {
		return edits, nil
	}
	one, err := e.Override.Fill.Edit(params, path...)
	if err != nil {
		return nil, invalidParams(err)
	}
	edits = append(slices.Clone(edits), one)
	slices.SortFunc(edits, func(a, b rawjson.Edit) int { return a.Start - b.Start })
	return edits, nil
}

// FillCompletion is FillOverrides for completion/complete. It refuses to complete an
// overridden argument.
func FillCompletion(t registry.Target, params []byte, edits []rawjson.Edit) ([]rawjson.Edit, error) {
	if t.Entry == nil || t.Entry.Override == nil {
		return edits, nil
	}
	if name, ok := rawjson.String(rawjson.Path(params, "argument", "name")); ok {
		if err := t.Entry.Override.Fill.Permits(name); err != nil {
			return nil, invalidParams(err)
		}
	}
	return FillOverrides(t.Entry, params, edits, "context", "arguments")
}

func invalidParams(err error) error {
	e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	var fixed *definition.FixedError
	if errors.As(err, &fixed) {
		e.Data = rawjson.Object("code", "ARGUMENT_FIXED", "argument", fixed.Argument)
	}
	return e
}
