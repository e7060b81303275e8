// Package replay answers as recorded servers did, and sends recorded calls to real ones.
//
// [Load] reads one server's part of a recording. [Server.Serve] is then a stdio MCP server
// that answers by matching each request with the recorded ones. [NewConfig] returns the
// config of a gateway with one such process per recorded server. Names, profiles and
// filters are thus the gateway's own. [Against] sends recorded calls to a gateway and
// compares the answers.
//
// Serve blocks until its input closes or its context ends. Each request has its own
// goroutine, at most 1024. Waits of a recording are limited to a day each.
//
// All content of recordings is untrusted. At most a million calls per server are replayed;
// bodies beyond 64 MiB are in a temporary file. A request without a recorded call fails
// with the code REPLAY_MISS.
package replay
