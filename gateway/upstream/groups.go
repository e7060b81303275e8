package upstream

import "sync"

// groups are the groups of all children of this process. A variable of the
// package, because the one who needs it has no time to ask around.
var groups struct {
	sync.Mutex
	alive map[*group]struct{}
}

// remember makes KillAll reach a group until forget.
func remember(g *group) (forget func()) {
	groups.Lock()
	defer groups.Unlock()
	if groups.alive == nil {
		groups.alive = make(map[*group]struct{})
	}
	groups.alive[g] = struct{}{}
	return func() {
		groups.Lock()
		defer groups.Unlock()
		delete(groups.alive, g)
	}
}

// KillAll kills the groups of all children, for a program that exits without
// ending its servers: children die with it on some systems, what they started
// does not.
func KillAll() {
	groups.Lock()
	defer groups.Unlock()
	for g := range groups.alive {
		g.kill()
	}
}
