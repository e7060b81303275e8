//go:build !linux && !darwin

package worker

import "goblin/meta/lua/wire"

// limit does nothing: the process watches its memory, Goblin its time.
func limit(*wire.Start) {}

// closeOthers does nothing: a process inherits what it was given only.
func closeOthers() {}
