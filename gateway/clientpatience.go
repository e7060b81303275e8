package gateway

import (
	"context"
	"time"

	"goblin/gateway/mcpclient"
)

// haste bounds how long a client waits. Both times begin with the handshake.
type haste struct {
	handshake time.Duration // until its answer
	lists     time.Duration // until the answers of the first lists
}

// hurried lists clients that give up a slow server, or begin without it, soon after they
// started, by clientInfo.name. Servers that are slower appear by list_changed.
var hurried = map[string]haste{
	// Codex begins a turn without optional servers that are not ready after one second.
	"codex-mcp-client": {500 * time.Millisecond, 500 * time.Millisecond},
	// Claude Code begins its first turn after two seconds without a terminal, else after five.
	"claude-code": {1500 * time.Millisecond, 1500 * time.Millisecond},
	// Cline drops a server that does not answer initialize in 1.5 s, or a list in five.
	"@cline/core": {time.Second, 4 * time.Second},
	// opencode drops a server that has not listed its tools after five seconds.
	"opencode": {4 * time.Second, 4 * time.Second},
}

// greet waits before the answer to a handshake for servers that connect for the first time,
// see [fleet.Fleet.AwaitAttempts]. Goblin's own clients do not wait.
func (r *request) greet() {
	if r.Session().IsScreen() || mcpclient.IsOwn(r.Client().Name, r.Client().Title) {
		return
	}
	ctx, cancel := r.hurry(hurried[r.ClientName()].handshake)
	defer cancel()
	r.gateway.Servers.AwaitAttempts(ctx, r.Session().Stopping(), r.view())
}

// hurryLists is hurry for a list.
func (r *request) hurryLists() (context.Context, context.CancelFunc) {
	return r.hurry(hurried[r.ClientName()].lists)
}

// hurry returns the context of a request. It ends at the limit after the client's
// handshake; 0 is no limit.
func (r *request) hurry(limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(r.Context())
	}
	since, known := r.Session().HandshakeTime()
	if !known { // such requests have no session in common: each may take a part
		since, limit = r.Started(), limit/2
	}
	return context.WithDeadline(r.Context(), since.Add(limit))
}
