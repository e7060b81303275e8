package gateway

import (
	"context"
	"time"

	"goblin/gateway/mcpclient"
)

// startupLimits limits waits from a client's handshake on.
type startupLimits struct {
	handshake time.Duration // of its answer
	lists     time.Duration // of the first lists
}

// Clients, by clientInfo.name, that start without slow servers. These appear by
// list_changed.
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

// awaitServers waits for first connections, except for Goblin's own clients.
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

// limitContext returns a context that ends at limit after the handshake; 0: no limit.
func (r *request) limitContext(limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(r.Context())
	}
	since, known := r.Session().HandshakeTime()
	if !known { // stateless: each request may use a half
		since, limit = r.Started(), limit/2
	}
	return context.WithDeadline(r.Context(), since.Add(limit))
}
