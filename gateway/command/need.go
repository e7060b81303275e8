package command

import (
	"path/filepath"
	"slices"
	"strings"

	"goblin/gateway/config"
)

// startable reports whether a server would be started at all.
func startable(s *config.Server) bool { return !s.Disabled && s.Problem == "" }

// usable checks a server that the user named.
func usable(cfg *config.Config, name string) error {
	s, ok := cfg.Server(name)
	switch {
	case !ok:
		return Fail(CodeNotFound, "there is no server %q%s", name, meant(name, serverNames(cfg), "; the config names none"))
	case s.Disabled:
		return Fail(CodeConnect, "server %q is disabled; remove \"disabled: true\" from %s", name, configName(cfg))
	case s.Problem != "":
		return Fail(CodeConnect, "server %q cannot start: %s", name, s.Problem)
	}
	return nil
}

func serverNames(cfg *config.Config) []string {
	names := make([]string, len(cfg.Servers))
	for i := range cfg.Servers {
		names[i] = cfg.Servers[i].Name
	}
	return names
}

// configName is a config as a user knows it.
func configName(cfg *config.Config) string {
	return fileName(cfg.Path)
}

// fileName is the same for a config that was only found.
func fileName(path string) string {
	if path == "" {
		return "the demo config"
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// settled reports that a name says for certain whose it is, if the server is in
// the config.
func settled(server, name string) bool {
	return strings.HasPrefix(name, "mcp://"+server+"/") || strings.HasPrefix(name, server+"/")
}

// owners guesses from a name which servers can own it, so that nothing else
// has to be started; nil when it tells nothing. The guess only saves time:
// names are resolved by the gateway.
func owners(cfg *config.Config, k kind, name string) []string {
	var found []string
	for i := range cfg.Servers {
		if s := cfg.Servers[i].Name; k.owns(s, name) {
			found = append(found, s)
		}
	}
	return found
}

// kind is one of the lists and what it is about.
type kind struct {
	list  string // the list, as it is typed
	noun  string
	typed string // what a name of it is called in help texts
	owns  func(server, name string) bool
}

var (
	toolKind = kind{"tools", "tool", "TOOL", func(server, name string) bool {
		prefix := strings.Map(func(r rune) rune {
			if r == '.' {
				return '_'
			}
			return r
		}, server)
		return strings.HasPrefix(name, prefix+"_") || strings.HasPrefix(name, server+"/")
	}}
	promptKind = kind{"prompts", "prompt", "NAME", func(server, name string) bool {
		return strings.HasPrefix(name, server+"/") || strings.HasPrefix(name, server+"_")
	}}
	resourceKind = kind{"resources", "resource", "URI", func(server, name string) bool {
		return strings.HasPrefix(name, "mcp://"+server+"/") || strings.HasPrefix(name, server+"_")
	}}
)

// nearest are the names most like a wrong one, at most three.
func nearest(wrong string, names []string) []string {
	type scored struct {
		name  string
		score float64
	}
	grams := newBigrams(essence(wrong))
	var best []scored
	for _, name := range names {
		score := grams.likeness(essence(name))
		if score < 0.5 {
			continue
		}
		i, _ := slices.BinarySearchFunc(best, score, func(s scored, score float64) int {
			if s.score >= score {
				return -1
			}
			return 1
		})
		if i < 3 {
			best = slices.Insert(best, i, scored{name, score})
			best = best[:min(len(best), 3)]
		}
	}
	out := make([]string, 0, len(best))
	for _, b := range best {
		if b.score >= 0.75*best[0].score { // the rest was not meant
			out = append(out, b.name)
		}
	}
	return out
}

// essence is what tells names apart.
func essence(name string) string {
	return strings.TrimPrefix(strings.ToLower(name), "mcp://")
}

// bigrams counts the pairs of neighbours in a text, by their two bytes.
type bigrams struct {
	count [1 << 16]int16
	total int
}

func newBigrams(s string) *bigrams {
	g := new(bigrams)
	each(s, func(pair uint16) { g.count[pair]++; g.total++ })
	return g
}

// each gives the pairs of s, of which the first begins before it.
func each(s string, do func(pair uint16)) {
	before := byte('^')
	for i := range min(len(s), 1<<11) {
		do(uint16(before)<<8 | uint16(s[i]))
		before = s[i]
	}
}

// likeness is the Dice coefficient of the pairs of both texts: 1 for equal
// ones, 0 for texts that share nothing.
func (g *bigrams) likeness(name string) float64 {
	shared, total := 0, g.total
	each(name, func(pair uint16) {
		total++
		if g.count[pair] > 0 {
			shared++
		}
		g.count[pair]--
	})
	each(name, func(pair uint16) { g.count[pair]++ })
	if total == 0 {
		return 0
	}
	return 2 * float64(shared) / float64(total)
}

// meant is "; did you mean …?" if something is near, else the names if they
// are few, else none.
func meant(wrong string, names []string, none string) string {
	near := nearest(wrong, names)
	switch {
	case len(near) > 0:
		return "; did you mean " + quoted(near, " or ") + "?"
	case len(names) > 0 && len(names) <= 8:
		return "; there are " + quoted(names, ", ")
	case len(names) == 0:
		return none
	}
	return ""
}

func quoted(names []string, sep string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = `"` + n + `"`
	}
	return strings.Join(out, sep)
}
