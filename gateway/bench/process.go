package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc (proc(5), sysconf _SC_CLK_TCK,
// which is 100 on every architecture that Go runs on).
const tick = 10 * time.Millisecond

// processorTime is the processor time that a process has spent; 0 where it is not known.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in parentheses, may hold blanks.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

// resident is the memory of a process, in KiB; 0 where it is not known.
func resident(pid int) int { return status(pid, "VmRSS:") }

// ownMemory returns the memory of a process that no file backs: what is backed by files may be
// shared with others.
func ownMemory(pid int) int { return status(pid, "RssAnon:") }

// status is a figure of /proc.
func status(pid int, name string) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.Atoi(fields[0])
	return kb
}
