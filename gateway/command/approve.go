package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/registry"
	"goblin/registry/termtext"
)

func (a *App) approve() *cobra.Command {
	return a.withJSON("print JSON", &cobra.Command{
		Use:     "approve [SERVER [TOOL]...]",
		GroupID: cli.GroupDaemon,
		Short:   "Approve tools that are new or changed",
		Long: `Show tools that changed, or are new, since their server was first seen, and
approve them. With "gateway.pin: strict", clients do not get them before.

Without arguments this shows what awaits approval and how it differs. With a
SERVER it approves all of its tools, as they are now. With TOOLs it approves
only these; use the names that the server uses itself.

The running daemon of the config is asked, if there is one. Otherwise the servers
(or only SERVER) are started in this process and ended afterwards. A running
"goblin stdio --standalone" sees what was approved.`,
		Example: `  goblin approve
  goblin approve github
  goblin approve github create_issue`,
		Args: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "") {
				return cli.Usage(cmd, "%s needs names, not an empty text", cli.CommandPath(cmd))
			}
			return nil
		},
		ValidArgsFunction: a.complete("servers"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			what := daemon.Approval{}
			if len(args) > 0 {
				what = daemon.Approval{Server: args[0], Tools: args[1:]}
			}
			g, err := a.approvalGateway(ctx, what.Server)
			if err != nil {
				return err
			}
			return a.useGateway(ctx, g, func(g Gateway) error { return a.showOrApprove(ctx, g, what) })
		},
	})
}

// approvalGateway returns the running daemon, or else a gateway of this process with the server, ""
// for all.
func (a *App) approvalGateway(ctx context.Context, server string) (Gateway, error) {
	r, err := a.findDaemon(ctx)
	if err == nil {
		if server != "" {
			err = knownServer(server, statusNames(r.status.Servers))
		}
		return daemonGateway{r.Remote}, err
	}
	if !errors.Is(err, daemon.ErrNotRunning) {
		return nil, r.explain(err)
	}
	cfg, err := a.Load()
	if err != nil {
		return nil, err
	}
	var only []string
	if server != "" {
		if err := checkUsable(cfg, server); err != nil {
			return nil, err
		}
		only = []string{server}
	}
	return a.open(ctx, cfg, only)
}

// showOrApprove prints the tools that await approval, or approves the named ones.
func (a *App) showOrApprove(ctx context.Context, g Gateway, what daemon.Approval) error {
	awaiting, err := g.Unapproved(ctx, what.Server)
	if err != nil {
		return err
	}
	status, err := g.Status(ctx)
	if err != nil {
		return err
	}
	for _, s := range status.Servers {
		if (what.Server == "" || s.Name == what.Server) && isUnready(s.State) {
			s.Error = a.Mask().String(s.Error)
			if what.Server != "" && !g.IsDaemon() {
				return cli.Fail(cli.CodeConnect, "%s", stateText(s))
			}
			a.Warn("%s", stateText(s))
		}
	}
	if what.Server == "" {
		return a.print(awaiting, func() error { return a.printPinned(awaiting) })
	}
	// What is approved is what is told here, whatever the server says meanwhile.
	what.Seen = make(map[string]string, len(awaiting))
	for _, p := range awaiting {
		what.Seen[p.Name] = p.Hash
	}
	approved, err := g.Approve(ctx, what)
	var refused *daemon.OperationError
	switch {
	case err != nil && g.IsDaemon() && !errors.As(err, &refused):
		return cli.Fail(cli.CodeConnect, "ask the running daemon: %w", err)
	case err != nil:
		return cli.Fail(cli.CodeNotFound, "%w", err)
	}
	awaiting = slices.DeleteFunc(awaiting, func(p registry.UnapprovedTool) bool { return !slices.Contains(approved, p.Name) })
	return a.printResult(map[string]any{"serverId": what.Server, "approved": append([]string{}, approved...)},
		a.differencesText(awaiting)+a.approvedText(what, approved))
}

// approvedText reports which tools were approved, and which named tools did not await it.
func (a *App) approvedText(what daemon.Approval, approved []string) string {
	idle := slices.DeleteFunc(slices.Clone(what.Tools), func(name string) bool { return slices.Contains(approved, name) })
	text := ""
	switch {
	case len(approved) > 0:
		text = "\n" + a.hardWrap(fmt.Sprintf("Approved of %q: %s.", what.Server, quoteNames(approved)), "  ")
	case len(idle) == 0:
		text = fmt.Sprintf("No tool of %q awaits approval.\n", what.Server)
	}
	if len(idle) > 0 {
		text += a.hardWrap(fmt.Sprintf("Not awaiting approval: %s.", quoteNames(idle)), "  ")
	}
	return text
}

// quoteNames returns the names of tools in one line.
func quoteNames(names []string) string {
	return strings.Join(each(names, func(name *string) string { return quoteName(*name) }), ", ")
}

// quoteName returns a name in one line, in quotes unless it is a plain word. Users copy names
// into commands, so a shell must not replace anything in one.
func quoteName(name string) string {
	line := termtext.Name(quotes.Replace(name))
	switch {
	case strings.ContainsAny(name, "$`!"): // shells act on these in double quotes, too
		if !termtext.CanQuote(name) {
			name = line
		}
		return termtext.QuoteWord(name)
	case line == "" || strings.ContainsAny(line, " \u00a0\u3000\"',;:()\\#&*<>?[]^{|}~="):
		return `"` + line + `"`
	}
	return line
}

// quotes keeps a name within its quotes, and what looks like an escape in it apart
// from one that is.
var quotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// hardWrap returns a line, broken at the width of the terminal. All parts but the first begin with
// mark, so that text of a server never looks like a line of Goblin.
func (a *App) hardWrap(line, mark string) string {
	if room := a.Columns - len(mark); room > 20 {
		line = strings.ReplaceAll(ansi.Hardwrap(line, room, true), "\n", "\n"+mark)
	}
	return line + "\n"
}

// countPinned counts the tools of a server, "" for all, that await approval, and those of them
// that clients do not get until then.
func countPinned(servers []daemon.Server, of string) (awaiting, withheld int) {
	for _, s := range servers {
		if of == "" || s.Name == of {
			awaiting, withheld = awaiting+s.Awaiting, withheld+s.Withheld
		}
	}
	return awaiting, withheld
}

// withheldNote reports how many tools wait for approval and are hidden, "" for none.
func (a *App) withheldNote(servers []daemon.Server, of string) string {
	_, n := countPinned(servers, of)
	if n == 0 {
		return ""
	}
	return countOf(n, "tool is", "tools are") + fmt.Sprintf(" withheld until approved: see \"%s\"", a.CommandLine("approve"))
}

func countOf(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// printPinned prints the tools that await approval.
func (a *App) printPinned(awaiting []registry.UnapprovedTool) error {
	if len(awaiting) == 0 {
		return a.printText("No tool awaits approval.")
	}
	return a.printText(a.differencesText(awaiting) + fmt.Sprintf("\n\"%s\" takes them as they are now.\n", a.CommandLine("approve SERVER [TOOL]")))
}

// differencesText returns how tools differ from the approved ones. It is safe for terminals also in a
// pipe. Lines of servers are indented, also when they are broken.
func (a *App) differencesText(awaiting []registry.UnapprovedTool) string {
	var b strings.Builder
	for i, p := range awaiting {
		what := "changed"
		if p.New {
			what = "new"
		}
		if p.Hidden {
			what += ", withheld"
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		name := quoteName(p.Name)
		if strings.HasPrefix(p.Name, "-") { // else it would be a flag when the row is copied into a command
			name = "-- " + name
		}
		b.WriteString(a.hardWrap(fmt.Sprintf("%s %s (%s)", termtext.Line(p.Server), name, what), "  "))
		for line := range strings.Lines(termtext.Text(p.Diff())) {
			line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")
			b.WriteString(a.hardWrap("  "+line, "  > "))
		}
	}
	return b.String()
}
