//go:build !unix

package clientconfig

import "io/fs"

func isForeign(fs.FileInfo) bool { return false }

func isOwned(fs.FileInfo) bool { return true }
