// Package command has the shell commands, but for the modes that serve.
//
// It owns what people type and read there. Commands block until they are done
// or their context ends, and leave no goroutine and no child process behind.
// stdout carries the answer and nothing else; everything foreign goes through
// [display] on its way to a terminal.
//
// A command asks the running daemon, or else a gateway of its own, as an
// ordinary MCP client. It must not know how requests are routed or how servers
// are run.
package command
