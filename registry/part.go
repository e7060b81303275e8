package registry

import "iter"

// Part is the visible list of one server and kind, not empty. Parts compare
// with ==: those of two snapshots are equal as long as nothing in the list
// changed, so who keeps something per list looks at changed ones only.
type Part struct {
	kind Kind
	run  *run
}

// Parts yields the visible lists, by kind, then Goblin's own before the
// servers in the config's order.
func (s *Snapshot) Parts() iter.Seq[Part] {
	return func(yield func(Part) bool) {
		for k := range Kind(Kinds) {
			for _, t := range s.tables {
				if !t.hidden && t.runs[k].len() > 0 && !yield(Part{k, t.runs[k]}) {
					return
				}
			}
		}
	}
}

// Kind returns what the list is of.
func (p Part) Kind() Kind { return p.kind }

// Server returns whose list it is.
func (p Part) Server() string { return p.run.server }

// Len returns the number of entries, 0 for the zero Part.
func (p Part) Len() int { return p.run.len() }

// At returns entry i in the byte order of listed names.
func (p Part) At(i int) *Entry { return &p.run.entries[i] }
