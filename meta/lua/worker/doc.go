// Package worker is the sandboxed process that runs one Lua script.
//
// A program that imports this package becomes such a process if its only argument is
// [Command]. Goblin starts it in advance, and it waits for its script. The package
// defines what scripts can use, and converts between JSON and Lua values; gopher-lua
// implements the language. The process can reach only the pipes to Goblin.
//
// # Goroutines
//
// One goroutine reads the pipe, one watches the memory, and one runs the script. all{…}
// adds some, but only one executes Lua at a time: they pass a lock while requests are in
// flight. Goroutines are not awaited at the end; the process exits.
//
// # Limits
//
// The virtual machine checks [stopper] before each instruction, so pcall catches no
// exceeded limit. If that does not stop the script soon, the process exits with an error
// without a line. Otherwise Goblin kills it.
//
//   - Goblin counts time, calls and output, and sends a stop message. The system limits
//     CPU time, in case Goblin dies.
//   - Memory counts Go's heap and stacks after a collection. It is checked every few
//     milliseconds and before each call. Beyond a small part, the script waits for
//     Goblin's permission. The system limits what a check could miss.
//   - The call depth is 256, the depth of JSON 500.
package worker
