package registry

import "strings"

// splits calls f for every reading of a flat key as a server and a rest.
func (s *Snapshot) splits(key string, f func(t *table, rest string)) {
	for i := 0; i < len(key); i++ {
		if key[i] != '_' {
			continue
		}
		for _, n := range s.dir.byFlat[key[:i]] {
			f(s.tables[n], key[i+1:])
		}
	}
}

// flatEntries adds the listed resources and learned links with a flat key.
// The plain id of an entry that falls under another server's prefix is not
// looked up: it is that other server's to give.
func (s *Snapshot) flatEntries(h *hits, key string) {
	s.splits(key, func(t *table, rest string) {
		run := t.runs[Resource]
		if run == nil {
			return
		}
		hash := hashKey(rest)
		first, second := run.byFlat.find(run.entries, hash, rest, byFlat)
		if first == nil && t.rule != nil && t.rule.flatTail(rest) == tailNone {
			first, second = run.byPlain.find(run.entries, hash, rest, byPlain)
		}
		h.entry(first)
		h.entry(second)
	})
	if h.n > 0 {
		return
	}
	s.splits(key, func(t *table, rest string) {
		if t.rule == nil {
			return
		}
		for _, uri := range t.learned.alias(rest) {
			if t.rule.flatTail(rest) == tailNone || strings.HasSuffix(rest, "~"+flatHash(uri)) {
				h.add(s.expansion(t, uri, t.runs[Template].template(uri)))
			}
		}
	})
}

// flatExpansions adds the expansions of templates with a flat key, of which
// only a single one is an answer.
func (s *Snapshot) flatExpansions(h *hits, key string) {
	s.splits(key, func(t *table, rest string) {
		run := t.runs[Template]
		if run == nil || t.rule == nil || t.rule.flatTail(rest) != tailNone {
			return
		}
		seen := map[string]bool{}
		run.flats.Parse(rest, func(i, ways int, uri string) bool {
			e := &run.entries[run.order[i]]
			if ways > 1 { // twice: even alone it is no answer
				h.entry(e)
				h.entry(e)
				return true
			}
			if !seen[uri] {
				seen[uri] = true
				h.add(s.expansion(t, uri, run.template(uri)))
			}
			return h.n < maxCandidates
		})
	})
}
