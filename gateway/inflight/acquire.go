package inflight

import (
	"context"

	"goblin/gateway/downstream"
	"goblin/gateway/upstream"
)

// Acquire takes a slot at a server for a request of a client, as [upstream.Server.Acquire]
// does. Clients that want progress are notified while they wait.
func Acquire(ctx context.Context, server *upstream.Server, x *downstream.Request) (release func(), err error) {
	if release = server.TryAcquire(x.Owner()); release != nil {
		return release, nil
	}
	defer downstream.NotifyWaiting(ctx, "waiting for a free slot at server "+server.Name())()
	return server.Acquire(ctx, x.Owner(), x.Method())
}
