package registry

import (
	"strings"
	"sync"
)

// Clients keep names, in permissions and in what was said, longer than a config
// keeps its max_name. So a tool is also understood by the names that it would be
// listed under with another one. Who has such a name follows from the rules for
// names of that length, as it does for listed names.

// spellings are the rules for names of other lengths, made when they are wanted.
type spellings struct {
	servers []string // in the config's order

	mu    sync.Mutex
	rules map[int]map[string]*rule // by the length of names, then by server
}

func newSpellings(servers []string) *spellings {
	return &spellings{servers: servers, rules: map[int]map[string]*rule{}}
}

// of returns the rules for listed names of so many bytes at most.
func (s *spellings) of(most int) map[string]*rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules[most] == nil {
		s.rules[most] = newRules(s.servers, most, nil)
	}
	return s.rules[most]
}

// ofName returns the rules that can have led to a name: a name that was cut is as
// long as names may be, and one that was not stands the same wherever it fits.
func (s *spellings) ofName(name string) []map[string]*rule {
	if len(name) > mostToolName {
		return nil
	}
	return []map[string]*rule{s.of(max(len(name), leastToolName)), s.of(mostToolName)}
}

// spelledTool adds the tools that would be listed as h.name, were names to have
// another length.
func (s *Snapshot) spelledTool(h *hits) {
	for _, rules := range s.dir.spellings.ofName(h.name) {
		for _, t := range s.tables[1:] {
			h.entry(t.runs[Tool].spelled(h.name, rules[t.name], s.ownTool))
		}
		if h.n > 0 {
			return
		}
	}
}

// spelled returns the tool that is listed as name by the rule u, nil for none.
func (r *run) spelled(name string, u *rule, own func(string) bool) *Entry {
	if r == nil || !strings.HasPrefix(name, u.head) {
		return nil
	}
	if e, _ := r.byFull.find(r.entries, hashKey(name), name, byFull); e != nil && u.spells(name, e.Given(), own) {
		return e
	}
	for at := len(name) - tailLen; at > 0 && endsInTail(name[:at+tailLen], '_'); at -= tailLen {
		tail := name[at : at+tailLen]
		first, second := r.byTail.find(r.entries, hashKey(tail), tail, byTail)
		for _, e := range []*Entry{first, second} {
			if e != nil && u.spells(name, e.Given(), own) {
				return e
			}
		}
		if at < len(name)-tailLen {
			break // a long tail is two
		}
	}
	return nil
}

// indexSpellings fills the tables by which tools are found under names of other
// lengths. full says of each entry whether it would have its whole name, if
// there were room for that.
func (r *run) indexSpellings(drafts []draft) {
	es := r.entries
	r.byTail = newIndex(len(es))
	cut := 0
	for i := range es {
		r.byTail.put(hashKey(byTail(&es[i])), i)
		if drafts[i].full && drafts[i].tailed {
			cut++
		}
	}
	r.byFull = newIndex(cut)
	for i := range es {
		if drafts[i].full && drafts[i].tailed {
			r.byFull.put(hashKey(byFull(&es[i])), i)
		}
	}
}

// byFull is the name that a tool would have, were there room for it.
func byFull(e *Entry) string { return sanitize(e.Server) + "_" + sanitize(e.Given()) }

// byTail is the tool's short tail.
func byTail(e *Entry) string {
	short, _ := tails(e.Server+"\x00"+e.Given(), '_')
	return short
}
