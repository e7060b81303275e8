//go:build linux || darwin

package worker

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mapSlack is the number of bytes that the process may map beyond the script's memory and a quarter
// of it: the heap grows by 64 MiB, and threads have stacks.
const mapSlack = 96 << 20

// setLimits asks the system to limit the process, as a second line: what it refuses is
// an error of the script, or its end.
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

// closeInherited closes what is no standard stream: what Goblin was given by whoever
// started it and passed on unknowingly, which the flag tells, and what Go's
// runtime opened to learn how many processors there are, which it has been told.
func closeInherited() {
	dir := "/proc/self/fd"
	files, err := os.ReadDir(dir)
	if err != nil {
		dir = "/dev/fd"
		files, _ = os.ReadDir(dir) // none can be found
	}
	for _, f := range files {
		n, err := strconv.Atoi(f.Name())
		if err != nil || n <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
		path, _ := os.Readlink(dir + "/" + f.Name()) // not everywhere a link
		if err == nil && (flags&unix.FD_CLOEXEC == 0 || strings.HasPrefix(path, "/sys/")) {
			_ = unix.Close(n)
		}
	}
}

// dataSize is how much private memory the process has mapped, in bytes; 0 if the
// system does not tell, which then does not count what Go maps, either.
func dataSize() int64 {
	statm, _ := os.ReadFile("/proc/self/statm")
	fields := append(strings.Fields(string(statm)), "", "", "", "", "", "")
	pages, _ := strconv.ParseInt(fields[5], 10, 64)
	return pages * int64(os.Getpagesize())
}
