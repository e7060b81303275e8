//go:build !unix

package state

import "os"

// readOnly are the flags for reading.
const readOnly = os.O_RDONLY
