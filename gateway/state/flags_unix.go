//go:build unix

package state

import (
	"os"

	"golang.org/x/sys/unix"
)

// readOnly holds the flags for reading. Opening a pipe without a writer does not block,
// and a terminal does not become the controlling terminal.
const readOnly = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
