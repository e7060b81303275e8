package daemon

import (
	"cmp"
	"slices"
)

// Clients of one config have different environments, since some editors pass on almost
// none. A running daemon with more variables and no different values also serves such a
// client. So no server starts twice.

// supersets returns endpoints of daemons, running or not, with all variables of p and
// more, most variables first. Profile and Build are copied from p.
func supersets(p Endpoint) []Endpoint {
	if p.Config == "" {
		return nil // the demo has no variables
	}
	found := FindRunning(p.Dir, p.Config, p.Version)
	found = slices.DeleteFunc(found, func(q Endpoint) bool {
		for name, value := range p.Variables {
			if q.Variables[name] != value {
				return true
			}
		}
		return len(q.Variables) <= len(p.Variables)
	})
	for i := range found {
		found[i].Profile = p.Profile
		found[i].Build = p.Build
	}
	slices.SortStableFunc(found, func(a, b Endpoint) int { return cmp.Compare(len(b.Variables), len(a.Variables)) })
	return found
}
