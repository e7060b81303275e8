//go:build !unix

package state

import "os"

const readOnly = os.O_RDONLY
