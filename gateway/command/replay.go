package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/mcpclient"
	"goblin/gateway/replay"
	"goblin/registry/compare"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

func (a *App) replay() *cobra.Command {
	var (
		against       string
		ignored       []string
		all, exitCode bool
	)
	cmd := a.withJSON("print a JSON object per request, then the summary", &cobra.Command{
		Use:     "replay FILE [FILTER]...",
		GroupID: cli.GroupRecord,
		Short:   "Send recorded calls to real servers",
		Long: `Send the recorded calls of clients to real servers again, one after the other,
and report answers that differ. FILE is a recording, a folder of recordings, or
FILE#NUMBER for one call. FILTER is as for goblin traffic.

Tool calls are only sent if the tool is marked as read-only; --yes sends all.
Servers that ask for input get the recorded answers. To test a client without the
servers: goblin serve --replay FILE.`,
		Example: `  goblin replay recording.jsonl --against goblin.yaml
  goblin replay recording.jsonl#17 --against goblin.yaml --yes
  goblin replay recordings server:git --against goblin.yaml --ignore 'result..updatedAt' --exit-code`,
		ValidArgsFunction: CompleteFileAndFilter,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, "replay needs the name of a recording")
			}
			return nil
		},
		Annotations: cli.NoConfigAnnotations(), // --against names it
		RunE: func(cmd *cobra.Command, args []string) error {
			if against == "" {
				return cli.Usage(cmd, "replay needs --against CONFIG, the servers to send the calls to")
			}
			paths, err := compare.ParseIgnored(ignored...)
			if err != nil {
				return cli.Usage(cmd, "--ignore: %v", err)
			}
			file, err := recording.ParseArgument(args[0])
			if err != nil {
				return cli.Usage(cmd, "%v", err)
			}
			selected, err := replay.ParseFilter(strings.Join(args[1:], " "))
			if err != nil {
				return cli.Usage(cmd, "%v", err)
			}
			a.ConfigFlag = against
			cfg, err := a.LoadFile(against)
			if err != nil {
				return err
			}
			sum, err := a.replayAgainst(cmd.Context(), cfg, replay.AgainstOptions{Recording: file, Filter: selected, Ignore: paths, All: all})
			if err == nil && exitCode && sum.Differs > 0 {
				return errReported(cli.CodeFailure)
			}
			return err
		},
	})
	cmd.Flags().StringVar(&against, "against", "", "send the calls to the servers of this `CONFIG`")
	cmd.Flags().StringArrayVar(&ignored, "ignore", nil, "ignore these `PATHS` of answers, such as result..updatedAt; repeatable")
	cmd.Flags().BoolVar(&all, "yes", false, "also call tools that may change something")
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 1 if answers differ")
	return cmd
}

func (a *App) replayAgainst(ctx context.Context, cfg *config.Config, o replay.AgainstOptions) (sum replay.Summary, err error) {
	err = a.withGateway(ctx, cfg, nil, func(g Gateway) error {
		var clients []*mcpclient.Client
		defer func() {
			for _, c := range clients {
				c.Close() //nolint:errcheck // it never fails
			}
		}()
		o.Connect = func(ctx context.Context, profile string, ask replay.ClientAsk) (replay.Client, error) {
			if _, ok := cfg.Profile(profile); !ok {
				profile = ""
			}
			conn, err := g.Connect(ctx, profile)
			if err != nil {
				return nil, cli.Fail(cli.CodeConnect, "connect to the gateway: %w", err)
			}
			c, err := mcpclient.Open(ctx, conn, mcpclient.Options{
				Name: mcpclient.CommandName, Title: mcpclient.CommandTitle, Version: a.Version.Version, Revision: revision,
				MaxMessage: cfg.Gateway.Limits.Frame, Ask: ask,
			})
			if err != nil {
				return nil, connectionError(err)
			}
			clients = append(clients, c)
			return c, nil
		}
		if a.ErrTTY && !a.asJSON {
			o.Before = func(at, of int, c *replay.Comparison) {
				fmt.Fprintf(a.Err, "%s%s", clearLine, a.Mask().String(termtext.Cut(termtext.Line(fmt.Sprintf("%d/%d %s", at, of, c.Name)), max(20, a.Columns-1))))
			}
		}
		var failed error
		o.Done = func(c *replay.Comparison) {
			if o.Before != nil {
				fmt.Fprint(a.Err, clearLine)
			}
			failed = errors.Join(failed, a.printComparison(c))
		}
		var err error
		sum, err = replay.Against(ctx, o)
		if err = errors.Join(err, failed); err != nil {
			return connectionError(err)
		}
		if a.asJSON {
			return a.printLine(map[string]any{"summary": sum})
		}
		return a.printText(replaySummary(sum))
	})
	return sum, err
}

// printComparison prints one request, without --json only if its answer is not equal.
func (a *App) printComparison(c *replay.Comparison) error {
	if a.asJSON {
		return a.printLine(c)
	}
	var text strings.Builder
	switch c.State {
	case replay.Equal:
		return nil
	case replay.Differs:
		fmt.Fprintf(&text, "#%d %s: %s\n", c.Number, c.Name, termtext.Count(len(c.Differences)+c.More, "difference"))
		for _, d := range c.Differences {
			fmt.Fprintf(&text, "  %s\n", termtext.Line(d.String()))
		}
		if c.More > 0 {
			fmt.Fprintf(&text, "  %d more\n", c.More)
		}
	default:
		fmt.Fprintf(&text, "#%d %s: %s: %s\n", c.Number, c.Name, c.State, c.Reason)
	}
	return a.printText(a.ForLog(a.Mask().String(text.String())))
}

func (a *App) printLine(v any) error {
	text, err := termtext.EncodeJSON(v, "")
	if err == nil {
		_, err = io.WriteString(a.Out, a.JSONForLog(text)+"\n")
	}
	return err
}

func replaySummary(s replay.Summary) string {
	parts := []string{fmt.Sprintf("%d equal", s.Equal), fmt.Sprintf("%d different", s.Differs)}
	if s.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped (not marked as read-only; --yes sends them)", s.Skipped))
	}
	if s.Unusable > 0 {
		parts = append(parts, fmt.Sprintf("%d unusable", s.Unusable))
	}
	return strings.Join(parts, ", ")
}
