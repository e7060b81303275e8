package cli

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const getTermios = unix.TCGETS

// zombie reports whether a process has exited but was not reaped.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false // it was reaped, or /proc can't be read
	}
	// The state follows the name, which may itself contain parentheses.
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && stat[i+2] == 'Z'
}

// ttyName returns the file of a terminal, even if it was opened as /dev/tty.
func ttyName(fd int) string {
	const pty = 136 // major device number in the kernel's list
	if dev, err := unix.IoctlGetUint32(fd, unix.TIOCGDEV); err == nil && unix.Major(uint64(dev)) == pty {
		return "/dev/pts/" + strconv.FormatUint(uint64(unix.Minor(uint64(dev))), 10)
	}
	name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)) // a failure means that the name is unknown
	return name
}
