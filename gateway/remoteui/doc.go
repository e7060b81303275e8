// Package remoteui shows the UI of the daemon in a terminal of another process.
//
// The UI runs in the daemon ([Accept], [Conn]). The relay ([Relay], [Terminal]) owns the
// terminal, in another process or in the same one, connected by net.Pipe. Only the relay
// touches the terminal, and restores it. It also runs pagers, editors and browsers, and
// saves files.
//
// The connection carries frames: a type byte, the length of the payload as 32 bits
// big-endian, the payload.
//
//	relay to daemon   h hello (JSON), i keys, s size and image support (JSON),
//	                b background (0 light, 1 dark), d result of e or w (JSON), p pause
//	daemon to relay   o output, c a piece of content (after the order's id, 64
//	                bits big-endian), e run a program on the content (JSON),
//	                w save the content (JSON), x exit (reason)
//
// Keys keep their order and boundaries: one read of the Conn returns at most one read of
// the terminal. Otherwise Escape followed by a letter could be mistaken for Alt. Only the
// latest size and background are kept. Output is dropped while a pager or an editor uses
// the terminal, or the relay's process is stopped. The size that follows requests a full
// repaint.
//
// All buffers are limited. Keys have 64 KiB at each end, then the terminal waits. Output
// waits for the write limit of a Conn, then the connection is closed. Relay blocks until
// the UI exits, and waits for what it started, with an exception in its doc. The methods
// of a Conn are safe for concurrent use; Read, Write, Open, Save, Exit and Close block.
//
// The package knows no UI elements, MCP or flags. Callers handle signals that end the
// process by cancelling Relay's context.
package remoteui
