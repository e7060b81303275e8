package remoteui

import (
	"os"

	"golang.org/x/sys/windows"
)

func reopen(out *os.File) *os.File { return out }

func flushInput(in *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(in.Fd())) }

// prepare enables control sequences in the console.
func prepare(out *os.File) (undo func()) {
	h := windows.Handle(out.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) != nil {
		return func() {}
	}
	const vt = windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING | windows.DISABLE_NEWLINE_AUTO_RETURN
	_ = windows.SetConsoleMode(h, mode|vt)
	return func() { _ = windows.SetConsoleMode(h, mode) }
}

// cellSize returns 0: only the terminal itself reports the size of its cells.
func cellSize(*os.File) (w, h int) { return 0, 0 }
