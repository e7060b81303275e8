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
	var asJSON bool
	cmd := &cobra.Command{
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
				return cli.Usage(cmd, "%s needs names, not an empty text", cli.Called(cmd))
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
			g, err := a.approver(ctx, what.Server)
			if err != nil {
				return interrupted(ctx, err)
			}
			err = a.approveAt(ctx, g, what, asJSON)
			return interrupted(ctx, errors.Join(err, g.Close()))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// approver is the running daemon, or else a gateway of our own with the server, all
// for "".
func (a *App) approver(ctx context.Context, server string) (Gateway, error) {
	r, err := a.lookUp(ctx)
	if err == nil {
		if server != "" {
			err = knownServer(server, r.status.Servers)
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
		if err := usable(cfg, server); err != nil {
			return nil, err
		}
		only = []string{server}
	}
	return a.open(ctx, cfg, only)
}

// approveAt shows what awaits approval, or approves what is named.
func (a *App) approveAt(ctx context.Context, g Gateway, what daemon.Approval, asJSON bool) error {
	stop := a.waiting(ctx, g)
	defer stop()
	awaiting, err := g.Pinned(ctx, what.Server)
	if err != nil {
		return err
	}
	status, err := g.Status(ctx)
	if err != nil {
		return err
	}
	stop()
	for _, s := range status.Servers {
		if (what.Server == "" || s.Name == what.Server) && unready(s.State) {
			s.Error = a.Mask().String(s.Error)
			if what.Server != "" && !g.IsDaemon() {
				return cli.Fail(cli.CodeConnect, "%s", stateOf(s))
			}
			a.Warn("%s", stateOf(s))
		}
	}
	if what.Server == "" {
		if asJSON {
			return a.json(awaiting)
		}
		return a.printPinned(awaiting)
	}
	// What is approved is what is told here, whatever the server says meanwhile.
	what.Seen = make(map[string]string, len(awaiting))
	for _, p := range awaiting {
		what.Seen[p.Name] = p.Hash
	}
	approved, err := g.Approve(ctx, what)
	var refused *daemon.ControlError
	switch {
	case err != nil && g.IsDaemon() && !errors.As(err, &refused):
		return cli.Fail(cli.CodeConnect, "ask the running daemon: %w", err)
	case err != nil:
		return cli.Fail(cli.CodeNotFound, "%w", err)
	case asJSON:
		return a.json(map[string]any{"serverId": what.Server, "approved": append([]string{}, approved...)})
	}
	awaiting = slices.DeleteFunc(awaiting, func(p registry.PinnedTool) bool { return !slices.Contains(approved, p.Name) })
	return a.printText(a.differences(awaiting) + a.taken(what, approved))
}

// taken says what was approved, and what of the named tools did not await it.
func (a *App) taken(what daemon.Approval, approved []string) string {
	idle := slices.DeleteFunc(slices.Clone(what.Tools), func(name string) bool { return slices.Contains(approved, name) })
	text := ""
	switch {
	case len(approved) > 0:
		text = "\n" + a.wrapped(fmt.Sprintf("Approved of %q: %s.", what.Server, shownNames(approved)), "  ")
	case len(idle) == 0:
		text = fmt.Sprintf("No tool of %q awaits approval.\n", what.Server)
	}
	if len(idle) > 0 {
		text += a.wrapped(fmt.Sprintf("Not awaiting approval: %s.", shownNames(idle)), "  ")
	}
	return text
}

// shownNames are names of tools in one line.
func shownNames(names []string) string {
	return strings.Join(each(names, func(name *string) string { return shownName(*name) }), ", ")
}

// shownName returns a name in one line, in quotes unless it is a plain word. Users copy names
// into commands, so a shell must not replace anything in one.
func shownName(name string) string {
	line := termtext.Name(quotes.Replace(name))
	switch {
	case strings.ContainsAny(name, "$`!"): // shells act on these in double quotes, too
		if !termtext.Quotable(name) {
			name = line
		}
		return termtext.Word(name)
	case line == "" || strings.ContainsAny(line, " \u00a0\u3000\"',;:()\\#&*<>?[]^{|}~="):
		return `"` + line + `"`
	}
	return line
}

// quotes keeps a name within its quotes, and what looks like an escape in it apart
// from one that is.
var quotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// wrapped is a line, or several of the terminal's width, of which all but the first
// begin with a mark: what a server wrote is not to look like a line of its own.
func (a *App) wrapped(line, mark string) string {
	if room := a.Columns - len(mark); room > 20 {
		line = strings.ReplaceAll(ansi.Hardwrap(line, room, true), "\n", "\n"+mark)
	}
	return line + "\n"
}

// pinned counts the tools of a server, of all for "", that await approval, and
// those of them that are withheld until then.
func pinned(servers []daemon.Server, of string) (awaiting, withheld int) {
	for _, s := range servers {
		if of == "" || s.Name == of {
			awaiting, withheld = awaiting+s.Awaiting, withheld+s.Withheld
		}
	}
	return awaiting, withheld
}

// withholding says how many tools are withheld, and what to do; "" for none.
func (a *App) withholding(servers []daemon.Server, of string) string {
	_, n := pinned(servers, of)
	if n == 0 {
		return ""
	}
	return amount(n, "tool is", "tools are") + fmt.Sprintf(" withheld until approved: see \"%s\"", a.Line("approve"))
}

func amount(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// printPinned shows people what awaits approval.
func (a *App) printPinned(awaiting []registry.PinnedTool) error {
	if len(awaiting) == 0 {
		return a.printText("No tool awaits approval.")
	}
	return a.printText(a.differences(awaiting) + fmt.Sprintf("\n\"%s\" takes them as they are now.\n", a.Line("approve SERVER [TOOL]")))
}

// differences tell how tools differ from what was approved. It is safe for
// terminals wherever it goes, since people read it; what servers wrote stands
// behind two blanks, also where it is longer than a line of the terminal.
func (a *App) differences(awaiting []registry.PinnedTool) string {
	var b strings.Builder
	for i, p := range awaiting {
		what := "changed"
		if p.New {
			what = "new"
		}
		if p.Withheld {
			what += ", withheld"
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		name := shownName(p.Name)
		if strings.HasPrefix(p.Name, "-") { // else it would be a flag when the row is copied into a command
			name = "-- " + name
		}
		b.WriteString(a.wrapped(fmt.Sprintf("%s %s (%s)", termtext.Line(p.Server), name, what), "  "))
		for line := range strings.Lines(termtext.Text(p.Diff())) {
			line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")
			b.WriteString(a.wrapped("  "+line, "  > "))
		}
	}
	return b.String()
}
