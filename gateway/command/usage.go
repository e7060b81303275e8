package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

// fewTools is the number of tools without --all.
const fewTools = 20

func (a *App) usage() *cobra.Command {
	var (
		all    bool
		server string
	)
	cmd := a.withJSON("print a JSON object", &cobra.Command{
		Use:     "usage",
		GroupID: cli.GroupDiagnose,
		Short:   "Show the cost of tools and calls",
		Long: `Show how much context tool definitions use, and what calls cost: per server, for
the largest tools, and per client with the limits it exceeds. Tokens are a
quarter of the bytes. P50 and P95 are durations, accurate to 20 %. UNUSED counts
tools not called for 30 days. OTHERS is the size of prompts, resources and
templates, which models don't get. "removed" stands for servers and tools that
are no longer listed.

Counts survive restarts. Without a running daemon, prints the last recorded ones.`,
		Example: `  goblin usage
  goblin usage --server clock --all
  goblin usage --json | jq '.tools[] | select(.unused) | .listed'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.Load()
			if err != nil {
				return err
			}
			figures, err := a.usageReport(cmd, cfg)
			if err != nil {
				return err
			}
			if server != "" {
				if known := append(serverNames(cfg), registry.Local); !slices.Contains(known, server) {
					return cli.Fail(cli.CodeNotFound, "no server %q%s", server, cli.Suggest(server, known, ""))
				}
				figures.Servers = slices.DeleteFunc(figures.Servers, func(s report.Server) bool { return s.Removed || s.Name != server })
				figures.Tools = slices.DeleteFunc(figures.Tools, func(t report.Tool) bool { return t.Removed || t.Server != server })
			}
			return a.printResult(figures, a.usageText(figures, all, server != ""))
		},
	})
	cmd.Flags().StringVar(&server, "server", "", "only this `SERVER` and its tools")
	cmd.Flags().BoolVar(&all, "all", false, "show all tools, not only the largest")
	return cmd
}

func (a *App) usageReport(cmd *cobra.Command, cfg *config.Config) (report.Report, error) {
	ctx := cmd.Context()
	place, err := a.FindDaemon(cfg.Path)
	if err != nil {
		return report.Report{}, err
	}
	figures, err := daemon.Remote{Place: place}.Usage(ctx)
	switch path := a.UsagePath(cfg); {
	case err == nil:
		return figures, nil
	case !errors.Is(err, daemon.ErrNotRunning):
		return figures, cli.Fail(cli.CodeConnect, "ask the running daemon: %w", err)
	case path == "":
		return figures, cli.Fail(cli.CodeConnect, "no daemon is running for %s, and no usage is recorded", configName(cfg))
	default:
		if figures, err = telemetry.ReadUsage(path, time.Now()); err != nil {
			return figures, fmt.Errorf("read recorded usage: %w; the next daemon moves the file aside", err)
		}
		figures.Fold(func(server string) bool {
			s, ok := cfg.Server(server)
			return server == registry.Local || ok && !s.Disabled
		})
		return figures, nil
	}
}

func usageSummary(r *report.Report) string {
	head := fmt.Sprintf("Since %s: %s", r.Since.Local().Format("2006-01-02 15:04"), callsText(&r.All))
	if !r.Daemon {
		head += "\nNo daemon is running; these are the last recorded counts."
	}
	if tools, unused := r.Unused(); tools > 0 {
		when := "for 30 days"
		if time.Since(r.Since) < report.UnusedAfter {
			when = "since then"
		}
		head += fmt.Sprintf("\n%s not called %s (%s tokens of definitions)", countOf(tools, "tool", "tools"), when, termtext.FormatCount(unused.Tokens))
	}
	return head + "\n"
}

// usageCells returns the cells of the columns that all tables of usage share.
func usageCells(d report.Definitions, f *report.Figures) []string {
	answers, last := "", "never"
	if f.Calls > 0 {
		answers = termtext.Size(int64(f.Bytes))
	}
	if !f.LastUsed.IsZero() {
		last = termtext.Age(time.Since(f.LastUsed)) + " ago"
	}
	return []string{termtext.FormatCount(d.Tokens), termtext.Size(int64(d.Bytes)), termtext.FormatCount(int(f.Calls)), termtext.FormatCount(int(f.Errors)), termtext.Millis(f.P50), termtext.Millis(f.P95), answers, last}
}

func nonToolSize(o report.NonToolLists) string {
	if o.Entries == 0 {
		return ""
	}
	return termtext.Size(int64(o.Bytes))
}

func (a *App) usageText(r report.Report, all, one bool) string {
	var out strings.Builder
	out.WriteString(usageSummary(&r))
	right := map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true, 10: true}
	figures := []string{"TOKENS", "BYTES", "CALLS", "ERRORS", "P50", "P95", "ANSWERS", "LAST CALL"}
	servers := table{header: append([]string{"SERVER", "TOOLS", "UNUSED", "OTHERS"}, figures...), right: right}
	for i := range r.Servers {
		s := &r.Servers[i]
		row := append([]string{s.Name, termtext.FormatCount(s.Tools), termtext.FormatCount(s.UnusedTools), nonToolSize(s.NonToolLists)}, usageCells(s.Definitions, &s.Figures)...)
		if s.Removed {
			row[1], row[2], row[4], row[5] = "", "", "", ""
		}
		servers.add(row...)
	}
	tools := table{header: append([]string{"TOOL"}, figures...), right: right}
	for i := range r.Tools {
		t := &r.Tools[i]
		row := append([]string{cmp.Or(t.Listed, t.Server+"/"+t.Name)}, usageCells(t.Definitions, &t.Figures)...)
		switch {
		case t.Disabled:
			row[1], row[2] = "disabled", ""
		case t.Removed:
			row[1], row[2] = "", ""
		}
		tools.add(row...)
		if i+1 == fewTools && !all {
			break
		}
	}
	clients := table{header: append([]string{"CLIENT", "TOOLS", "OTHERS"}, figures...), right: right}
	for i := range r.Clients {
		c := &r.Clients[i]
		clients.add(append([]string{cmp.Or(c.Name, "(unnamed)"), termtext.FormatCount(c.Tools), nonToolSize(c.NonToolLists)}, usageCells(c.Definitions, &c.Figures)...)...)
	}
	for i, t := range []*table{&servers, &tools, &clients} {
		switch {
		case one && t == &clients, len(t.rows) == 0:
			continue
		case i > 0:
			out.WriteString("\n")
		}
		out.WriteString(t.render(a.Columns))
	}
	if more := len(r.Tools) - len(tools.rows); more > 0 {
		fmt.Fprintf(&out, "\n%d more tools; show them with --all\n", more)
	}
	for i := range r.Clients {
		for _, b := range r.Clients[i].Violations {
			if !one {
				fmt.Fprintf(&out, "\n! %s\n  %s\n", termtext.Line(b.Text), termtext.Line(b.Fix))
			}
		}
	}
	return out.String()
}

func callsText(f *report.Figures) string {
	if f.Calls == 0 {
		return "no calls"
	}
	within := ""
	if f.P50 > 0 {
		within = ", p50 " + termtext.Millis(f.P50)
	}
	return fmt.Sprintf("%s, %s%s, %s of answers", countOf(int(f.Calls), "call", "calls"), countOf(int(f.Errors), "error", "errors"), within, termtext.Size(int64(f.Bytes)))
}
