package registry

import "goblin/registry/suggest"

const maxCompared = 5000

// Nearest returns up to three listed names most similar to a wrong one, best first. A
// non-empty owner restricts it to that server. It compares likely and the first 5,000
// entries.
func (s *Snapshot) Nearest(k Kind, owner, name string, likely ...*Entry) []string {
	f := suggest.New(name)
	try := func(e *Entry) {
		if f.Add(e.Listed, e.Listed, e.Name); e.ClientName() != e.Name { // also by its original name
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
