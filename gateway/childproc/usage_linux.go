package childproc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// tick is the unit of times in /proc. USER_HZ is 100 on all architectures of Go.
const tick = 10 * time.Millisecond

// GroupUsage measures a process group.
func GroupUsage(group int) Usage {
	var u Usage
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// The program name in parentheses may contain anything (proc_pid_stat(5)).
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		number := func(i int) int64 {
			if i >= len(fields) {
				return 0
			}
			n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
			return n
		}
		const pgrp, utime, stime, rss = 2, 11, 12, 21 // counted from the state field
		if number(pgrp) != int64(group) {
			continue
		}
		u.Processes++
		u.CPUTime += time.Duration(number(utime)+number(stime)) * tick
		u.Memory += number(rss) * int64(os.Getpagesize())
	}
	return u
}
