package childproc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// tick is the unit of times in /proc: the system's USER_HZ, which is 100 on every
// architecture that Go runs on.
const tick = 10 * time.Millisecond

// GroupUsage measures the process group of a child: the child and all that it started.
func GroupUsage(group int) Usage {
	var u Usage
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// proc_pid_stat(5): the name, in parentheses, may hold anything.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		number := func(i int) int64 {
			if i >= len(fields) {
				return 0
			}
			n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
			return n
		}
		const pgrp, utime, stime, rss = 2, 11, 12, 21 // counted from the state on
		if number(pgrp) != int64(group) {
			continue
		}
		u.Processes++
		u.CPUTime += time.Duration(number(utime)+number(stime)) * tick
		u.Memory += number(rss) * int64(os.Getpagesize())
	}
	return u
}
