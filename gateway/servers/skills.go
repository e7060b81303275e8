package servers

import (
	"context"
	"strconv"
	"sync"
	"time"

	"goblin/registry"
)

// RefreshSkills makes all servers that the client sees fetch outdated skills. If wait is
// set, it waits for startup_wait at most. hints are the cache hints of the merged list as
// JSON members with leading commas, or nil. served reports whether any server has skills.
func (f *Manager) RefreshSkills(ctx context.Context, seen *registry.Snapshot, wait bool) (hints []byte, served bool) {
	ctx, cancel := context.WithTimeout(ctx, f.o.Config.Gateway.StartupWait)
	defer cancel()
	if !wait {
		cancel()
	}
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		ttl    = 24 * time.Hour
		hinted bool
	)
	scope := "public"
	for _, b := range f.All() {
		if !seen.HasServer(b.Name()) {
			continue
		}
		all.Go(func() {
			h, ok := b.Server.RefreshSkills(ctx)
			mu.Lock()
			defer mu.Unlock()
			served = served || ok
			hinted = hinted || h.IsSet
			if ok {
				ttl = min(ttl, h.TTL)
			}
			if ok && !h.Public {
				scope = "private"
			}
		})
	}
	all.Wait()
	if !hinted {
		return nil, served
	}
	hints = strconv.AppendInt([]byte(`,"ttlMs":`), ttl.Milliseconds(), 10)
	return append(hints, `,"cacheScope":"`+scope+`"`...), served
}
