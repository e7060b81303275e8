// Package serve runs the serving modes: UI, stdio, HTTP and background daemon.
//
// It owns the process: signals, stdin, stdout and the terminal of the UI. One [Process]
// belongs to one call of main. Its modes block until they finish and wait for everything
// they started. A second signal, or SIGQUIT, exits without that; restoring the terminal
// then takes at most a second.
//
// It must not depend on flags or on the UI: main parses flags and passes the UI as a
// [ShowFunc].
package serve
