// Package serve runs the serving modes: UI, stdio, HTTP and background daemon.
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
