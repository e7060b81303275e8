package command

import (
	"cmp"
	"context"
	"net"
	"slices"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/stack"
)

// Load returns the config. With --profile it has only the servers of the profile.
func (a *App) Load() (*config.Config, error) {
	cfg, err := a.App.Load()
	if err != nil || a.profile == "" {
		return cfg, err
	}
	p, ok := cfg.Profile(a.profile)
	if !ok {
		return nil, cli.Fail(cli.CodeNotFound, "no profile %q%s", a.profile, cfg.SuggestProfile(a.profile))
	}
	part := *cfg
	part.Servers = slices.DeleteFunc(slices.Clone(cfg.Servers), func(s config.Server) bool { return !p.Has(&s) })
	a.wholeConfig = cfg
	return &part, nil
}

type profileGateway struct {
	Gateway
	profile string
}

// Status implements [daemon.Gateway].
func (n *profileGateway) Status(ctx context.Context) (daemon.Status, error) {
	s, err := n.Gateway.Status(ctx)
	if err == nil {
		s.Servers, err = n.Gateway.Servers(ctx, n.profile)
	}
	return s, err
}

// List implements [daemon.Gateway].
func (n *profileGateway) List(ctx context.Context, q daemon.ListQuery) ([]daemon.Entry, error) {
	q.Profile = n.profile
	return n.Gateway.List(ctx, q)
}

// Search implements [daemon.Gateway].
func (n *profileGateway) Search(ctx context.Context, q daemon.SearchQuery) (daemon.SearchAnswer, error) {
	q.Profile = n.profile
	return n.Gateway.Search(ctx, q)
}

// Script implements [daemon.Gateway].
func (n *profileGateway) Script(ctx context.Context, q daemon.ScriptQuery) (daemon.ScriptAnswer, error) {
	q.Profile = n.profile
	return n.Gateway.Script(ctx, q)
}

// Connect implements [Gateway].
func (n *profileGateway) Connect(ctx context.Context, _ string) (net.Conn, error) {
	return n.Gateway.Connect(ctx, n.profile)
}

func profileOrEvery(profile string) string { return cmp.Or(profile, stack.AllEntries) }
