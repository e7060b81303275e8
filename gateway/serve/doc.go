// Package serve is what a process of Goblin does as long as it serves: the
// modes behind `goblin`, `goblin --tui`, `goblin stdio`, `goblin serve` and the
// background daemon, with their signals, streams, log and terminal.
//
// It owns the process: signals to end, stdin and stdout, the terminal that a
// screen is on. One [Process] belongs to one call of main. Its modes block
// until they are over and wait for all that they started; a second signal, or
// one that asks for a dump, ends the process under them once the terminal is
// given back, for which it waits a second at most. Screens are bounded per daemon
// (see [MaxScreens]); one that finds no room is told so.
//
// It knows nothing of flags and of what screens show: main parses the ones and
// hands the others over as a [ShowFunc].
package serve
