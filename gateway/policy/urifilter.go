// Package policy applies the config's URI filters and overrides to requests.
//
// # Readings
//
// Servers read one URI in different ways. They decode it once or repeatedly, parse it
// like a browser or by RFC 3986, or convert backslashes. They may drop query, fragment
// and parameters, or pass everything after the scheme to the file system. So a URI is
// denied if any of its readings is denied, and allowed if all of them are allowed.
//
// Readings are computed by applying uriSteps until nothing new appears. Most URIs have
// one reading. A URI with more than maxReadings readings, or more than maxBytes bytes in
// them, is refused. So is one that servers may decode differently: control characters,
// "%" without two hex digits, or escapes that are not UTF-8.
//
// Comparing one canonical form isn't enough, because ordinary URIs are not canonical:
// https://host/a?b=c#d, file:/a, C:\a or notes://Host/a. A server that drops a query
// would still reach a denied file.
//
// The cost per URI is at most maxBytes times the length of the globs. Paths are
// case-sensitive, although some file systems are not.
package policy

import (
	"slices"
	"strings"

	"goblin/gateway/config"
)

// URIFilter filters the resources and templates of one server. It is immutable.
type URIFilter struct{ allow, deny []glob }

// NewURIFilter compiles the filters of a server. It returns nil, which permits
// everything, if there are none.
func NewURIFilter(f config.Filter) *URIFilter {
	if len(f.Allow)+len(f.Deny) == 0 {
		return nil
	}
	return &URIFilter{globs(f.Allow), globs(f.Deny)}
}

// Match reports whether the filter permits a URI.
func (f *URIFilter) Match(uri string) bool {
	return f == nil || isUnambiguous(uri) && f.match(uri, uriSteps)
}

// MatchTemplate reports whether the filter permits a URI template as written. Each
// expansion must also pass Match.
func (f *URIFilter) MatchTemplate(template string) bool {
	return f == nil || isText(template) && f.match(template, templateSteps)
}

func (f *URIFilter) match(uri string, steps []func(string) string) bool {
	all, ok := readings(uri, steps)
	if !ok {
		return false
	}
	for i, r := range all {
		if len(f.deny) > 0 && anyDenies(f.deny, r) || len(f.allow) > 0 && !anyAllows(f.allow, r, i > 0) {
			return false
		}
	}
	return true
}

// glob is a config pattern in the forms used for comparison.
type glob struct {
	same   []string // equivalent forms, the original first
	loose  []string // same, and forms without dropped parts
	folded []string // foldHost of each loose form
	local  bool     // the pattern names no host
}

func globs(patterns []string) []glob {
	all := make([]glob, len(patterns))
	for i, p := range patterns {
		g := &all[i]
		g.same = variants(p, sameSteps)
		g.loose = variants(p, looseSteps)
		for _, form := range g.loose {
			folded, _ := foldHost(form, true)
			if !slices.Contains(g.folded, folded) {
				g.folded = append(g.folded, folded)
			}
			_, rest := splitScheme(form)
			g.local = g.local || strings.HasPrefix(rest, "/") && !hasHost(rest)
		}
	}
	return all
}

// variants returns the pattern and all results of the steps. A pattern with too many
// results stays unchanged, since the config is trusted.
func variants(pattern string, steps []func(string) string) []string {
	if all, ok := apply(pattern, steps); ok {
		return all
	}
	return []string{pattern}
}

// anyDenies reports whether a glob matches a reading, or a name that file systems and
// hosts treat as equal.
func anyDenies(globs []glob, reading string) bool {
	bare := trimNames(reading)
	folded, hostless := foldHost(bare, false)
	written := []string{reading, bare, bare + "/"}
	folds := []string{folded, folded + "/"}
	var locals []string
	if hostless != folded {
		locals = []string{hostless, hostless + "/"}
	}
	return slices.ContainsFunc(globs, func(g glob) bool {
		return anyMatches(g.loose, written) || anyMatches(g.folded, folds) || g.local && anyMatches(g.folded, locals)
	})
}

func anyMatches(globs, texts []string) bool {
	for _, g := range globs {
		for i, text := range texts {
			if (i == 0 || text != texts[i-1]) && config.Glob(g, text) {
				return true
			}
		}
	}
	return false
}

// anyAllows reports whether a glob matches a reading. derived is false for the URI itself.
// Derived readings may lack the query, the fragment or parameters.
func anyAllows(globs []glob, reading string, derived bool) bool {
	plain := decoded(reading)
	return slices.ContainsFunc(globs, func(g glob) bool {
		forms := g.same
		if derived {
			forms = g.loose
		}
		return slices.ContainsFunc(forms, func(form string) bool {
			return config.Glob(form, reading) || plain != reading && config.Glob(form, plain)
		})
	})
}
