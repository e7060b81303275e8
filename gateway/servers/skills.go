package servers

import (
	"context"
	"strconv"
	"sync"
	"time"

	"goblin/registry"
)

// RefreshSkills has all servers that a client sees fetch their skills again that may have others by now, if
// wait is set, for as long as startup_wait at most. It returns how long the merged list
// may be kept, as members of a result with a comma before each, nil where no server says,
// and whether any server has skills.
func (f *Manager) RefreshSkills(ctx context.Context, seen *registry.Snapshot, wait bool) (hints []byte, served bool) {
	ctx, cancel := context.WithTimeout(ctx, f.o.Config.Gateway.StartupWait)
	defer cancel()
	if !wait {
		cancel()
	}
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		ttl  = 24 * time.Hour
		said bool
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
			said = said || h.IsSet
			if ok {
				ttl = min(ttl, h.TTL)
			}
			if ok && !h.Public {
				scope = "private"
			}
		})
	}
	all.Wait()
	if !said {
		return nil, served
	}
	hints = strconv.AppendInt([]byte(`,"ttlMs":`), ttl.Milliseconds(), 10)
	return append(hints, `,"cacheScope":"`+scope+`"`...), served
}
