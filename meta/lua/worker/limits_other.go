//go:build !linux && !darwin

package worker

// setLimits does nothing: the process watches its memory, and Goblin the time.
func setLimits(*Start) {}

// closeInherited does nothing: a process inherits only what Goblin passes.
func closeInherited() {}
