package upstream

import (
	"slices"
	"sync"
)

// groups are the groups of all children of this process. A variable of the
// package, because the one who needs it has no time to ask around.
var groups struct {
	sync.Mutex
	alive []*group
}

// remember makes KillAll reach a group, or reach it no more.
func remember(g *group, alive bool) {
	groups.Lock()
	defer groups.Unlock()
	if alive {
		groups.alive = append(groups.alive, g)
	} else {
		groups.alive = slices.DeleteFunc(groups.alive, func(other *group) bool { return other == g })
	}
}

// KillAll kills the groups of all children, for a program that exits without
// ending its servers: children die with it on some systems, what they started
// does not.
func KillAll() {
	groups.Lock()
	defer groups.Unlock()
	for _, g := range groups.alive {
		g.kill()
	}
}
