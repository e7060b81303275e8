package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is sysconf _SC_CLK_TCK in proc(5), which is 100 on all of Go's architectures.
const tick = 10 * time.Millisecond

func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in parentheses may contain spaces.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

// contextSwitches returns the switches of all threads, or 0 if unknown.
func contextSwitches(pid int) (all int) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, t := range threads {
		all += status(t, "\nvoluntary_ctxt_switches:") + status(t, "\nnonvoluntary_ctxt_switches:")
	}
	return all
}

// resident returns the memory of a process in KiB, or 0 if unknown.
func resident(pid int) int { return status(processDir(pid), "VmRSS:") }

// ownMemory returns anonymous memory in KiB. File-backed memory may be shared.
func ownMemory(pid int) int { return status(processDir(pid), "RssAnon:") }

func processDir(pid int) string { return fmt.Sprintf("/proc/%d", pid) }

func status(dir, name string) int {
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(fields[0])
	return n
}
