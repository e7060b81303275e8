// Groups runs a child process as one with all that it starts, so that all of it
// ends together: a process group, or a job of Windows. It finds the program, too.
//
// It must not know what a child is for. Reap waits for the child's end; none of the
// others waits.

package childproc

import (
	"slices"
	"sync"
)

// all are the groups of all children of this process. A variable of the
// package, because the one who needs it has no time to ask around.
var all struct {
	sync.Mutex
	alive []*Group
}

// Track makes KillAll reach a group, or reach it no more.
func Track(g *Group, alive bool) {
	all.Lock()
	defer all.Unlock()
	if alive {
		all.alive = append(all.alive, g)
	} else {
		all.alive = slices.DeleteFunc(all.alive, func(other *Group) bool { return other == g })
	}
}

// KillAll kills the groups of all children, for a program that exits without
// ending its servers: children die with it on some systems, what they started
// does not.
func KillAll() {
	all.Lock()
	defer all.Unlock()
	for _, g := range all.alive {
		g.Kill()
	}
}
