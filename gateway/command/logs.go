package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/gateway/state"
	"goblin/registry"
	"goblin/registry/termtext"
)

// maxTail is in bytes from the end of the file.
const maxTail = 4 << 20

const nameCells = 10

type logFlags struct {
	server string
	last   int
	follow bool
}

func (a *App) logs() *cobra.Command {
	var l logFlags
	cmd := a.withJSON("print a JSON object per line", &cobra.Command{
		Use:     "logs [SERVER]",
		GroupID: cli.GroupDiagnose,
		Short:   "Show server output and Goblin's log",
		Long: `Show the stderr output and log messages of servers, and Goblin's log, oldest
line first. SERVER limits it to one server, or to Goblin itself with "goblin".

Without a running daemon, prints the end of the last log file.`,
		Example: `  goblin logs
  goblin logs clock -n 20
  goblin logs -f
  goblin logs --json | jq -r 'select(.level == "ERROR") | .text'`,
		ValidArgsFunction: a.complete("servers"),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneArg("the name of a server")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				l.server = args[0]
			}
			if l.last < 0 || l.last > daemon.MaxLogs {
				return cli.Usage(cmd, "--lines must be a number from 0 to %d, not %d", daemon.MaxLogs, l.last)
			}
			err := a.showLogs(cmd.Context(), &l)
			if l.follow && cmd.Context().Err() != nil {
				return nil // Ctrl-C is the normal way to stop
			}
			return err
		},
	})
	cmd.Flags().BoolVarP(&l.follow, "follow", "f", false, "show new lines until Ctrl-C")
	cmd.Flags().IntVarP(&l.last, "lines", "n", 100, "show the last `NUMBER` of lines, up to 10000")
	return cmd
}

func (a *App) showLogs(ctx context.Context, l *logFlags) error {
	r, err := a.findDaemon(ctx)
	switch {
	case errors.Is(err, daemon.ErrNotRunning) && r != nil:
		return a.printLogFile(r, l)
	case err != nil:
		return r.explain(err)
	}
	if l.server != "" && l.server != registry.Local {
		if err := knownServer(l.server, statusNames(r.status.Servers)); err != nil {
			return err
		}
	}
	q := daemon.LogQuery{Server: l.server, Last: l.last}
	for {
		answer, err := r.Logs(ctx, q)
		if err != nil {
			return r.explain(err)
		}
		if answer.Dropped > 0 {
			a.Warn("%s lost because they arrived too fast", termtext.Count(int(answer.Dropped), "line"))
		}
		if err := a.printLogs(answer.Records); err != nil || !l.follow {
			return err
		}
		q.From = answer.Next
		q.Wait = true
	}
}

func (a *App) printLogs(records []daemon.LogRecord) error {
	var out bytes.Buffer
	for i := range records {
		r := &records[i]
		if a.asJSON {
			text, err := json.Marshal(r)
			if err != nil {
				return err
			}
			out.WriteString(termtext.JSON(string(text)) + "\n")
			continue
		}
		fmt.Fprintf(&out, "%s  %-5s  %s  %-7s  %s\n", r.Time.Local().Format("2006-01-02 15:04:05.000"), r.Level,
			termtext.Pad(termtext.Name(cmp.Or(r.Server, registry.Local)), nameCells), r.Source, termtext.Line(r.Text))
	}
	_, err := a.Out.Write(out.Bytes())
	return err
}

func (a *App) printLogFile(r *runningDaemon, l *logFlags) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	if l.server != "" && l.server != registry.Local {
		if err := knownServer(l.server, serverNames(cfg)); err != nil {
			return err
		}
	}
	path := cmp.Or(cfg.Log.File, r.Place.Log)
	lines, written, err := tail(path)
	if l.follow || err != nil {
		return cli.Fail(cli.CodeConnect, "no daemon is running for %s; start one with \"%s\", or connect a client", r.name, r.start)
	}
	a.Warn("no daemon is running; showing %s, written %s ago", path, termtext.Age(time.Since(written)))
	var shown []string
	for _, line := range lines {
		if l.server == "" || isLineOf(line, l.server) {
			shown = append(shown, a.Mask().String(line))
		}
	}
	for _, line := range shown[max(len(shown)-l.last, 0):] {
		if a.asJSON {
			text, err := json.Marshal(map[string]string{"text": line})
			if err != nil {
				return err
			}
			line = termtext.JSON(string(text))
		}
		if _, err := io.WriteString(a.Out, termtext.Line(line)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func isLineOf(line, server string) bool {
	_, rest, named := strings.Cut(line, " server=")
	if server == registry.Local {
		return !named
	}
	rest, ok := strings.CutPrefix(rest, server)
	return ok && (rest == "" || rest[0] == ' ')
}

func tail(path string) (lines []string, written time.Time, err error) {
	f, info, err := state.Open(path)
	if err != nil {
		return nil, written, fmt.Errorf("read %s: %w", path, err)
	}
	defer f.Close()
	from := max(info.Size()-maxTail, 0)
	text, err := io.ReadAll(io.NewSectionReader(f, from, maxTail))
	if err != nil {
		return nil, written, err
	}
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.TrimRight(line, "\r\n"))
	}
	return lines, info.ModTime(), nil
}
