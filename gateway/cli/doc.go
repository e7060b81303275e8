// Package cli is the command line around a command: the streams and the
// environment, the config that is meant, exit codes, errors in one line, help,
// the logger that knows the secrets of a config, names that were meant, and
// streams in non-blocking mode.
//
// It owns what all commands and modes say alike. It must not know any of them,
// nor how a gateway is run. An [App] belongs to one goroutine, that of the
// command which runs. Everything foreign goes through [display] on its way to a
// terminal.
package cli
