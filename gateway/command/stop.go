package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
)

// stopLimit is the maximum wait for the daemon to exit.
const stopLimit = 30 * time.Second

func (a *App) stop() *cobra.Command {
	return a.withJSON("print a JSON object", &cobra.Command{
		Use:     "stop",
		GroupID: cli.GroupDaemon,
		Short:   "Stop the running daemon and its servers",
		Long: `Stop the daemon of this config and its servers, and wait until they have exited.
Clients that are still connected through "goblin stdio" start a new daemon.`,
		Example: `  goblin stop
  goblin --config work.yaml stop`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			r, err := a.runningDaemon(ctx)
			if err != nil {
				return err
			}
			if err := r.Stop(ctx); err != nil && !errors.Is(err, daemon.ErrNotRunning) {
				return r.explain(err)
			}
			if err := awaitExit(ctx, r.status.PID); err != nil {
				return err
			}
			return a.printResult(map[string]any{"stopped": true, "pid": r.status.PID}, fmt.Sprintf("Stopped the daemon (pid %d)%s.", r.status.PID, nextDaemonNote(r.status)))
		},
	})
}

func nextDaemonNote(s daemon.Status) string {
	bridged := 0
	for _, c := range s.Sessions {
		if c.IsBridged() {
			bridged++
		}
	}
	if bridged == 0 {
		return ""
	}
	return "; " + countOf(bridged, "client starts", "clients start") + " a new one"
}

func awaitExit(ctx context.Context, pid int) error {
	limit := time.After(stopLimit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for cli.IsRunning(pid) {
		select {
		case <-tick.C:
		case <-limit:
			return cli.Fail(cli.CodeTimeout, "the daemon (pid %d) has not exited after %s; kill the process yourself", pid, stopLimit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
