//go:build unix

package state

import (
	"os"

	"golang.org/x/sys/unix"
)

// readOnly are the flags for reading. Opening a pipe without a writer does not wait, and
// a terminal does not become that of the process.
const readOnly = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
