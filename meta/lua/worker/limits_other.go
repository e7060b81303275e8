//go:build !linux && !darwin

package worker

// limit does nothing: the process watches its memory, Goblin its time.
func limit(*Start) {}

// closeOthers does nothing: a process inherits what it was given only.
func closeOthers() {}
