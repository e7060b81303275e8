package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// SetNonblock does nothing: pipes have no such mode on Windows.
func SetNonblock(f *os.File, _ ...*os.File) (file *os.File, restore func()) { return f, func() {} }

// IsRunning reports whether a process runs.
func IsRunning(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h) //nolint:errcheck // nothing was written
	event, err := windows.WaitForSingleObject(h, 0)
	return err == nil && event == uint32(windows.WAIT_TIMEOUT)
}

// IsTerminal reports whether f is a console, and its number of columns (0 if unknown).
func IsTerminal(f *os.File) (columns int, ok bool) {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) != nil {
		return 0, false
	}
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info) == nil {
		columns = int(info.Window.Right-info.Window.Left) + 1
	}
	return columns, true
}

// TerminalName returns "": consoles have no names.
func TerminalName(*os.File) string { return "" }
