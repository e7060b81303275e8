package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"goblin/gateway/config"
	"goblin/registry"
	"goblin/registry/definition"
	"goblin/registry/suggest"
)

// ListedNames holds original names by server and kind.
type ListedNames map[string]map[registry.Kind][]string

// Add adds a name.
func (l ListedNames) Add(server string, k registry.Kind, name string) {
	if l[server] == nil {
		l[server] = make(map[registry.Kind][]string)
	}
	l[server][k] = append(l[server][k], name)
}

// NamesIn returns the tools and prompts of a catalog.
func NamesIn(s *registry.Snapshot) ListedNames {
	l := make(ListedNames)
	for _, k := range []registry.Kind{registry.Tool, registry.Prompt} {
		for e := range s.All(k) {
			l.Add(e.Server, k, e.Name)
		}
	}
	return l
}

// UnusedGlobs reports globs of profiles that match no tool or prompt of the profile's
// servers. kinds restricts the report. It skips profiles with a server that lists nothing
// yet. It skips globs of resources, which are not all listed, and deny patterns with
// wildcards for future entries.
func UnusedGlobs(cfg *config.Config, listed ListedNames, kinds ...registry.Kind) (problems []config.Problem) {
	for i := range cfg.Profiles {
		p := &cfg.Profiles[i]
		for _, of := range []struct {
			kind  registry.Kind
			globs config.Filter
		}{{registry.Tool, p.Tools}, {registry.Prompt, p.Prompts}} {
			if of.globs.IsEmpty() || len(kinds) > 0 && !slices.Contains(kinds, of.kind) {
				continue
			}
			names, known := listed.inProfile(cfg, p, of.kind)
			if !known {
				continue
			}
			denied := slices.DeleteFunc(slices.Clone(of.globs.Deny), func(glob string) bool { return strings.ContainsAny(glob, globChars) })
			for _, glob := range append(denied, of.globs.Allow...) {
				one := config.Filter{Allow: []string{glob}}
				if !slices.ContainsFunc(names, func(n listedName) bool { return one.MatchOriginal(n.server, n.name) }) {
					why := fmt.Sprintf("matches no %s of its servers", of.kind)
					if server := filteringServer(cfg, p, of.kind, glob); server != "" {
						why = fmt.Sprintf("is excluded by %q of server %q", configKey(of.kind), server)
					}
					problems = append(problems, config.Problem{
						File: cfg.Path, Line: cfg.ProfileLine(p.Name, configKey(of.kind)),
						Text: fmt.Sprintf("%q in profile %q: %q %s%s", configKey(of.kind), p.Name, glob, why, suggestNames(glob, names)),
					})
				}
			}
		}
	}
	return problems
}

// UnusedRules reports rules with names that no tool or prompt has. It reports nothing
// until all servers have listed, and no URIs and patterns, which may match later.
func UnusedRules(cfg *config.Config, listed ListedNames) (problems []config.Problem) {
	every := config.DefaultView()
	var own []listedName
	for _, k := range []registry.Kind{registry.Tool, registry.Prompt} {
		names, known := listed.inProfile(cfg, &every, k)
		if !known {
			return nil
		}
		own = append(own, names...)
		for _, name := range listed[registry.Local][k] {
			own = append(own, listedName{registry.Local, name})
		}
	}
	var spellings []string
	for _, n := range own {
		spellings = append(spellings, n.name, n.server+"_"+n.name)
	}
	renamed := func(all map[string]*definition.Set) {
		for server, set := range all {
			for _, o := range slices.AppendSeq(slices.Collect(maps.Values(set.Tools)), maps.Values(set.Prompts)) {
				spellings = append(spellings, o.Name, server+"_"+o.Name)
			}
		}
	}
	renamed(cfg.Overrides())
	for i := range cfg.Profiles {
		renamed(cfg.Profiles[i].Overrides)
	}
	for _, r := range cfg.Rules {
		for _, term := range r.UnknownNames(spellings) {
			problems = append(problems, config.Problem{
				File: cfg.Path, Line: r.Line,
				Text: fmt.Sprintf("rule: %s matches no tool or prompt%s", term, suggestNames(strings.TrimLeft(strings.TrimPrefix(term, "name:"), "="), own)),
			})
		}
	}
	return problems
}

// filteringServer returns the server that filters out a glob's name, or "". Without a
// server in the glob, only deny patterns count.
func filteringServer(cfg *config.Config, p *config.Profile, k registry.Kind, glob string) string {
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		own := s.Tools
		if k == registry.Prompt {
			own = s.Prompts
		}
		name, its := strings.CutPrefix(glob, s.Name+"/")
		if !its {
			own.Allow = nil
		}
		if p.Has(s) && !strings.ContainsAny(name, globChars) && !own.Match(name) {
			return s.Name
		}
	}
	return ""
}

// globChars are wildcards.
const globChars = `*?[\`

type listedName struct{ server, name string }

// inProfile returns the names in a profile. known is false if it has no server, or one
// that lists nothing.
func (l ListedNames) inProfile(cfg *config.Config, p *config.Profile, k registry.Kind) (names []listedName, known bool) {
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		if !p.Has(s) {
			continue
		}
		if known = l[s.Name] != nil; !known {
			return nil, false
		}
		for _, name := range l[s.Name][k] {
			names = append(names, listedName{s.Name, name})
		}
	}
	return names, known
}

func suggestNames(glob string, names []listedName) string {
	f := suggest.New(glob)
	for _, n := range names {
		full := n.name
		if strings.Contains(glob, "/") {
			full = n.server + "/" + n.name
		}
		f.Add(full, full)
	}
	return suggest.DidYouMean(f.Best()...)
}
