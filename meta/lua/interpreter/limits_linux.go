//go:build !race

package interpreter

import (
	"bytes"
	"os"
	"strconv"
)

// slack is what the process may map beyond the script's memory and a quarter of it:
// the heap grows by 64 MiB, and threads have stacks.
const slack = 96 << 20

// dataSize is how much private memory the process has mapped, in bytes; 0 if that
// is not known.
func dataSize() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(statm); err == nil && len(fields) > 5 {
		pages, _ := strconv.ParseInt(string(fields[5]), 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}
