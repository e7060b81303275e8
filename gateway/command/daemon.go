package command

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
)

// runningDaemon is the daemon of a config, which may have mistakes: while editing it, the
// user can still query and stop the daemon.
type runningDaemon struct {
	daemon.Remote
	name   string // of the config, for users
	start  string // the command that starts a daemon
	status daemon.Status
}

func (a *App) runningDaemon(ctx context.Context) (*runningDaemon, error) {
	r, err := a.findDaemon(ctx)
	if err != nil {
		return nil, r.explain(err)
	}
	return r, nil
}

// findDaemon is like runningDaemon, but returns [daemon.ErrNotRunning] if the config is
// valid and no daemon runs. It also finds the daemon of a removed config file.
func (a *App) findDaemon(ctx context.Context) (*runningDaemon, error) {
	r, err := a.findDaemonOfFile(ctx)
	if err != nil && ctx.Err() == nil {
		if left, several := a.findDaemonOfRemovedFile(ctx); left != nil || several != nil {
			return left, several
		}
	}
	return r, err
}

// findDaemonOfRemovedFile returns nil if there is no daemon. It fails if there are
// several: they differ in their environment, and only the file could identify the right
// one.
func (a *App) findDaemonOfRemovedFile(ctx context.Context) (*runningDaemon, error) {
	path := cmp.Or(a.ConfigFlag, a.Getenv("GOBLIN_CONFIG"), config.DefaultPath(a.Getenv))
	if path == "" {
		return nil, nil
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	full, err := config.Canonical(path)
	if err != nil {
		return nil, nil
	}
	place, err := daemon.Find("", a.Version.Handshake(), a.Getenv)
	if err != nil {
		return nil, nil
	}
	var found []*runningDaemon
	for _, place := range daemon.FindRunning(place.Dir, full, a.Version.Handshake()) {
		r := &runningDaemon{Remote: daemon.Remote{Place: place}, name: fileName(path)}
		r.status, err = r.Status(ctx)
		same := func(other *runningDaemon) bool { return other.status.PID == r.status.PID }
		if err == nil && !slices.ContainsFunc(found, same) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	return nil, cli.Fail(cli.CodeConnect, "%d daemons serve %s, but the file was removed; restore it so that the right daemon can be found", len(found), fileName(path))
}

func (a *App) findDaemonOfFile(ctx context.Context) (*runningDaemon, error) {
	path, err := a.FindConfig()
	if err != nil {
		return nil, err
	}
	_, mistakes := a.LoadFile(path) // also masks secrets
	r := &runningDaemon{name: fileName(path), start: a.CommandLine("serve")}
	if r.Place, err = a.FindDaemon(path); err != nil {
		return nil, err
	}
	r.status, err = r.Status(ctx)
	if mistakes != nil && errors.Is(err, daemon.ErrNotRunning) {
		return nil, mistakes // starting one would fail too
	}
	for i := range r.status.Servers {
		r.status.Servers[i].Error = a.Mask().String(r.status.Servers[i].Error)
	}
	return r, err
}

func (r *runningDaemon) explain(err error) error {
	var failed *daemon.OperationError
	switch {
	case err == nil, r == nil, errors.Is(err, context.Canceled), errors.As(err, &failed):
		return err
	case errors.Is(err, daemon.ErrNotRunning):
		return cli.Fail(cli.CodeConnect, "no daemon is running for %s; start one with \"%s\", or connect a client", r.name, r.start)
	default:
		return cli.Fail(cli.CodeConnect, "ask the running daemon: %w", err)
	}
}

func statusNames(servers []daemon.Server) []string {
	return each(servers, func(s *daemon.Server) string { return s.Name })
}

func knownServer(name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	return cli.Fail(cli.CodeNotFound, "no server %q%s", name, cli.Suggest(name, known, "; the daemon has no servers"))
}
