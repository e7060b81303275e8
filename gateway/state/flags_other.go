//go:build !unix

package state

import "os"

// readOnly holds the flags for reading.
const readOnly = os.O_RDONLY
