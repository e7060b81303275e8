//go:build !linux

package configedit

// hasAccessList returns false, since access lists are read on Linux only.
func hasAccessList(string) bool { return false }
