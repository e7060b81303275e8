// Package policy applies the config's URI filters and overrides to requests.
//
// # Readings
//
// Servers read one URI in different ways. They decode it once or more often, parse it like
// a browser or by RFC 3986, turn backslashes, drop query, fragment and parameters, or cut
// the scheme off and give the rest to the file system. So a URI is denied if the filter
// denies any of its readings, and allowed if the filter allows all of them.
//
// The readings are found by applying the functions of uriSteps until nothing new appears.
// Most URIs have one reading. A URI with more than maxReadings readings, or more than
// maxBytes bytes in them, is refused. So is one whose characters readers decode
// differently: with control characters, a "%" without two digits, or escapes that are no
// UTF-8.
//
// One canonical form does not suffice. Ordinary URIs are not canonical, such as
// https://host/a?b=c#d, proxy://host/https://other, file:/a, C:\a or notes://Host/a. A server
// that drops a query still reaches the denied file behind it.
//
// The work for a URI is at most maxBytes times the length of the globs. Letters of paths
// are compared with their case, though some file systems ignore it.
package policy

import (
	"slices"
	"strings"

	"goblin/gateway/config"
)

// URIFilter has the filters of one server's resources and templates. It is immutable.
type URIFilter struct{ allow, deny []glob }

// NewURIFilter compiles the filters of a server. It returns nil, which lets everything
// through, if there are none.
func NewURIFilter(f config.Filter) *URIFilter {
	if len(f.Allow)+len(f.Deny) == 0 {
		return nil
	}
	return &URIFilter{globs(f.Allow), globs(f.Deny)}
}

// Match reports whether a URI is let through.
func (f *URIFilter) Match(uri string) bool {
	return f == nil || isUnambiguous(uri) && f.match(uri, uriSteps)
}

// MatchTemplate reports whether a URI template is let through as it is written. Each of
// its expansions must pass Match, too.
func (f *URIFilter) MatchTemplate(template string) bool {
	return f == nil || isText(template) && f.match(template, templateSteps)
}

// match reports whether all readings of a URI pass.
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

// glob is a pattern of the config in the forms that it is compared in.
type glob struct {
	same   []string // forms of the same meaning, the written one first
	loose  []string // the same, also with parts dropped that readers drop
	folded []string // loose, each by foldHost
	local  bool     // the pattern names no host
}

// globs compiles patterns.
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

// variants returns the pattern and all results of the steps. A pattern with too many stays
// as it is, since the config is trusted.
func variants(pattern string, steps []func(string) string) []string {
	if all, ok := apply(pattern, steps); ok {
		return all
	}
	return []string{pattern}
}

// anyDenies reports whether a glob matches a reading, or a name that file systems and hosts
// treat as equal.
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

// anyMatches reports whether a glob matches a text.
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

// anyAllows reports whether a glob matches a reading. derived means that the reading is not
// the URI itself. Then parts that readers drop may be missing.
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
