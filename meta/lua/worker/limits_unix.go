//go:build linux || darwin

package worker

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mapSlack is the number of bytes that the process may map beyond the script's memory and
// a quarter of it: the heap grows by 64 MiB, and threads have stacks.
const mapSlack = 96 << 20

// setLimits sets limits of the system as a second line of defense. Exceeding one is an
// error of the script or kills the process.
func setLimits(start *Start) {
	set := func(what int, n uint64) {
		_ = unix.Setrlimit(what, &unix.Rlimit{Cur: n, Max: n})
	}
	set(unix.RLIMIT_CORE, 0)
	set(unix.RLIMIT_FSIZE, 0)
	set(unix.RLIMIT_NOFILE, 16)
	set(unix.RLIMIT_CPU, uint64(start.CPU))
	if data := dataSize(); data > 0 && data < 1<<32 { // the race detector maps too much
		set(unix.RLIMIT_DATA, uint64(data+start.Memory+start.Memory/4+mapSlack))
	}
}

// closeInherited closes descriptors without close-on-exec, which Goblin inherited and
// passed on unknowingly. It also closes descriptors under /sys, which Go's runtime opened
// to count processors. It keeps the standard streams.
func closeInherited() {
	dir := "/proc/self/fd"
	files, err := os.ReadDir(dir)
	if err != nil {
		dir = "/dev/fd"
		files, _ = os.ReadDir(dir) // may fail
	}
	for _, f := range files {
		n, err := strconv.Atoi(f.Name())
		if err != nil || n <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
		path, _ := os.Readlink(dir + "/" + f.Name()) // not a link on all systems
		if err == nil && (flags&unix.FD_CLOEXEC == 0 || strings.HasPrefix(path, "/sys/")) {
			_ = unix.Close(n)
		}
	}
}

// dataSize returns the private memory that the process has mapped, in bytes. It returns 0
// on systems without /proc, which do not count Go's mappings either.
func dataSize() int64 {
	statm, _ := os.ReadFile("/proc/self/statm")
	fields := append(strings.Fields(string(statm)), "", "", "", "", "", "")
	pages, _ := strconv.ParseInt(fields[5], 10, 64)
	return pages * int64(os.Getpagesize())
}
