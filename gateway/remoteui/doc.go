// Package remoteui shows the UI of the daemon in a terminal of another process.
//
// A screen is a full-screen terminal program. It runs in one process (the
// daemon: [Accept], [Conn]) and is seen and typed at in another that owns a
// terminal (the relay: [Relay], [Terminal]). Both may be the same process,
// joined by net.Pipe: the program never touches a terminal itself, and one
// piece of code gives the terminal back in the state it was found in. Pagers,
// editors, browsers and saved files run and land where the relay is.
//
// The connection carries frames: a type byte, the length of the payload as 32
// bits big-endian, the payload.
//
//	relay to daemon   h hello (JSON), i keys, s size, and what the terminal has for
//	                images (JSON), b background (0 light, 1 dark), d answer to e or w (JSON), p pause
//	daemon to relay   o output, c a piece of content (after the order's id, 64
//	                bits big-endian), e run a program on the content (JSON),
//	                w save the content (JSON), x end (reason)
//
// Keys keep their order and their cuts: one read of the terminal is one read
// of the Conn at most, so that Escape followed by a letter is not taken for
// Alt with it. Of sizes and backgrounds only the latest is kept. Output is
// dropped while a pager or an editor has the terminal and while the relay's
// process is stopped; the size that follows asks for a full repaint.
//
// Everything that waits here is bounded: keys by 64 KiB at each end (the
// terminal waits then), output by the write limit of a Conn, after which that
// screen ends. Relay blocks until the screen has ended and waits for what it
// started; the exception is written there. The methods of a Conn may be called
// from any goroutine; Read, Write, Open, Save, Exit and Close block.
//
// The package knows no user interface, no MCP, no flags and no signals that
// end a process: those end Relay's context.
package remoteui
