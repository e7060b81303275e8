package command

import (
	"cmp"
	"context"
	"net"
	"slices"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/stack"
)

// withProfile adds --profile to a command that asks.
func (a *App) withProfile(cmd *cobra.Command) {
	a.ofProfile(cmd, &a.profile, "ask as a client that has this `PROFILE` of the config")
}

// Load is the config; with --profile as if it had the servers of the profile alone.
func (a *App) Load() (*config.Config, error) {
	cfg, err := a.App.Load()
	if err != nil || a.profile == "" {
		return cfg, err
	}
	p, ok := cfg.Profile(a.profile)
	if !ok {
		return nil, cli.Fail(cli.CodeNotFound, "no profile %q%s", a.profile, cfg.ProfileMeant(a.profile))
	}
	part := *cfg
	part.Servers = slices.DeleteFunc(slices.Clone(cfg.Servers), func(s config.Server) bool { return !p.Has(&s) })
	a.whole = cfg
	return &part, nil
}

// profileGateway is a gateway as the clients of a profile see it.
type profileGateway struct {
	Gateway
	profile string
}

// narrow opens a gateway for a part of the config: the names of servers depend on all.
func (a *App) narrow(ctx context.Context, part *config.Config, only []string) (Gateway, error) {
	if only == nil {
		only = append([]string{}, serverNames(part)...)
	}
	g, err := a.openWhole(ctx, a.whole, only)
	if err != nil {
		return nil, err
	}
	return &profileGateway{g, a.profile}, nil
}

// Status implements [control.Gateway].
func (n *profileGateway) Status(ctx context.Context) (daemon.Status, error) {
	s, err := n.Gateway.Status(ctx)
	if err == nil {
		s.Servers, err = n.Gateway.Servers(ctx, n.profile)
	}
	return s, err
}

// List implements [control.Gateway].
func (n *profileGateway) List(ctx context.Context, q daemon.ListQuery) ([]daemon.Entry, error) {
	q.Profile = n.profile
	return n.Gateway.List(ctx, q)
}

// Search implements [control.Gateway].
func (n *profileGateway) Search(ctx context.Context, q daemon.SearchQuery) (daemon.SearchAnswer, error) {
	q.Profile = n.profile
	return n.Gateway.Search(ctx, q)
}

// Script implements [control.Gateway].
func (n *profileGateway) Script(ctx context.Context, q daemon.ScriptQuery) (daemon.ScriptAnswer, error) {
	q.Profile = n.profile
	return n.Gateway.Script(ctx, q)
}

// Connect implements [Gateway].
func (n *profileGateway) Connect(ctx context.Context, _ string) (net.Conn, error) {
	return n.Gateway.Connect(ctx, n.profile)
}

// seenBy is the profile of a connection: everything, unless it names one.
func seenBy(profile string) string { return cmp.Or(profile, stack.EveryProfile) }
