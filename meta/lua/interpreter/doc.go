// Package interpreter is the process of a script: it runs one, and ends. A
// process that Goblin starts beforehand waits for its script here.
//
// It owns the script's language (Lua 5.1 as gopher-lua has it, with the patterns
// of the reference implementation), what a script sees of the servers, and the
// conversion between JSON and Lua values. It reaches nothing but the two pipes
// to Goblin; what it asks there is told by goblin/meta/lua/wire.
//
// # Goroutines
//
// [Main] reads the pipe in one goroutine, watches the memory in another and runs
// the script in a third; all{…} adds some, of which one executes Lua at a time: a
// lock passes between them while requests are under way. Main does not wait for
// them in the end: its caller must end the process.
//
// # Limits
//
// What ends a script is kept in [stopper]: the virtual machine asks it before
// each instruction, so pcall catches no limit. If that does not end it soon, the
// rest of the process does: an error without a line. Goblin kills a process that
// does neither.
//
//   - Time is told by Goblin; the processor's time is limited by the system, in
//     case that Goblin is gone.
//   - Memory is what Go's heap and stacks hold after a collection, looked at every
//     few milliseconds: garbage is free. Beyond a small part the script waits
//     until Goblin allows more. The system limits what one look could miss.
//   - Output is the result, what was printed and the text of an error together;
//     the text is cut to what is left, but for 256 bytes.
//   - Depth: 256 calls within each other, and 100 pcalls and coroutines.
//   - Scripts are 500 blocks and expressions deep, JSON is at most 500 deep.
package interpreter
