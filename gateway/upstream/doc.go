// Package upstream connects to MCP servers over stdio, Streamable HTTP and HTTP+SSE.
//
// A Server connects, negotiates, fetches the lists into the catalog, fetches
// them again when the backend says that they changed, and starts over with a
// growing, jittered delay when the connection ends; it never gives up. Each
// attempt makes a new [Conn]: a child process in a process group of its own (on
// Windows a job object, which ends with us), Streamable HTTP by a client of our
// own, or HTTP+SSE (2024-11-05).
//
// A server over HTTP that vanished without closing its connections is found by
// asking for a sign of life ("ping", or server/discover): when a call was
// not answered within timeout and, if it may speak of its own accord, after half a minute
// of silence. No answer, nor anything else, within its timeout (5 s at least)
// ends the connection.
//
// # Connections
//
// Every connection is a link: the table of calls, the dispatch of messages, and the end.
// It uses one of three transports: stdio, streamable or sse. The two over HTTP share
// remote. A Server has these connections:
//
//   - its own, kept by Run; the catalog and the server's state are about this one;
//   - one per client with isolation: session, or per folder with isolation: project,
//     because each has a state of its own;
//   - one of the modern era beside each of those if the server offers both eras, because
//     a process or session speaks one era only.
//
// All but the first are units, kept by superviseUnit.
//
// # Eras
//
// A connection speaks a revision up to 2025-11-25, with a handshake and a
// session ([Legacy]), or 2026-07-28, in which every request stands alone
// ([Modern]); which one is found out at its start, see [Era]. To callers both
// are the same: what belongs to one hop (the protocol's keys of `_meta`, types
// of results, headers, subscriptions/listen, results that ask for input) is
// made and taken off here. A server that offers both has a connection of each
// ([Server.Modern]), so that a caller of either era is served in its own.
//
// # Goroutines
//
// [Server.Run] owns everything: it returns when every goroutine, child and
// stream of the server has ended. All other methods may be called from any
// goroutine. [Conn.Call], [Server.Await], [Server.Unit], [Server.Modern] and
// [Server.Acquire] block until their contexts end at the latest, the last three
// not longer than the server's timeout; [Conn.Close] blocks for some five
// seconds at most; nothing else blocks. Read loops never wait for anybody:
// answers go into slots of capacity one, requests of the backend into goroutines
// of their own, notifications to [Handler.HandleNotification], which must not block.
//
// # Order and loss
//
// What the backend sends about a call is delivered before the call's answer,
// and nothing of it after [Conn.Call] returned. Late, doubled and alien answers
// are dropped. A line that is no message is skipped and reported; when its id
// can be read, its call fails at once. Beyond 1024 requests of a backend at a
// time further ones are refused. Of a flood of stderr lines some are counted
// only.
//
// # Trust
//
// Everything a backend sends is bounded: frames, pages, entries, lines of
// stderr, events of a stream. What large messages of all backends take, unfinished,
// on their way there, or waiting for an answer of a client, counts in Options.Memory
// with that of all clients: over its bound they fail, the largest first. Errors hold neither URLs' user information nor
// queries, headers or environments; what backends print or send goes through
// Options.Redact before it is told in errors, states or the journal.
//
// The package knows nothing of clients, of names that they see, and of what
// the methods mean that it does not need itself (initialize, ping, the lists,
// progress, cancellation).
package upstream
