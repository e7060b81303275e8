// Package termquery keeps Bubble Tea from querying the terminal before main begins.
//
// Bubble Tea asks for the background color in an init function, and waits up to 5 s for a
// reply. Commands without a UI must neither write that query nor wait. It is not sent if TERM
// is "dumb", so this package sets TERM until main calls [Restore]. The UI sends its own query.
//
// Go sorts packages by import path and always initializes the first one whose imports are
// initialized. This package imports only syscall, so it is ready before "os", "time" and
// "unicode", which Bubble Tea waits for. That fails only for module paths that sort after
// "unicode", such as zzz.example. Package renamemodule refuses these.
package termquery

import "syscall"

var term, isSet = setDumb()

func setDumb() (term string, isSet bool) {
	term, isSet = syscall.Getenv("TERM")
	_ = syscall.Setenv("TERM", "dumb") // fails only for invalid names
	return term, isSet
}

// Restore sets TERM to the value that the process was started with. Call it from an init
// function of main, before anything starts a process or reads the environment.
func Restore() {
	if !isSet {
		_ = syscall.Unsetenv("TERM")
		return
	}
	_ = syscall.Setenv("TERM", term)
}
