package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
)

func (a *App) restart() *cobra.Command {
	return a.withJSON("print a JSON object", &cobra.Command{
		Use:     "restart SERVER",
		GroupID: cli.GroupDaemon,
		Short:   "Restart a server of the running daemon",
		Long: `Restart a server's connections and process. Clients stay connected; requests in
flight to the server fail.`,
		Example: `  goblin restart clock
  goblin restart clock && goblin status`,
		Args:              oneArg("the name of a server"),
		ValidArgsFunction: a.complete("servers"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, name := cmd.Context(), args[0]
			r, err := a.runningDaemon(ctx)
			if err != nil {
				return err
			}
			if err := knownServer(name, statusNames(r.status.Servers)); err != nil {
				return err
			}
			if err := r.Restart(ctx, name); err != nil {
				return r.explain(err)
			}
			return a.printResult(map[string]any{"restarted": name}, fmt.Sprintf("Restarting %q.", name))
		},
	})
}
