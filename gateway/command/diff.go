package command

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/registry/compare"
)

func (a *App) diff() *cobra.Command {
	var ignore []string
	var exitCode bool
	cmd := a.withJSON("print a JSON object", &cobra.Command{
		Use:     "diff A B",
		GroupID: cli.GroupRecord,
		Short:   "Compare recordings, calls, lists or results",
		Long: `Compare two recordings (files or folders), two recorded calls (FILE#NUMBER), two
lists ("goblin list tools --json"), or any two JSON files. "-" is stdin.

Calls of recordings are paired by server, method, name and arguments, in order.
Durations, sizes and _meta of params don't count. $.result of a tool call is its
structured content, unless its other content differs from that.`,
		Example: `  goblin diff before.jsonl after.jsonl --exit-code
  goblin diff monday.jsonl#17 tuesday.jsonl#23 --ignore '$.result.rows[*].when'
  goblin list tools --json | goblin diff tools.json -
  goblin diff a.json b.json --ignore ..updatedAt,meta.id --json`,
		Annotations:       cli.NoConfigAnnotations(),
		ValidArgsFunction: completeFiles(2),
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 2:
				return cli.Usage(cmd, "diff needs two names: recordings, FILE#NUMBER, JSON files or -")
			case args[0] == "-" && args[1] == "-":
				return cli.Usage(cmd, "only one side can be stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			patterns, err := compare.ParseIgnored(ignore...)
			if err != nil {
				return cli.Usage(cmd, "--ignore: %v", err)
			}
			report, err := a.compareSources(args, patterns)
			if err != nil {
				return err
			}
			if err := a.print(report.JSON(), func() error { return a.printReport(report) }); err != nil {
				return err
			}
			if exitCode && !report.IsEqual() {
				return errReported(cli.CodeFailure)
			}
			return nil
		},
	})
	cmd.Flags().StringArrayVar(&ignore, "ignore", nil, "ignore these `PATHS`, such as '$.rows[*].when' or ..when; repeatable")
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 1 if there are differences")
	return cmd
}

func (a *App) compareSources(names []string, ignore compare.Patterns) (*compare.Report, error) {
	var sides [2]*compare.Source
	for i, name := range names {
		s, err := compare.ReadSource(name, a.In)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, cli.Fail(cli.CodeNotFound, "%w", err)
			}
			return nil, err
		}
		sides[i] = s
	}
	report, err := compare.Sources(sides[0], sides[1], compare.Options{Ignore: ignore})
	if err != nil {
		return nil, cli.Fail(cli.CodeUsage, "%w", err)
	}
	return report, nil
}

func (a *App) printReport(r *compare.Report) error {
	o := compare.TextOptions{}
	if a.OutTTY {
		o.Columns = cmp.Or(a.Columns, 80)
		o.Colour = a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
	}
	_, err := a.Out.Write([]byte(r.Text(o)))
	return err
}
