package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/host"
	"goblin/gateway/instance"
	"goblin/registry"
)

func (a *App) approve() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "approve [SERVER [TOOL]...]",
		GroupID: GroupHost,
		Short:   "Approve tools that are new or changed",
		Long: `Tools are remembered as they were when a server was first seen. A tool whose
definition is another one since, or new on such a server, is told of, and with
"pin: strict" kept from clients until it is approved.

Without arguments this shows what awaits approval and how it differs. With a
server it approves all of its tools as they are now, or those that are named, by
the names that the server gives them.`,
		Example: `  goblin approve
  goblin approve github
  goblin approve github create_issue`,
		ValidArgsFunction: a.complete("servers"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			r, err := a.running(ctx)
			if err != nil {
				return interrupted(ctx, err)
			}
			if len(args) == 0 {
				var awaiting []instance.PinnedTool
				if err := host.Control(ctx, r.place, instance.OpPinned, nil, &awaiting); err != nil {
					return interrupted(ctx, r.explain(err))
				}
				if asJSON {
					return a.json(awaiting)
				}
				return a.printPinned(awaiting)
			}
			known := make([]string, len(r.status.Servers))
			for i := range r.status.Servers {
				known[i] = r.status.Servers[i].Name
			}
			if err := knownServer(args[0], known); err != nil {
				return err
			}
			var approved []string
			err = host.Control(ctx, r.place, instance.OpApprove, instance.ApproveArgs{Server: args[0], Tools: args[1:]}, &approved)
			switch {
			case errors.Is(err, host.ErrNoHost), ctx.Err() != nil:
				return interrupted(ctx, r.explain(err))
			case err != nil:
				return Fail(CodeNotFound, "%w", err)
			case asJSON:
				return a.json(map[string]any{"serverId": args[0], "approved": approved})
			case len(approved) == 0:
				return a.printText(fmt.Sprintf("No tool of %q awaits approval.", args[0]))
			}
			return a.printText(fmt.Sprintf("Approved of %q: %s.", args[0], strings.Join(approved, ", ")))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// pinned counts the tools of a server, of all for "", that await approval, and
// those of them that are withheld until then.
func pinned(servers []instance.Server, of string) (awaiting, withheld int) {
	for _, s := range servers {
		if of == "" || s.Name == of {
			awaiting, withheld = awaiting+s.Awaiting, withheld+s.Withheld
		}
	}
	return awaiting, withheld
}

// withholding says how many tools are withheld, and what to do; "" for none.
func withholding(servers []instance.Server, of string) string {
	_, n := pinned(servers, of)
	if n == 0 {
		return ""
	}
	return amount(n, "tool is", "tools are") + " withheld until approved: see \"goblin approve\""
}

func amount(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// printPinned shows people what awaits approval.
func (a *App) printPinned(awaiting []instance.PinnedTool) error {
	if len(awaiting) == 0 {
		return a.printText("No tool awaits approval.")
	}
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
		fmt.Fprintf(&b, "%s %s (%s)\n", p.Server, p.Name, what)
		row := registry.PinnedTool{New: p.New, Approved: p.Approved, Offered: p.Offered}
		for line := range strings.Lines(row.Diff()) {
			b.WriteString("  " + line)
		}
	}
	b.WriteString("\n\"goblin approve SERVER [TOOL]\" takes them as they are now.\n")
	return a.printText(b.String())
}
