package configedit

import "golang.org/x/sys/unix"

// hasAccessList reports whether a file has permissions beyond its mode.
func hasAccessList(path string) bool {
	size, err := unix.Getxattr(path, "system.posix_acl_access", nil)
	return err == nil && size > 0
}
