package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/archive"
	"goblin/gateway/cli"
	"goblin/gateway/command"
	"goblin/gateway/remoteui"
	"goblin/gateway/serve"
	"goblin/tui"
)

// maxOpenRequests is the highest value of --requests.
const maxOpenRequests = 1_000_000

func openCommand(p *serve.Process) *cobra.Command {
	var o archive.Options
	cmd := &cobra.Command{
		Use:     "open FILE [FILTER]...",
		GroupID: cli.GroupRecord,
		Short:   "Show a recording in the UI",
		Long: `Show a recording in the UI: its servers, catalog, sessions, traffic and logs, as
they were at its end. It is read-only: no server is started and nothing is sent.

FILE may be a folder; all its files are shown. FILTER is as for goblin traffic. Of
a large recording, the newest requests are shown; the UI shows how many are
missing. Damaged parts are listed in Logs.`,
		Example: `  goblin open night.jsonl.gz
  goblin open recordings since:2h
  goblin open night.jsonl --requests 100000`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, "open needs a recording: a file or a folder")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Requests < 1 || o.Requests > maxOpenRequests {
				return cli.Usage(cmd, "--requests must be a number from 1 to %d, not %d", maxOpenRequests, o.Requests)
			}
			o.Filter = strings.Join(args[1:], " ")
			return p.OpenRecording(cmd.Context(), args[0], o, showArchive)
		},
		ValidArgsFunction: command.CompleteFileAndFilter,
	}
	cmd.Flags().IntVar(&o.Requests, "requests", archive.DefaultRequests, "show the newest `NUMBER` of requests")
	return cmd
}

// showArchive runs the UI over a recording.
func showArchive(ctx context.Context, r *serve.Recording, c *remoteui.Conn) error {
	view := tui.New(tui.Options{
		Registry: r.Registry, Theme: cmp.Or(c.Theme(), r.Theme), ASCII: c.ASCII(), Images: r.Images, Keys: r.Keys,
		Recording: &tui.Recording{Name: r.Name, Start: r.Start, End: r.End, Summary: r.Summary()},
		Daemon:    tui.Daemon{Config: r.Name, Command: r.Command},
	})
	return view.Run(ctx, archive.Backend{Archive: r.Archive}, c)
}
