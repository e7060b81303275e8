package gateway

import (
	"context"
	"time"

	"goblin/gateway/mcpclient"
)

// startupLimits bounds how long a client waits, from its handshake.
type startupLimits struct {
	handshake time.Duration // until its answer
	lists     time.Duration // until the answers of the first lists
}

// clientStartupLimits has the clients, by clientInfo.name, that give up a slow server, or
// start without it. Slower servers appear by list_changed.
var clientStartupLimits = map[string]startupLimits{
	// Codex begins a turn without optional servers that are not ready after one second.
	"codex-mcp-client": {500 * time.Millisecond, 500 * time.Millisecond},
	// Claude Code begins its first turn after two seconds without a terminal, else after five.
	"claude-code": {1500 * time.Millisecond, 1500 * time.Millisecond},
	// Cline drops a server that does not answer initialize in 1.5 s, or a list in five.
	"@cline/core": {time.Second, 4 * time.Second},
	// opencode drops a server that has not listed its tools after five seconds.
	"opencode": {4 * time.Second, 4 * time.Second},
}

// awaitServers waits, before the answer to a handshake, for servers that connect for the first
// time. Goblin's own clients do not wait.
func (r *request) awaitServers() {
	if r.Session().IsScreen() || mcpclient.IsOwn(r.Client().Name, r.Client().Title) {
		return
	}
	ctx, cancel := r.limitContext(clientStartupLimits[r.ClientName()].handshake)
	defer cancel()
	r.gateway.Servers.AwaitAttempts(ctx, r.Session().Stopping(), r.view())
}

// listContext returns the context of a list request, within the client's startup limit.
func (r *request) listContext() (context.Context, context.CancelFunc) {
	return r.limitContext(clientStartupLimits[r.ClientName()].lists)
}

// limitContext returns the context of a request. It ends at limit after the client's
// handshake; 0 is no limit.
func (r *request) limitContext(limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(r.Context())
	}
	since, known := r.Session().HandshakeTime()
	if !known { // such requests have no session in common: each may take a part
		since, limit = r.Started(), limit/2
	}
	return context.WithDeadline(r.Context(), since.Add(limit))
}
