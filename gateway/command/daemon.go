package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/registry"
	"goblin/registry/termtext"
)

// stopLimit bounds the wait of stop for the daemon's end; the daemon's servers have less.
const stopLimit = 30 * time.Second

// running is the daemon that a command is about. The file is not needed to be
// free of mistakes: a user who edits it can still ask and stop the daemon.
type running struct {
	daemon.Remote
	name   string // of the config, as a user knows it
	start  string // the command that starts a daemon of it
	status daemon.Status
}

// running asks the running daemon for its status.
func (a *App) running(ctx context.Context) (*running, error) {
	r, err := a.lookUp(ctx)
	if err != nil {
		return nil, r.explain(err)
	}
	return r, nil
}

// lookUp is running whose error is [daemon.ErrNotRunning] if the config is free of
// mistakes and nothing serves it. A daemon whose file was removed is found as long
// as no other file takes its place.
func (a *App) lookUp(ctx context.Context) (*running, error) {
	r, err := a.lookUpFile(ctx)
	if err != nil && ctx.Err() == nil {
		if left, several := a.lookUpRemoved(ctx); left != nil || several != nil {
			return left, several
		}
	}
	return r, err
}

// lookUpRemoved is the running daemon of a config file that is not there any more;
// nil for none. Several are an error: their environments differ, but the file no
// longer tells which is meant.
func (a *App) lookUpRemoved(ctx context.Context) (*running, error) {
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
	place, err := daemon.Find("", a.Version.Version, a.Getenv)
	if err != nil {
		return nil, nil
	}
	var found []*running
	for _, place := range daemon.Serving(place.Dir, full, a.Version.Version) {
		r := &running{Remote: daemon.Remote{Place: place}, name: fileName(path)}
		r.status, err = r.Status(ctx)
		same := func(other *running) bool { return other.status.PID == r.status.PID }
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
	return nil, cli.Fail(cli.CodeConnect, "%d daemons serve %s, which is not there any more; put it back, so that it shows which is meant", len(found), fileName(path))
}

func (a *App) lookUpFile(ctx context.Context) (*running, error) {
	path, err := a.Find()
	if err != nil {
		return nil, err
	}
	_, mistakes := a.LoadFile(path) // for the mask
	r := &running{name: fileName(path), start: a.Line("serve")}
	if r.Place, err = a.Place(path); err != nil {
		return nil, err
	}
	r.status, err = r.Status(ctx)
	if mistakes != nil && errors.Is(err, daemon.ErrNotRunning) {
		return nil, mistakes // none could be started either
	}
	for i := range r.status.Servers {
		r.status.Servers[i].Error = a.Mask().String(r.status.Servers[i].Error)
	}
	return r, err
}

// explain tells why the daemon cannot be asked.
func (r *running) explain(err error) error {
	var failed *daemon.ControlError
	switch {
	case err == nil, r == nil, errors.Is(err, context.Canceled), errors.As(err, &failed):
		return err
	case errors.Is(err, daemon.ErrNotRunning):
		return cli.Fail(cli.CodeConnect, "no daemon is running for %s; start one with \"%s\", or let a client do it", r.name, r.start)
	default:
		return cli.Fail(cli.CodeConnect, "ask the running daemon: %w", err)
	}
}

func (a *App) status() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status",
		GroupID: cli.GroupDaemon,
		Short:   "Show the running daemon, its servers, clients and screens",
		Long: `Show the daemon that serves this config: its process, its HTTP address, the file
of its log, the state of each server, the clients that are connected, and the
screens that are open. Exit code 4 means that no daemon is running.`,
		Example: `  goblin status
  goblin status --json | jq '.servers[] | select(.state != "ready")'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.running(cmd.Context())
			switch {
			case err != nil:
				return interrupted(cmd.Context(), err)
			case asJSON:
				return a.json(r.status)
			}
			return a.printStatus(r.status)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// printStatus shows a daemon to people.
func (a *App) printStatus(s daemon.Status) error {
	var head strings.Builder
	fmt.Fprintf(&head, "Goblin %s, pid %d, up %s\n", s.Version, s.PID, termtext.Age(time.Since(s.Started)))
	fmt.Fprintf(&head, "config   %s\n", termtext.Line(s.Config))
	otherBuild := ""
	if s.Build != a.Version.Build {
		otherBuild = fmt.Sprintf("%s; this command is of build %s; \"%s\" stops the daemon", cmp.Or(s.Build, "unknown"), cmp.Or(a.Version.Build, "unknown"), a.Line("stop"))
	}
	for _, row := range []struct{ value, text string }{
		{otherBuild, "build    %s\n"},
		{startedFrom(&s), "started  %s\n"},
		{s.Address, "http     %s\n"},
		{s.Log, "log      %s\n"},
		{s.Linger, "ends     %s after its last client\n"},
		{s.Notice, "notice   %s\n"},
	} {
		if row.value != "" {
			fmt.Fprintf(&head, row.text, termtext.Line(row.value))
		}
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(&head, "config   %s\n", termtext.Line(w))
	}
	if awaiting, _ := pinned(s.Servers, ""); awaiting > 0 {
		fmt.Fprintf(&head, "approve  %s; \"%s\" shows what is new or changed\n", amount(awaiting, "tool awaits approval", "tools await approval"), a.Line("approve"))
	}
	if text := definitionsNote(s.Servers); text != "" {
		fmt.Fprintf(&head, "lists    %s; \"%s\" shows them\n", text, a.Line("doctor"))
	}
	if err := a.printText(head.String()); err != nil {
		return err
	}
	if len(s.Servers) > 0 {
		fmt.Fprintln(a.Out)
		if err := serverTable(s.Servers).render(a.Out, a.Columns); err != nil {
			return err
		}
	}
	fmt.Fprintln(a.Out)
	clients := table{header: []string{"CLIENT", "VERSION", "TRANSPORT", "PROTOCOL", "SINCE"}}
	screens := table{header: []string{"SCREEN", "SIZE", "SINCE"}}
	for _, c := range s.Sessions {
		since := termtext.Age(time.Since(c.Since)) + " ago"
		if c.IsScreen() {
			screens.add(screenName(c), screenSize(c), since)
			continue
		}
		if !c.SilentSince.IsZero() {
			since += ", silent for " + termtext.Age(time.Since(c.SilentSince))
		}
		clients.add(cmp.Or(c.Client, "(not introduced)"), c.Version, c.Transport, c.Protocol, since)
	}
	if len(clients.rows) == 0 {
		if err := a.printText("No clients are connected."); err != nil {
			return err
		}
	} else if err := clients.render(a.Out, a.Columns); err != nil {
		return err
	}
	if len(screens.rows) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	return screens.render(a.Out, a.Columns)
}

// definitionsNote counts the definitions that clients get changed, or not at all; "" for
// none.
func definitionsNote(servers []daemon.Server) string {
	changed, dropped := 0, 0
	for i := range servers {
		if d := servers[i].Definitions; d != nil {
			changed, dropped = changed+d.Changed, dropped+d.Dropped
		}
	}
	var parts []string
	if changed > 0 {
		parts = append(parts, termtext.Count(changed, "definition")+" "+registry.ChangedText)
	}
	if dropped > 0 {
		parts = append(parts, fmt.Sprintf("%d dropped", dropped))
	}
	return strings.Join(parts, ", ")
}

// startedFrom says when a daemon was started, and from which terminal.
func startedFrom(s *daemon.Status) string {
	text := termtext.Clock(s.Started, time.Now())
	switch {
	case s.Terminal == "":
		return text + " without a terminal"
	case s.TerminalGone:
		return text + " from " + s.Terminal + ", which is gone"
	}
	return text + " from " + s.Terminal
}

// screenName says where a screen is, or what acts as one.
func screenName(c daemon.Session) string {
	name := cmp.Or(c.Terminal, c.Client, "(not introduced)")
	if c.Owner {
		name += " (the daemon's own)"
	}
	return name
}

func screenSize(c daemon.Session) string {
	if c.Width == 0 {
		return ""
	}
	return fmt.Sprintf("%dx%d", c.Width, c.Height)
}

func (a *App) stop() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "stop",
		GroupID: cli.GroupDaemon,
		Short:   "Stop the running daemon and its servers",
		Long: `Stop the daemon that serves this config, and wait until it and its servers are
gone. A client that is still connected through "goblin stdio" starts the next
daemon by itself.`,
		Example: `  goblin stop
  goblin --config work.yaml stop`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			r, err := a.running(ctx)
			if err != nil {
				return interrupted(ctx, err)
			}
			if err := r.Stop(ctx); err != nil && !errors.Is(err, daemon.ErrNotRunning) {
				return interrupted(ctx, r.explain(err))
			}
			if err := awaitEnd(ctx, r.status.PID); err != nil {
				return err
			}
			return a.answer(asJSON, map[string]any{"stopped": true, "pid": r.status.PID}, fmt.Sprintf("Stopped the daemon (pid %d)%s.", r.status.PID, next(r.status)))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// next says that there will be another daemon soon; "" if nobody starts it.
func next(s daemon.Status) string {
	bridged := 0
	for _, c := range s.Sessions {
		if c.IsBridged() {
			bridged++
		}
	}
	if bridged == 0 {
		return ""
	}
	return "; " + amount(bridged, "client starts", "clients start") + " the next one"
}

// awaitEnd waits until a process is gone.
func awaitEnd(ctx context.Context, pid int) error {
	limit := time.After(stopLimit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for cli.Alive(pid) {
		select {
		case <-tick.C:
		case <-limit:
			return cli.Fail(cli.CodeTimeout, "the daemon (pid %d) has not ended after %s; end that process yourself", pid, stopLimit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func namesOf(servers []daemon.Server) []string {
	return each(servers, func(s *daemon.Server) string { return s.Name })
}

// knownServer checks a server that the user named.
func knownServer(name string, servers []daemon.Server) error {
	known := namesOf(servers)
	if slices.Contains(known, name) {
		return nil
	}
	return cli.Fail(cli.CodeNotFound, "there is no server %q%s", name, cli.Meant(name, known, "; the daemon has none"))
}

func (a *App) restart() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "restart SERVER",
		GroupID: cli.GroupDaemon,
		Short:   "Restart one server of the running daemon",
		Long: `Close the daemon's connections to a server, which ends its process if it has one,
and open them anew. Clients stay connected; calls that were running at that
server fail.`,
		Example: `  goblin restart clock
  goblin restart clock && goblin status`,
		Args:              oneArg("the name of a server"),
		ValidArgsFunction: a.complete("servers"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, name := cmd.Context(), args[0]
			r, err := a.running(ctx)
			if err != nil {
				return interrupted(ctx, err)
			}
			if err := knownServer(name, r.status.Servers); err != nil {
				return err
			}
			if err := r.Restart(ctx, name); err != nil {
				return interrupted(ctx, r.explain(err))
			}
			return a.answer(asJSON, map[string]any{"restarted": name}, fmt.Sprintf("Restarting %q.", name))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
