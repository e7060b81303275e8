package registry

import (
	"strings"

	"goblin/registry/names"
)

// spelledTool adds the tools whose listed name would be h.name under another length
// limit.
func (s *Snapshot) spelledTool(h *resolution) {
	for _, rules := range s.dir.spellings.ForName(h.name) {
		for _, t := range s.tables[1:] {
			h.entry(t.runs[Tool].spelled(h.name, rules[t.name], s.ownTool))
		}
		if h.n > 0 {
			return
		}
	}
}

// spelled returns the tool that rule u lists as name, or nil.
func (r *run) spelled(name string, u *names.Rule, own func(string) bool) *Entry {
	if r == nil || !strings.HasPrefix(name, u.Prefix) {
		return nil
	}
	if e, _ := r.byFull.find(r.entries, hashKey(name), name, byFull); e != nil && u.IsToolSpelling(name, e.ClientName(), own) {
		return e
	}
	for at := len(name) - names.SuffixLen; at > 0 && names.HasHashSuffix(name[:at+names.SuffixLen], '_'); at -= names.SuffixLen {
		tail := name[at : at+names.SuffixLen]
		first, second := r.byTail.find(r.entries, hashKey(tail), tail, byTail)
		for _, e := range []*Entry{first, second} {
			if e != nil && u.IsToolSpelling(name, e.ClientName(), own) {
				return e
			}
		}
		if at < len(name)-names.SuffixLen {
			break // a long suffix is two
		}
	}
	return nil
}

// indexSpellings fills the indexes that find tools by their names under other length
// limits.
func (r *run) indexSpellings(drafts []draft) {
	es := r.entries
	r.byTail = newHashIndex(len(es))
	cut := 0
	for i := range es {
		r.byTail.put(hashKey(byTail(&es[i])), i)
		if drafts[i].ownsFullName && drafts[i].suffixed {
			cut++
		}
	}
	r.byFull = newHashIndex(cut)
	for i := range es {
		if drafts[i].ownsFullName && drafts[i].suffixed {
			r.byFull.put(hashKey(byFull(&es[i])), i)
		}
	}
}

func byFull(e *Entry) string { return names.Sanitize(e.Server) + "_" + names.Sanitize(e.ClientName()) }

func byTail(e *Entry) string {
	short, _ := names.HashSuffixes(e.Server+"\x00"+e.ClientName(), '_')
	return short
}
