package replay

import (
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"goblin/gateway/state"
	"goblin/registry/compare"
)

// Limits of a file of rules.
const (
	maxRulesFile = 1 << 20 // bytes
	maxRules     = 1000
)

// Rules are parts of params that do not count when requests are compared. Nil has none.
type Rules struct {
	rules []rule
}

// rule applies to requests that match its globs; "" matches all.
type rule struct {
	Server, Method, Name string
	Paths                []string

	paths compare.Patterns
}

// ReadRules reads a file of rules:
//
//	ignore:
//	  - paths: [arguments.now, "arguments.items[*].id"]
//	  - {server: files, method: tools/call, name: "read_*", paths: [arguments.session]}
//
// server, method and name are globs on the server's own names. Paths begin at the params
// and have the syntax of "goblin diff --ignore": arguments.rows[*].when, ..id, _meta['acme/id'].
func ReadRules(file string) (*Rules, error) {
	text, err := state.ReadNamed(file, maxRulesFile)
	if err != nil {
		return nil, err
	}
	rules, err := ParseRules(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return rules, nil
}

// ParseRules parses the text of a file of rules.
func ParseRules(text []byte) (*Rules, error) {
	var parsed struct {
		Ignore []rule `yaml:"ignore"`
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&parsed); err != nil {
		return nil, fmt.Errorf("not a file of rules: %w", err)
	}
	if len(parsed.Ignore) > maxRules {
		return nil, fmt.Errorf("%d rules; the limit is %d", len(parsed.Ignore), maxRules)
	}
	for i := range parsed.Ignore {
		r := &parsed.Ignore[i]
		for _, glob := range []string{r.Server, r.Method, r.Name} {
			if _, err := path.Match(glob, ""); err != nil {
				return nil, fmt.Errorf("rule %d: invalid glob %q", i+1, glob)
			}
		}
		if len(r.Paths) == 0 {
			return nil, fmt.Errorf("rule %d has no paths", i+1)
		}
		paths, err := compare.ParsePatterns(r.Paths)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		r.paths = paths
	}
	return &Rules{rules: parsed.Ignore}, nil
}

// of returns the rules of a server.
func (r *Rules) of(server string) *Rules {
	if r == nil {
		return nil
	}
	own := new(Rules)
	for _, one := range r.rules {
		if matches(one.Server, server) {
			own.rules = append(own.rules, one)
		}
	}
	return own
}

func (r *Rules) apply(t target, members map[string]any) {
	if r == nil {
		return
	}
	for _, one := range r.rules {
		if matches(one.Method, t.method) && matches(one.Name, t.name) {
			one.paths.Remove(members)
		}
	}
}

// matches reports whether a name matches a glob. Unlike path.Match, * matches slashes.
func matches(glob, name string) bool {
	if glob == "" {
		return true
	}
	const slash = "\x00"
	ok, _ := path.Match(strings.ReplaceAll(glob, "/", slash), strings.ReplaceAll(name, "/", slash))
	return ok
}
