package upstream

import "sync"

// groups are the process groups of all children of this process. A variable of
// the package, because the one who needs it has no time to ask around.
var groups struct {
	sync.Mutex
	alive map[int]struct{}
}

func rememberGroup(pid int) {
	groups.Lock()
	defer groups.Unlock()
	if groups.alive == nil {
		groups.alive = make(map[int]struct{})
	}
	groups.alive[pid] = struct{}{}
}

func forgetGroup(pid int) {
	groups.Lock()
	defer groups.Unlock()
	delete(groups.alive, pid)
}

// KillAll kills the process groups of all children, for a program that exits
// without ending its servers: children die with it on some systems, what they
// started does not.
func KillAll() {
	groups.Lock()
	defer groups.Unlock()
	for pid := range groups.alive {
		killGroup(pid)
	}
}
