package command

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/gateway/recorder"
	"goblin/gateway/traffic"
	"goblin/registry/query"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// unfinished matches a term whose value a shell took as the name of a file, as in ms:>1s.
// The UI ignores such a term while it is typed.
var unfinished = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?(ms|size|since|at):[<>=]*$`) })

type trafficFlags struct {
	filter string
	from   string
	since  string
	follow bool
	all    bool
	limit  int
	delete bool
	older  string
}

func (a *App) traffic() *cobra.Command {
	var f trafficFlags
	cmd := a.withJSON("print a JSON object per line, as in recordings", &cobra.Command{
		Use:     "traffic [FILTER]...",
		GroupID: cli.GroupRecord,
		Short:   "Show requests of clients and servers",
		Long: `Show requests of clients and servers, oldest first: of the running daemon, or of
recordings with --from. Without a daemon, the config's recordings are read.

FILTER has the language of the UI's filter. Put it in quotes, and "--" before a
filter that begins with "-". Notifications are shown with --all, or if the filter
names them, as in status:notification.`,
		Example: `  goblin traffic server:github 'ms:>1s'
  goblin traffic -f err:yes
  goblin traffic --from recordings 'at:02:06..02:07' error:timeout
  goblin traffic arg.path:src --since 10m --json | jq .params
  goblin traffic --delete --older 7d`,
		ValidArgsFunction: completeFilter,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.delete || f.older != "" {
				older, ok := query.ParseAge(f.older)
				if !f.delete || !ok || len(args) > 0 || f.follow || f.since != "" {
					return cli.Usage(cmd, "--delete takes only --older with an age such as 7d (s, m, h, d), and --from with a folder")
				}
				return a.deleteTraffic(&f, older)
			}
			if i := slices.IndexFunc(args, unfinished().MatchString); i >= 0 {
				return cli.Usage(cmd, "filter %q has no value; quote filters with < or >, which the shell reads as redirections", args[i])
			}
			f.filter = strings.Join(args, " ")
			if f.since != "" {
				f.filter = strings.TrimSpace(f.filter + " " + query.Set("", "since", []string{f.since}))
			}
			if f.limit < 0 {
				return cli.Usage(cmd, "--limit must not be negative")
			}
			if p := recording.NewFilter(f.filter, nil).Problem(); p.Text != "" {
				return cli.Usage(cmd, "filter, column %d: %s", p.Column, p.Text)
			}
			err := a.showTraffic(cmd.Context(), &f)
			if f.follow && cmd.Context().Err() != nil {
				return nil // Ctrl-C is the normal way to stop
			}
			return err
		},
	})
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "show new requests until Ctrl-C")
	flags.BoolVar(&f.all, "all", false, "also show notifications")
	flags.StringVar(&f.from, "from", "", "read a recording: a `FILE`, a folder, or FILE#NUMBER for one request")
	flags.StringVar(&f.since, "since", "", "only requests since this `TIME`: 10m ago, 02:06, or a date")
	flags.BoolVar(&f.delete, "delete", false, "delete recordings that are older than --older")
	flags.StringVar(&f.older, "older", "", "with --delete: the least `AGE`, such as 7d; 0s deletes all")
	flags.IntVar(&f.limit, "limit", 100, "show the last `NUMBER` of requests; 0 shows all")
	return cmd
}

func (a *App) showTraffic(ctx context.Context, f *trafficFlags) error {
	if f.from != "" {
		arg, err := recording.ParseArgument(f.from)
		if err != nil {
			return cli.Fail(cli.CodeUsage, "--from %w", err)
		}
		return a.showRecordings(ctx, f, arg)
	}
	r, err := a.findDaemon(ctx)
	switch {
	case errors.Is(err, daemon.ErrNotRunning) && r != nil:
		dir := a.recordings()
		if dir == "" {
			return cli.Fail(cli.CodeConnect, "no daemon is running for %s, and there are no recordings; start one with \"%s\", or read a recording with --from", r.name, r.start)
		}
		a.Warn("no daemon is running; showing the recordings in %s", dir)
		return a.showRecordings(ctx, f, recording.Argument{Path: dir})
	case err != nil:
		return r.explain(err)
	}
	return a.showLive(ctx, f, r)
}

// deleteTraffic removes old recordings of a folder, by default the config's.
func (a *App) deleteTraffic(f *trafficFlags, older time.Duration) error {
	dir := f.from
	if dir == "" {
		if dir = a.recordings(); dir == "" {
			return cli.Fail(cli.CodeNotFound, "no recordings; \"record\" in the config enables them, --from names another folder")
		}
	}
	if _, err := recording.Files(dir); err != nil {
		return fmt.Errorf("delete recordings: %w", err)
	}
	gone, err := recorder.Delete(dir, older)
	if err != nil {
		return fmt.Errorf("delete recordings: %w", err)
	}
	text := fmt.Sprintf("Deleted %s (%s) in %s.", termtext.Count(gone.Files, "recording"), termtext.Size(gone.Bytes), termtext.Line(dir))
	if gone.Files == 0 {
		text = fmt.Sprintf("No recordings in %s are older than %s.", termtext.Line(dir), f.older)
	}
	return a.printResult(gone, text)
}

func (f *trafficFlags) newFilter(load func(*recording.Body) ([]byte, error)) *recording.Filter {
	filter := recording.NewFilter(f.filter, load)
	if f.all {
		filter.ShowNotifications()
	}
	return filter
}

func (a *App) showLive(ctx context.Context, f *trafficFlags, r *runningDaemon) error {
	p := a.trafficPrinter(f, false)
	filter := f.newFilter(nil)
	q := daemon.TrafficQuery{Bodies: a.asJSON || filter.NeedsBodies(), Running: !f.follow}
	for {
		answer, err := r.Traffic(ctx, q)
		if err != nil {
			return r.explain(err)
		}
		a.warnOfLost(&answer)
		for i := range answer.Lines {
			if l := &answer.Lines[i]; matchesLive(filter, l) {
				if err := p.Add(&l.Line); err != nil {
					return err
				}
			}
		}
		for i := range answer.Running {
			if l := &answer.Running[i]; matchesLive(filter, l) {
				if err := p.Add(&l.Line); err != nil {
					return err
				}
			}
		}
		q.From = answer.Next
		if answer.More { // before the last requests are known
			continue
		}
		if err := p.Flush(); err != nil {
			return err
		}
		if !f.follow {
			a.reportHidden(p)
			return nil
		}
		p.Follow()
		q.Wait = true
	}
}

func (a *App) warnOfLost(answer *daemon.TrafficAnswer) {
	if answer.Dropped > 0 {
		a.Warn("at least %s lost because they arrived too fast", termtext.Count(int(answer.Dropped), "request"))
	}
}

// matchesLive also searches the beginnings of bodies that are not recorded completely.
func matchesLive(filter *recording.Filter, l *daemon.TrafficLine) bool {
	whole := l.Line
	if l.CutParams != nil {
		l.Params = &recording.Body{JSON: l.CutParams}
	}
	if l.CutAnswer != nil {
		l.Answer = &recording.Body{JSON: l.CutAnswer}
	}
	ok := filter.Matches(&l.Line, time.Now())
	l.Line = whole
	return ok
}

func (a *App) showRecordings(ctx context.Context, f *trafficFlags, from recording.Argument) error {
	open := recording.Open
	if f.follow {
		open = recording.Follow
	}
	r, err := open(from.Path)
	if err != nil {
		return fmt.Errorf("read recordings: %w", err)
	}
	defer r.Close()
	p := a.trafficPrinter(f, true)
	s := traffic.Scan{Reader: r, Filter: f.newFilter(r.Body), Printer: p, Number: from.Number, Follow: f.follow, Warn: a.Warn}
	if a.ErrTTY && (!a.OutTTY || f.limit > 0) {
		s.Progress = a.Err
	}
	err = s.Run(ctx)
	if err != nil {
		return fmt.Errorf("read recordings: %w", err)
	}
	a.reportHidden(p)
	return nil
}

func (a *App) trafficPrinter(f *trafficFlags, numbers bool) *traffic.Printer {
	return traffic.NewPrinter(traffic.Options{
		Out: a.Out, Columns: a.Columns, JSON: a.asJSON, Limit: f.limit, Numbers: numbers,
		Color: a.OutTTY && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb",
	})
}

// reportHidden reports requests beyond the limit, and that there are none.
func (a *App) reportHidden(p *traffic.Printer) {
	all, hidden := p.Total()
	switch {
	case all == 0 && a.ErrTTY:
		a.Warn("no requests match")
	case hidden > 0:
		a.Warn("showing the last %d of %d requests; --limit 0 shows all", all-hidden, all)
	}
}
