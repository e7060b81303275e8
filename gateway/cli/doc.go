// Package cli holds what all commands share: streams, config lookup, exit codes, help,
// logger.
//
// It owns what all commands and modes say alike. It must not know any of them,
// nor how a gateway is run. An [App] belongs to one goroutine, that of the
// command which runs. Everything foreign goes through registry/termtext on its way to a
// terminal.
package cli
