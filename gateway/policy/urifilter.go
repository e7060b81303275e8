// Package policy decides which URIs of a server clients may have. It is told
// what the config allows and denies, and answers for listed URIs and templates
// as well as for those that a client makes up.
//
// A URI is read in many ways: servers decode it, once or more often, parse it
// as browsers or as RFC 3986 say, turn backslashes, drop query, fragment and
// parameters, or cut the scheme off and hand the rest to the file system. So a
// URI is denied when any of its readings is, and allowed when all of them are.
// Readings are found by applying a few functions again and again until nothing
// new comes, which covers every order of them. A URI with more than maxReadings
// readings, or more than maxBytes bytes in them, is refused, and so is one that
// readers are bound to disagree about: with control characters, with "%" that
// begins no escape, or with escapes that make no UTF-8.
//
// The work for one URI is bounded by maxBytes times the length of the globs.
// Letters of paths are not folded, though some file systems do.
package policy

import (
	"slices"
	"strings"

	"goblin/gateway/config"
)

// URIFilter are the filters of one server's resources and templates. It is
// immutable.
type URIFilter struct{ allow, deny []glob }

// NewURIFilter prepares the filters of a server. Without any, it is nil, which lets
// everything through.
func NewURIFilter(f config.Filter) *URIFilter {
	if len(f.Allow)+len(f.Deny) == 0 {
		return nil
	}
	return &URIFilter{globs(f.Allow), globs(f.Deny)}
}

// Match reports whether a URI is let through.
func (f *URIFilter) Match(uri string) bool {
	return f == nil || f.match(uri, sound(uri), steps)
}

// MatchTemplate reports whether a URI template is let through, as it is
// written: each of its expansions has to pass Match.
func (f *URIFilter) MatchTemplate(template string) bool {
	return f == nil || f.match(template, clean(template), templateSteps)
}

func (f *URIFilter) match(uri string, sound bool, steps []func(string) string) bool {
	if !sound {
		return false
	}
	all, ok := readings(uri, steps)
	if !ok {
		return false
	}
	for i, r := range all {
		if len(f.deny) > 0 && denied(f.deny, r) || len(f.allow) > 0 && !allowed(f.allow, r, i > 0) {
			return false
		}
	}
	return true
}

// glob is a pattern of the config in the forms that it is compared in.
type glob struct {
	same   []string // what means the same as it was written, which comes first
	loose  []string // and what is left of that when a reader drops something
	folded []string // loose, as by fold
	local  bool     // it names no host
}

func globs(patterns []string) []glob {
	all := make([]glob, len(patterns))
	for i, p := range patterns {
		g := &all[i]
		g.same = closure(p, sameSteps)
		g.loose = closure(p, looseSteps)
		for _, form := range g.loose {
			folded, _ := fold(form, true)
			if !slices.Contains(g.folded, folded) {
				g.folded = append(g.folded, folded)
			}
			_, rest := split(form)
			g.local = g.local || strings.HasPrefix(rest, "/") && !named(rest)
		}
	}
	return all
}

// closure returns all patterns that come of one by the steps, again and again. Beyond the
// bound it is left as it is: the config is trusted.
func closure(pattern string, steps []func(string) string) []string {
	if all, ok := apply(pattern, steps); ok {
		return all
	}
	return []string{pattern}
}

// denied compares a reading, and what file systems and hosts take for the same,
// with the globs.
func denied(globs []glob, reading string) bool {
	bare := tail(reading)
	folded, hostless := fold(bare, false)
	said, folds, locals := []string{reading, bare, bare + "/"}, []string{folded, folded + "/"}, []string(nil)
	if hostless != folded {
		locals = []string{hostless, hostless + "/"}
	}
	return slices.ContainsFunc(globs, func(g glob) bool {
		return fits(g.loose, said) || fits(g.folded, folds) || g.local && fits(g.folded, locals)
	})
}

func fits(globs, texts []string) bool {
	for _, g := range globs {
		for i, text := range texts {
			if (i == 0 || text != texts[i-1]) && config.Glob(g, text) {
				return true
			}
		}
	}
	return false
}

// allowed compares a reading with the globs. derived says that it is not the URI
// itself: then it may be what a reader leaves of one that fits.
func allowed(globs []glob, reading string, derived bool) bool {
	plain := plain(reading)
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
