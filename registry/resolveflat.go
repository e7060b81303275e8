package registry

import (
	"strings"

	"goblin/registry/names"
)

func (s *Snapshot) eachSplit(key string, f func(t *table, rest string)) {
	for i := 0; i < len(key) && i <= s.dir.longest; i++ {
		if key[i] != '_' {
			continue
		}
		for _, n := range s.dir.byFlat[key[:i]] {
			f(s.tables[n], key[i+1:])
		}
	}
}

// flatEntries adds the listed resources with a flat key. For owner it also accepts plain
// ids of suffixed entries, unless all of its ids have a suffix.
func (s *Snapshot) flatEntries(h *resolution, key string, owner *table) {
	s.eachSplit(key, func(t *table, rest string) {
		run := t.runs[Resource]
		if run == nil {
			return
		}
		hash := hashKey(rest)
		first, second := run.byFlat.find(run.entries, hash, rest, byFlat)
		if first == nil && t == owner && t.rule != nil && t.rule.FlatSuffixReason(rest) == names.NoSuffix {
			first, second = run.byPlain.find(run.entries, hash, rest, byPlain)
		}
		h.entry(first)
		h.entry(second)
	})
}

// flatLinks adds the learned links with a flat key in their listed form, for owner also
// in the plain one.
func (s *Snapshot) flatLinks(h *resolution, key string, owner *table) {
	s.eachSplit(key, func(t *table, rest string) {
		if t.rule == nil {
			return
		}
		plain := t == owner && t.rule.FlatSuffixReason(rest) == names.NoSuffix
		for _, uri := range t.links.Alias(rest) {
			if flat := names.Flatten(uri); plain || rest == strings.TrimLeft(flat, "_")+t.rule.FlatSuffix(uri, flat) {
				h.add(s.resolveUnlisted(t, uri, t.runs[Template].template(uri, &h.budget)))
			}
		}
	})
}

func (s *Snapshot) flatExpansions(h *resolution, key string, owner *table) {
	s.eachSplit(key, func(t *table, rest string) {
		run := t.runs[Template]
		if run == nil || t != owner || t.rule.FlatSuffixReason(rest) != names.NoSuffix {
			return
		}
		seen := map[string]bool{}
		run.flats.Parse(rest, &h.budget, func(i, ways int, uri string) bool {
			e := &run.entries[run.order[i]]
			if ways > 1 { // twice, so it is ambiguous
				h.entry(e)
				h.entry(e)
				return true
			}
			if !seen[uri] {
				seen[uri] = true
				h.add(s.resolveUnlisted(t, uri, run.template(uri, &h.budget)))
			}
			return h.n < maxCandidates
		})
	})
}
