package lua

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// attributes starts the process with its own hidden console, so it does not receive
// Goblin's Ctrl-C.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW}
}
