package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/archive"
	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/registry"
	"goblin/registry/query"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

type changeFlags struct {
	server, since, from string
}

func (a *App) changes() *cobra.Command {
	var f changeFlags
	cmd := a.withJSON("print a JSON object with all definitions", &cobra.Command{
		Use:     "changes [SERVER]",
		GroupID: cli.GroupRecord,
		Short:   "Show changed tools, prompts and resources",
		Long: `Show which definitions servers added, removed and changed, and what a change means
for callers: an argument is now required, a description changed, a tool is now
destructive. Changes while Goblin did not run are found by the cached lists.

The running daemon has the changes since its start; without one, the recordings
of the config are read. --from reads those of another file or folder.`,
		Example: `  goblin changes
  goblin changes github --since 7d
  goblin changes --from night.jsonl.gz
  goblin changes --json | jq -r '.changes[] | select(.op == "changed") | .name'`,
		ValidArgsFunction: a.complete("servers"),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneArg("the name of a server")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.server = args[0]
			}
			return a.showChanges(cmd.Context(), &f)
		},
	})
	cmd.Flags().StringVar(&f.since, "since", "", "only changes since this `TIME`: 10m ago, 02:06, or a date")
	cmd.Flags().StringVar(&f.from, "from", "", "read a recording: a `FILE` or folder")
	return cmd
}

func (a *App) showChanges(ctx context.Context, f *changeFlags) error {
	var since time.Time
	if f.since != "" {
		var ok bool
		if since, ok = query.SinceTime(f.since, time.Now()); !ok {
			return cli.Fail(cli.CodeUsage, "--since must be an age such as 2h or 7d, or a time such as 02:06, 2026-03-01 or 2026-03-01T02:00:00Z, not %q", f.since)
		}
	}
	q := daemon.ChangeQuery{Server: f.server, Since: since, Definitions: a.asJSON}
	answer, err := a.findChanges(ctx, f.from, q)
	if err != nil {
		return err
	}
	if answer.Dropped > 0 {
		a.Warn("%s evicted by newer ones; recordings keep them", termtext.Count(int(answer.Dropped), "older change"))
	}
	return a.print(answer, func() error { return a.printChanges(&answer) })
}

func (a *App) findChanges(ctx context.Context, from string, q daemon.ChangeQuery) (daemon.ChangeAnswer, error) {
	if from != "" {
		return a.recordedChanges(ctx, from, q)
	}
	r, err := a.findDaemon(ctx)
	switch {
	case errors.Is(err, daemon.ErrNotRunning) && r != nil:
		if folder := a.recordings(); folder != "" {
			a.Warn("no daemon is running; reading %s", folder)
			return a.recordedChanges(ctx, folder, q)
		}
		return daemon.ChangeAnswer{}, cli.Fail(cli.CodeConnect, "no daemon is running for %s; start one with \"%s\", or read a recording with --from", r.name, r.start)
	case err != nil:
		return daemon.ChangeAnswer{}, r.explain(err)
	}
	if q.Server != "" {
		if err := knownServer(q.Server, statusNames(r.status.Servers)); err != nil {
			return daemon.ChangeAnswer{}, err
		}
	}
	answer, err := r.Changes(ctx, q)
	return answer, r.explain(err)
}

// recordings returns the folder with recordings of the config, or "".
func (a *App) recordings() string {
	cfg, err := a.Load()
	if err != nil {
		return ""
	}
	folder := cmp.Or(cfg.Record.Dir, a.RecordingsDir(cfg))
	if folder == "" {
		return ""
	}
	if files, err := recording.Files(folder); err != nil || len(files) == 0 {
		return ""
	}
	return folder
}

func (a *App) recordedChanges(ctx context.Context, path string, q daemon.ChangeQuery) (daemon.ChangeAnswer, error) {
	recorded, err := archive.Load(ctx, path, archive.Options{Requests: 1, NoTraffic: true})
	if err != nil {
		return daemon.ChangeAnswer{}, err
	}
	for _, p := range recorded.Problems {
		a.Warn("%s", p)
	}
	var names []string
	for _, s := range recorded.Registry.States() {
		names = append(names, s.Name)
	}
	if q.Server != "" {
		if err := knownServer(q.Server, names); err != nil {
			return daemon.ChangeAnswer{}, err
		}
	}
	answer := daemon.SelectChanges(recorded.Registry.ListChanges(), &q)
	answer.From = recorded.Start
	return answer, nil
}

// maxSimilar is the number of entries of one list, added or removed at once, that are
// printed one by one.
const maxSimilar = 5

// similar counts the first changes that were added to, or removed from, one list at once.
func similar(changes []daemon.ListChange) (n int) {
	first := &changes[0]
	for i := range changes {
		c := &changes[i]
		if c.Op == registry.OpChanged || c.Server != first.Server || c.Kind != first.Kind || c.Op != first.Op || !c.Time.Equal(first.Time) {
			break
		}
		n++
	}
	return n
}

func (a *App) printChanges(answer *daemon.ChangeAnswer) error {
	if len(answer.Changes) == 0 {
		return a.printText("No changes since " + answer.From.Local().Format(time.DateTime) + ".")
	}
	t := table{header: []string{"TIME", "SERVER", "CHANGE", "NAME", "WHAT"}}
	for i := 0; i < len(answer.Changes); i++ {
		c := &answer.Changes[i]
		change := c.Op + " " + c.Kind
		what := []string{""}
		switch n := similar(answer.Changes[i:]); {
		case c.Count > 0:
			change, what = fmt.Sprintf("%d %ss", c.Count, c.Kind), c.What
		case n > maxSimilar:
			change, what = fmt.Sprintf("%s %d %ss", c.Op, n, c.Kind), []string{"and others; --json prints all"}
			i += n - 1
		case len(c.What) > 0:
			what = c.What
		}
		t.add(c.Time.Local().Format(time.DateTime), termtext.Line(c.Server), change, termtext.Line(c.Name), termtext.Line(what[0]))
		for _, more := range what[1:] {
			t.add("", "", "", "", termtext.Line(more))
		}
	}
	return a.printText(a.ForLog(strings.TrimRight(t.render(a.Columns), "\n")))
}
