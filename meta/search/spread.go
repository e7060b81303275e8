package search

import "slices"

// maxRun is the maximum number of consecutive hits of a server while others have none.
const maxRun = 2

// spread limits runs of hits of one server, unless the query names it. The best hit of a
// server without any comes next. firsts has the best hit of each list.
func (r *ranking) spread(t *topHits, firsts []hit) {
	slices.SortFunc(firsts, t.compare)
	server := func(h hit) string { return t.lists[h.list].part.Server() }
	hasHits := map[string]bool{}
	moved := map[hit]bool{} // before their turn
	names := r.serverNames()
	order := make([]hit, 0, len(t.hits))
	run := 0
	place := func(h hit) {
		if n := len(order); n > 0 && server(order[n-1]) == server(h) {
			run++
		} else {
			run = 1
			hasHits[server(h)] = true
		}
		order = append(order, h)
	}
	for _, h := range t.hits {
		if moved[h] {
			continue
		}
		for len(firsts) > 0 && hasHits[server(firsts[0])] {
			firsts = firsts[1:]
		}
		if run >= maxRun && len(firsts) > 0 && server(order[len(order)-1]) == server(h) && !names.include(server(h)) {
			moved[firsts[0]] = true
			place(firsts[0])
		}
		place(h)
	}
	t.hits = order[:min(len(order), t.most)]
}

// serverNames is the set of stems that name servers in a query.
type serverNames map[string]bool

// serverNames returns the words of the query and their synonyms.
func (r *ranking) serverNames() serverNames {
	stems := serverNames{}
	for _, w := range r.words {
		stems[w.stem] = true
		for _, other := range meanings()[w.stem] {
			stems[other] = true
		}
	}
	return stems
}

// include reports whether a word of a server's name is in the set.
func (s serverNames) include(server string) (yes bool) {
	var l lexer
	l.split(server, false, func(w []byte, _ spelling) {
		yes = yes || len(w) > 1 && s[string(stem(w))]
	})
	return yes
}
