//go:build unix

package configedit

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes opening a symbolic link fail.
const noFollow = syscall.O_NOFOLLOW

// keepOwner sets the owner and group of a new file to those of was. It returns errOwner
// if this user may not.
func keepOwner(file *os.File, was fs.FileInfo) error {
	now, err := file.Stat()
	if err != nil {
		return err
	}
	owner, known := was.Sys().(*syscall.Stat_t)
	own, _ := now.Sys().(*syscall.Stat_t)
	if !known || owner.Uid == own.Uid && owner.Gid == own.Gid {
		return nil
	}
	if err := file.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
		return fmt.Errorf("%w: %w", errOwner, err)
	}
	return nil
}
