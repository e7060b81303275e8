package registry

import (
	"iter"

	"goblin/registry/rawjson"
)

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
		for e := range run.received() {
			if keep(kind, e.Name) {
				kept = append(kept, e.original())
			}
		}
		if len(kept) < run.len() {
			r.SetList(server, kind, kept)
		}
	}
}

// received yields the entries of a run in an order that is as good as that in which they
// were received: it decides between templates.
func (r *run) received() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for i := range r.len() {
			e := &r.entries[i]
			if len(r.order) > 0 {
				e = &r.entries[r.order[i]]
			}
			if !yield(e) {
				return
			}
		}
	}
}

// originals are the definitions of which a run was made.
func (r *run) originals() [][]byte {
	items := make([][]byte, 0, r.len())
	for e := range r.received() {
		items = append(items, e.original())
	}
	return items
}

// original is the definition of an entry under the server's own name.
func (e *Entry) original() []byte {
	if e.Original != nil {
		return e.Original
	}
	return rawjson.SetMember(e.json, keyOf(e.Kind), rawjson.Quote(e.Name))
}
