package gateway

import (
	"context"
	"time"

	"goblin/gateway/mcpclient"
)

// startupLimits are the maximum waits of a client, from its handshake.
type startupLimits struct {
	handshake time.Duration // until the answer to the handshake
	lists     time.Duration // until the first lists
}

// clientStartupLimits has the clients, by clientInfo.name, that drop a slow server or
// start without it. Slower servers appear by list_changed.
var clientStartupLimits = map[string]startupLimits{
	// Codex starts a turn after 1 s without optional servers.
	"codex-mcp-client": {500 * time.Millisecond, 500 * time.Millisecond},
	// Claude Code starts its first turn after 2 s without a terminal, otherwise after 5
	// s.
	"claude-code": {1500 * time.Millisecond, 1500 * time.Millisecond},
	// Cline drops a server that does not answer initialize in 1.5 s or a list in 5 s.
	"@cline/core": {time.Second, 4 * time.Second},
	// opencode drops a server that has not listed its tools after 5 s.
	"opencode": {4 * time.Second, 4 * time.Second},
}

// awaitServers waits for the first connections of servers before the answer to a
// handshake. Goblin's own clients do not wait.
func (r *request) awaitServers() {
	if r.Session().IsScreen() || mcpclient.IsOwn(r.Client().Name, r.Client().Title) {
		return
	}
	ctx, cancel := r.limitContext(clientStartupLimits[r.ClientName()].handshake)
	defer cancel()
	r.gateway.Servers.AwaitAttempts(ctx, r.Session().Stopping(), r.view())
}

func (r *request) listContext() (context.Context, context.CancelFunc) {
	return r.limitContext(clientStartupLimits[r.ClientName()].lists)
}

// limitContext returns a request's context that ends at limit after the client's
// handshake. 0 means no limit.
func (r *request) limitContext(limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(r.Context())
	}
	since, known := r.Session().HandshakeTime()
	if !known { // stateless: each request may use half
		since, limit = r.Started(), limit/2
	}
	return context.WithDeadline(r.Context(), since.Add(limit))
}
