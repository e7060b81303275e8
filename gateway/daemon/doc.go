// Package daemon runs one process per config and connects clients, UIs and commands to
// it.
//
// It owns the daemon's Unix socket and lock ([Find], [Listen]) and its detached start
// ([Start]). It also owns the handshake with the peer check ([Dial], [Listener.Serve]).
// It also owns the control channel ([Control]). Serving connections is up to the
// functions in [Handlers].
//
// All functions are safe for concurrent use. Serve blocks until it ends and waits for its
// goroutines. Dial, Control and Start block up to their time limits or the end of their
// context. Start leaves one goroutine behind.
package daemon
