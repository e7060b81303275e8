package daemon

import (
	"cmp"
	"slices"
)

// Clients of one config have different environments: some editors hand down hardly
// any. One that lacks variables which a running daemon has, and has no other values,
// is served by that daemon, so that it gets all servers and none is started twice.

// supersets returns the endpoints of daemons, running or not, that have all variables of p with
// the same values, and more; those that have the most first. They have the profile and
// build of p.
func supersets(p Endpoint) []Endpoint {
	if p.Config == "" {
		return nil // the demo names none
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
