package registry

import "goblin/registry/suggest"

const maxCompared = 5000 // entries whose names are compared with a wrong name

// Nearest returns the listed names that look most like a wrong one, best first,
// at most three; only those of owner, unless that is "". Of long lists only the
// first 5,000 entries are looked at, after those that the caller knows to be
// likely.
func (s *Snapshot) Nearest(k Kind, owner, name string, likely ...*Entry) []string {
	f := suggest.New(name)
	try := func(e *Entry) {
		if f.Add(e.Listed, e.Listed, e.Name); e.ClientName() != e.Name { // as it was called before, too
			f.Add(e.Listed, e.ClientName(), e.Server+"_"+e.Name, e.Server+"/"+e.Name)
		}
	}
	for _, e := range likely {
		if owner == "" || e.Server == owner {
			try(e)
		}
	}
	all, tried := s.All(k), 0
	if owner != "" {
		all = s.Server(owner, k)
	}
	for e := range all {
		if tried++; tried > maxCompared {
			break
		}
		try(e)
	}
	return f.Best()
}
