package childproc

import "golang.org/x/sys/unix"

// zombie is SZOMB of sys/proc.h.
const zombie = 5

// bootID returns a constant, since start times are microseconds since 1970.
func bootID() string { return "darwin" }

func startOf(pid int) (int64, error) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, err
	}
	return started(p), nil
}

func started(p *unix.KinfoProc) int64 {
	return p.Proc.P_starttime.Sec*1e6 + int64(p.Proc.P_starttime.Usec)
}

func members(all []child) map[int][]member {
	groups := make(map[int][]member, len(all))
	for _, c := range all {
		found, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", c.PID)
		if err != nil {
			continue
		}
		for i := range found {
			p := &found[i]
			session, err := unix.Getsid(int(p.Proc.P_pid))
			if p.Proc.P_stat != zombie && err == nil {
				groups[c.PID] = append(groups[c.PID], member{int(p.Proc.P_pid), session, started(p)})
			}
		}
	}
	return groups
}
