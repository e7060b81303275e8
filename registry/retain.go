package registry

import "goblin/registry/rawjson"

// Retain drops the entries of a server that keep, given an entry's kind and the
// server's own name for it, is false for: what was listed under another config is
// held to the one that there is now, before the server lists again.
func (r *Registry) Retain(server string, keep func(kind Kind, name string) bool) {
	t := r.Load().table(server)
	if t == nil {
		return
	}
	for k, run := range t.runs {
		kind := Kind(k)
		kept := make([][]byte, 0, run.len())
		for i := range run.len() {
			e := &run.entries[i]
			if kind == Template { // the order as received decides between templates
				e = &run.entries[run.order[i]]
			}
			if keep(kind, e.Name) {
				kept = append(kept, e.original())
			}
		}
		if len(kept) < run.len() {
			r.SetList(server, kind, kept)
		}
	}
}

// original is the definition of an entry under the server's own name.
func (e *Entry) original() []byte {
	if e.Original != nil {
		return e.Original
	}
	return rawjson.SetMember(e.JSON, keyOf(e.Kind), rawjson.Quote(e.Name))
}
