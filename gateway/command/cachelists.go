package command

import (
	"context"
	"log/slog"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/servers"
	"goblin/gateway/stack"
)

// cacheListsTimeout applies without a terminal.
const cacheListsTimeout = 10 * time.Second

// cacheLists starts each server without cached lists once, so that the first client gets
// complete lists. It does nothing without a valid config or while a daemon runs. It
// ignores servers that fail to start; "goblin doctor" reports them.
func (a *App) cacheLists(ctx context.Context) error {
	path, err := a.FindConfig()
	if err != nil || path == "" {
		return nil //nolint:nilerr // the command is done, and others report it
	}
	cfg, err := a.LoadFile(path)
	if err != nil {
		return nil //nolint:nilerr // the command is done, and others report it
	}
	names := a.uncachedServers(cfg)
	place, err := a.FindDaemon(path)
	if len(names) == 0 || err == nil && daemonRuns(ctx, place) {
		return nil
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if !a.ErrTTY {
		limited, cancel = context.WithTimeout(ctx, cacheListsTimeout)
	}
	defer cancel()
	_ = a.withOwnGateway(limited, cfg, names, func(g Gateway) error {
		_, err := g.List(limited, daemon.ListQuery{Kind: toolKind.list}) // waits for the servers
		return err
	})
	return ctx.Err()
}

func (a *App) uncachedServers(cfg *config.Config) (names []string) {
	store := stack.CachedLists(a.ListCacheDir(), cfg, slog.New(slog.DiscardHandler))
	if store == nil {
		return nil
	}
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; canStart(s) && !servers.HasCachedLists(store, s) {
			names = append(names, s.Name)
		}
	}
	return names
}
