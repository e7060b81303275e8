package daemon

import (
	"cmp"
	"net"
	"slices"
)

// Clients of one config have different environments: some editors hand down hardly
// any. One that lacks variables which a running daemon has, and has no other values,
// is served by that daemon, so that it gets all servers and none is started twice.

// fuller are the places of daemons, running or not, that have all variables of p with
// the same values, and more; those that have the most first.
func fuller(p Endpoint) []Endpoint {
	if p.Config == "" {
		return nil // the demo names none
	}
	found := Serving(p.Dir, p.Config, p.Version)
	found = slices.DeleteFunc(found, func(q Endpoint) bool {
		for name, value := range p.Variables {
			if q.Variables[name] != value {
				return true
			}
		}
		return len(q.Variables) <= len(p.Variables)
	})
	slices.SortStableFunc(found, func(a, b Endpoint) int { return cmp.Compare(len(b.Variables), len(a.Variables)) })
	return found
}

// EndpointOf is the place that a connection made with [Dial] for p leads to: p, or that
// of a daemon with more variables, by which the same one or the next is found again.
func EndpointOf(c net.Conn, p Endpoint) Endpoint {
	for _, q := range fuller(p) {
		if q.Socket == c.RemoteAddr().String() {
			return q
		}
	}
	return p
}
