// Package daemon runs one process per config and connects clients, UIs and commands to it.
//
// It owns the Unix socket and the lock of a daemon ([Find], [Listen]), the
// detached start ([Start]), the first line of a connection and the check of
// who is at its other end ([Dial], [Listener.Serve]), and the control channel
// ([Control]).
//
// It must not know what connections are for: they are handed to the functions
// in [Handlers].
//
// Every function may be called from any goroutine. Serve blocks until it ends
// and waits for the goroutines that it started; the exception is written at
// Start. Dial, Control and Start block up to their time limits or the end of
// their context.
package daemon
