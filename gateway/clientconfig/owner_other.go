//go:build !unix

package clientconfig

import "io/fs"

func foreign(fs.FileInfo) bool { return false }

func owned(fs.FileInfo) bool { return true }
