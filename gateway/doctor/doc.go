// Package doctor finds out why a server does not work and suggests a fix.
//
// It owns the checks, and holds definitions against clients' limits. It speaks to servers by
// [goblin/gateway/upstream], as Goblin always does, in a process or a connection of its own,
// which is gone when a function of this package returns. It must not know who asks, and
// how results are shown: texts quote servers, so the caller that shows them makes them safe.
//
// All functions may be called from any goroutine. They block until the checks are done:
// for a server that takes its startup_timeout, half a minute for its lists and some
// seconds to end it, at most. Looking for another address of a remote server takes as much
// as its startup_timeout. Nothing runs before it is asked for.
package doctor
