// Package upstream connects to MCP servers over stdio, Streamable HTTP and HTTP+SSE.
//
// A Server connects, negotiates, and fetches the lists into the catalog, again after each
// change. It reconnects with growing, jittered delays and never gives up. Each attempt
// creates a new [Conn]: a child process in its own process group (a job object on
// Windows), Streamable HTTP, or HTTP+SSE (2024-11-05).
//
// A remote server can vanish without closing its connections. It gets a ping (or
// server/discover) when a call was not answered within timeout. If it may send messages
// on its own, it also gets one after 30 seconds of silence. If no message arrives within
// its timeout (at least 5 s), the connection is closed.
//
// # Connections
//
// Every connection is a link: the table of calls, the dispatch of messages, and shutdown.
// It uses one of three transports: stdio, streamable or sse. The two over HTTP share
// remote. A Server has these connections:
//
//   - its own, kept by Run; the catalog and the server's state describe it;
//   - one per client with isolation: session, or per folder with isolation: project,
//     because each has its own state;
//   - a modern one beside each of those if the server offers both eras. A process or
//     session uses one era only.
//
// All but the first are units, kept by superviseUnit.
//
// # Eras
//
// A connection uses a revision up to 2025-11-25 with a handshake and session ([Legacy]),
// or the stateless 2026-07-28 ([Modern]). The handshake chooses the era. Both look the
// same to callers: this package adds and removes everything that belongs to one hop. That
// covers the protocol's `_meta` keys, result types, headers, subscriptions/listen, and
// results that require input. A server that offers both has a connection of each era
// ([Server.Modern]), so that callers are served in their own.
//
// # Goroutines
//
// [Server.Run] owns everything and returns when every goroutine, child and stream of the
// server is done. All other methods are safe for concurrent use. [Conn.Call],
// [Server.Unit], [Server.Modern], [Server.Acquire], [Server.RefreshSkills] and methods
// named Await block until their contexts are done at most. Unit, Modern and Acquire don't
// block longer than the server's timeout. [Conn.Close] blocks for about five seconds at
// most. Other methods don't block.
//
// Read loops never wait. Answers go into channels of capacity one and requests of the
// server into their own goroutines. Notifications go to [Handler.HandleNotification],
// which must not block.
//
// # Order and loss
//
// Messages that belong to a call are delivered before its answer, and none after
// [Conn.Call] returned. Late, duplicate and unknown answers are dropped. A line that is
// not a message is skipped and reported. If its id is readable, its call fails at once.
// More than 1024 concurrent requests of a server are refused. Excess stderr lines are
// only counted.
//
// # Trust
//
// All input from servers is limited: frames, pages, entries, stderr lines and events.
// Memory for large messages counts against Options.Memory, which all clients and servers
// share. Over its limit, messages fail, the largest first. Errors contain no URL
// credentials or queries, headers or environments. Text from servers passes
// Options.Redact before it appears in errors, states or the journal.
//
// The package must not know clients or listed names. It interprets only the methods that
// it needs: initialize, ping, lists, progress and cancellation.
package upstream
