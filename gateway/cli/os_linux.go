package cli

import (
	"bytes"
	"fmt"
	"os"

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
