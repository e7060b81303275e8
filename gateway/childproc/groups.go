package childproc

import (
	"os/exec"
	"slices"
	"sync"
)

// all holds the groups of all children of this process. It is global because callers of
// KillAll are about to exit.
var all struct {
	sync.Mutex
	alive []*Group
}

// Track makes KillAll include a group while alive is set.
func Track(g *Group, alive bool) {
	all.Lock()
	defer all.Unlock()
	if alive {
		all.alive = append(all.alive, g)
	} else {
		all.alive = slices.DeleteFunc(all.alive, func(other *Group) bool { return other == g })
	}
}

// KillAll kills the groups of all children. It is for programs that exit without stopping
// their servers: some systems kill the children then, but not their descendants.
func KillAll() {
	all.Lock()
	defer all.Unlock()
	for _, g := range all.alive {
		g.Kill()
	}
}

// Reap waits for the child to exit and kills the rest of its group.
func (g *Group) Reap(cmd *exec.Cmd) error { return g.ReapAfter(cmd, func() {}) }
