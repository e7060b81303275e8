package gateway

import (
	"context"
	"time"

	"goblin/gateway/client"
)

// hurried lists clients that work with the tools they have soon after they started, by
// clientInfo.name. The value bounds the time from the handshake to the answers of the
// first lists. Servers that are slower appear by list_changed.
var hurried = map[string]time.Duration{
	// Codex begins a turn without optional servers that are not ready after one second.
	"codex-mcp-client": 500 * time.Millisecond,
	// Claude Code begins its first turn after five seconds, see MCP_CONNECT_TIMEOUT_MS.
	"claude-code": 4 * time.Second,
	// opencode drops a server that has not listed its tools after five seconds.
	"opencode": 4 * time.Second,
}

// greet waits before the answer to a handshake for servers that connect for the first time,
// see [fleet.Fleet.AwaitAttempts]. Goblin's own clients do not wait.
func (r *request) greet() {
	if r.Session().IsScreen() || client.IsOwn(r.Client().Name, r.Client().Title) {
		return
	}
	ctx, cancel := r.hurry()
	defer cancel()
	r.gateway.Servers.AwaitAttempts(ctx, r.Session().Stopping(), r.view())
}

// hurry returns the context of a request, with the deadline of a client in a hurry.
func (r *request) hurry() (context.Context, context.CancelFunc) {
	limit, ok := hurried[r.ClientName()]
	if !ok {
		return context.WithCancel(r.Context())
	}
	since, known := r.Session().Greeted()
	if !known { // such requests have no session in common: each may take a part
		since, limit = r.Began(), limit/2
	}
	return context.WithDeadline(r.Context(), since.Add(limit))
}
