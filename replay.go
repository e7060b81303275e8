package main

import (
	"context"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/serve"
)

// withReplay adds the flags that serve a recording instead of real servers. With --replay,
// run replaces the command.
func withReplay(cmd *cobra.Command, run func(ctx context.Context, r serve.Replay) error) {
	var r serve.Replay
	cli.NameFlag(cmd.Flags(), &r.Recording, "replay", "answer as in this recording `FILE` or folder, without the servers")
	answerFlags(cmd, &r)
	real := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.Recording != "" {
			if cmd.Flags().Changed("record") {
				return cli.Usage(cmd, "--record and --replay exclude each other")
			}
			return run(cmd.Context(), r)
		}
		for _, name := range []string{"fast", "rules", "missing"} {
			if cmd.Flags().Changed(name) {
				return cli.Usage(cmd, "--%s needs --replay", name)
			}
		}
		return real(cmd, args)
	}
}

func answerFlags(cmd *cobra.Command, r *serve.Replay) {
	cmd.Flags().BoolVar(&r.Fast, "fast", false, "with --replay: skip the recorded waits")
	cli.NameFlag(cmd.Flags(), &r.Rules, "rules", "with --replay: ignore the params that this `FILE` lists")
	r.Missing = serve.MissingFails
	cmd.Flags().Var(newOneOf(&r.Missing, serve.MissingFails, serve.MissingPasses), "missing", "with --replay: requests that were not recorded fail, or pass to the real servers")
}

func replayServerCommand(p *serve.Process) *cobra.Command {
	var r serve.Replay
	cmd := &cobra.Command{
		Use: "replay-server FILE SERVER", Hidden: true,
		Example: "  goblin replay-server recording.jsonl clock",
		Short:   "Answer as a recorded server on stdin and stdout",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usage(cmd, "replay-server needs a recording and the name of a server")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Recording = args[0]
			return p.ReplayServer(cmd.Context(), r, args[1])
		},
	}
	answerFlags(cmd, &r)
	return cmd
}
