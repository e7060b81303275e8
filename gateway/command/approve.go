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
	var calls callFlags
	cmd := a.withJSON("print JSON", &cobra.Command{
		Use:     "approve [SERVER [TOOL]...]",
		GroupID: cli.GroupVisibility,
		Short:   "Approve new or changed tools",
		Long: `Approve tools that are new or have changed since you first used their server.
With "gateway.pin: strict", unapproved tools are hidden from clients.

Without arguments, shows all unapproved tools and their changes. With SERVER,
approves all its tools; with TOOL, only these, by the server's own names.
Lines with ! are risks: new instructions to the model, arguments and effects.

Uses the running daemon; otherwise starts the servers temporarily.

With --calls, lists and revokes remembered approvals of calls that rules stop.`,
		Example: `  goblin approve
  goblin approve github
  goblin approve github create_issue
  goblin approve --calls
  goblin approve --calls --revoke-all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "") {
				return cli.Usage(cmd, "%s needs names, not an empty string", cli.CommandPath(cmd))
			}
			return calls.check(cmd, args)
		},
		ValidArgsFunction: a.complete("servers"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if calls.calls {
				return a.showOrRevokeCalls(ctx, &calls)
			}
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
	calls.add(cmd)
	return cmd
}

// approvalGateway returns the running daemon. Without one, it starts a gateway in this
// process with the named server, or with all for "".
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
	// Approve exactly the definitions that were shown, even if the server changes them
	// meanwhile.
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

func (a *App) approvedText(what daemon.Approval, approved []string) string {
	others := slices.DeleteFunc(slices.Clone(what.Tools), func(name string) bool { return slices.Contains(approved, name) })
	text := ""
	switch {
	case len(approved) > 0:
		text = "\n" + a.hardWrap(fmt.Sprintf("Approved in %q: %s.", what.Server, quoteNames(approved)), "  ")
	case len(others) == 0:
		text = fmt.Sprintf("No tools of %q await approval.\n", what.Server)
	}
	if len(others) > 0 {
		text += a.hardWrap(fmt.Sprintf("Not awaiting approval: %s.", quoteNames(others)), "  ")
	}
	return text
}

func quoteNames(names []string) string {
	return strings.Join(each(names, func(name *string) string { return quoteName(*name) }), ", ")
}

// quoteName quotes a name unless it is a plain word. Users paste names into commands, so
// a shell must not expand anything in it.
func quoteName(name string) string {
	line := termtext.Name(quotes.Replace(name))
	switch {
	case strings.ContainsAny(name, "$`!"): // shells expand these inside double quotes
		if !termtext.CanQuote(name) {
			name = line
		}
		return termtext.QuoteWord(name)
	case line == "" || strings.ContainsAny(line, " \u00a0\u3000\"',;:()\\#&*<>?[]^{|}~="):
		return `"` + line + `"`
	}
	return line
}

var quotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// hardWrap begins continuation lines with mark, so that server text can't imitate
// Goblin's lines.
func (a *App) hardWrap(line, mark string) string {
	if room := a.Columns - len(mark); room > 20 {
		line = strings.ReplaceAll(ansi.Hardwrap(line, room, true), "\n", "\n"+mark)
	}
	return line + "\n"
}

// countPinned counts the unapproved tools of a server, or of all for "", and how many of
// them are hidden.
func countPinned(servers []daemon.Server, of string) (awaiting, withheld int) {
	for _, s := range servers {
		if of == "" || s.Name == of {
			awaiting, withheld = awaiting+s.Awaiting, withheld+s.Withheld
		}
	}
	return awaiting, withheld
}

func (a *App) withheldNote(servers []daemon.Server, of string) string {
	_, n := countPinned(servers, of)
	if n == 0 {
		return ""
	}
	return countOf(n, "tool is", "tools are") + fmt.Sprintf(" unapproved and hidden; see \"%s\"", a.CommandLine("approve"))
}

func countOf(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func (a *App) printPinned(awaiting []registry.UnapprovedTool) error {
	if len(awaiting) == 0 {
		return a.printText("No tools await approval.")
	}
	return a.printText(a.differencesText(awaiting) + fmt.Sprintf("\nTo approve them: %s\n", a.CommandLine("approve SERVER [TOOL]")))
}

// differencesText escapes its result for terminals even in a pipe. Server text is always
// indented, also in continuation lines.
func (a *App) differencesText(awaiting []registry.UnapprovedTool) string {
	var b strings.Builder
	for i, p := range awaiting {
		what := "changed"
		if p.New {
			what = "new"
		}
		if p.Hidden {
			what += ", hidden"
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		name := quoteName(p.Name)
		if strings.HasPrefix(p.Name, "-") { // so that a copied name isn't parsed as a flag
			name = "-- " + name
		}
		b.WriteString(a.hardWrap(fmt.Sprintf("%s %s (%s)", termtext.Line(p.Server), name, what), "  "))
		for _, r := range p.Risks {
			b.WriteString(a.hardWrap("  ! "+termtext.Line(r.Mark+": "+r.Text), "    "))
		}
		for _, line := range p.Meaning() {
			b.WriteString(a.hardWrap("  * "+termtext.Line(line), "    "))
		}
		for line := range strings.Lines(termtext.Text(p.Diff())) {
			line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")
			b.WriteString(a.hardWrap("  "+line, "  > "))
		}
	}
	return b.String()
}
