package cli

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const getTermios = unix.TCGETS

// zombie reports a process that has ended but still has its number.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false // it is gone by now, or /proc cannot be read
	}
	// The state follows the name, which may hold parentheses itself.
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && stat[i+2] == 'Z'
}

// ttyName is the file of a terminal, also when it was opened as /dev/tty.
func ttyName(fd int) string {
	const pty = 136 // of the kernel's list of devices
	if dev, err := unix.IoctlGetUint32(fd, unix.TIOCGDEV); err == nil && unix.Major(uint64(dev)) == pty {
		return "/dev/pts/" + strconv.FormatUint(uint64(unix.Minor(uint64(dev))), 10)
	}
	name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)) // nobody knows it otherwise
	return name
}
