// Package command is Goblin's command line but for the modes that serve:
// list, read, call, prompt, validate, status, stop, restart, version. It also
// has what the modes of main share with them: exit codes, one-line errors, the
// logger that knows the secrets of a config, the command that clients start, and
// streams in non-blocking mode.
//
// It owns what people read and type. An App belongs to one goroutine, that of
// the command which runs; commands block until they are done or their context
// ends, and leave no goroutine and no child process behind. stdout carries the
// answer and nothing else; everything foreign goes through [display] on its
// way to a terminal.
//
// A command asks the running host, or else a gateway of its own, as an
// ordinary MCP client. It must not know how requests are routed or how servers
// are run.
package command
