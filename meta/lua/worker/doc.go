// Package worker is the sandboxed process that runs one Lua script.
//
// A process that Goblin starts beforehand waits for its script here. A program that
// imports this package is such a process when its one argument is [Command].
//
// It owns what a script sees of the servers, and the conversion between JSON and Lua
// values; the language is that of gopher-lua. It reaches nothing but the two pipes to
// Goblin; what it asks and tells there is in goblin/meta/lua/worker.
//
// # Goroutines
//
// The process reads the pipe in one goroutine, watches the memory in another and runs
// the script in a third; all{…} adds some, of which one executes Lua at a time: a
// lock passes between them while requests are under way. Nobody waits for them
// in the end: the process ends.
//
// # Limits
//
// What ends a script is kept in [stopper]: the virtual machine asks it before
// each instruction, so pcall catches no limit. If that does not end it soon, the
// rest of the process does: an error without a line. Goblin kills a process that
// does neither.
//
//   - Time, calls and output are counted by Goblin, which tells when it is enough.
//     The processor's time is limited by the system, in case that Goblin is gone.
//   - Memory is what Go's heap and stacks hold after a collection, looked at every
//     few milliseconds and before each call: garbage is free. Beyond a small part the
//     script waits until Goblin allows more. The system limits what one look could miss.
//   - 256 calls within each other; JSON is at most 500 deep.
package worker
