//go:build !unix

package configedit

import (
	"io/fs"
	"os"
)

const noFollow = 0

// keepOwner does nothing, since files have no group here.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
