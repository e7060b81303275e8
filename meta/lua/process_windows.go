package lua

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// attributes give the process a console of its own, which is not shown and keeps
// our Ctrl-C from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW}
}
