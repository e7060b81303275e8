//go:build !linux && !darwin

package worker

// setLimits does nothing: the process watches its memory, Goblin its time.
func setLimits(*Start) {}

// closeInherited does nothing: a process inherits what it was given only.
func closeInherited() {}
