//go:build !unix

package configedit

import (
	"io/fs"
	"os"
)

// keepOwner does nothing, since files have no group here.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
