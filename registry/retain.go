package registry

import (
	"iter"

	"goblin/registry/rawjson"
)

// Retain drops the entries of a server for which keep returns false. It applies a new
// config to lists from an older one before the server lists again.
func (r *Registry) Retain(server string, keep func(kind Kind, name string) bool) {
	t := r.Load().table(server)
	if t == nil {
		return
	}
	for k, run := range t.runs {
		kind := Kind(k)
		kept := make([][]byte, 0, run.len())
		for e := range run.receivedOrder() {
			if keep(kind, e.Name) {
				kept = append(kept, e.originalJSON())
			}
		}
		if len(kept) < run.len() {
			r.restartHistory(server)
			r.SetList(server, kind, kept)
		}
	}
	r.restartHistory(server)
}

// receivedOrder yields templates in the order in which they were received, others sorted
// by Listed.
func (r *run) receivedOrder() iter.Seq[*Entry] {
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

func (r *run) definitions() [][]byte {
	items := make([][]byte, 0, r.len())
	for e := range r.receivedOrder() {
		items = append(items, e.originalJSON())
	}
	return items
}

func (e *Entry) originalJSON() []byte {
	if e.Original != nil {
		return e.Original
	}
	return rawjson.SetMember(e.json, nameMember(e.Kind), rawjson.Quote(e.Name))
}
