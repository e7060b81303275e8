package command

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/registry"
	"goblin/registry/termtext"
)

func (a *App) status() *cobra.Command {
	return a.withJSON("print a JSON object", &cobra.Command{
		Use:     "status",
		GroupID: cli.GroupDaemon,
		Short:   "Show the running daemon, its servers, clients and screens",
		Long: `Show the daemon that serves this config: its process, its HTTP address, the file
of its log, the state of each server, the clients that are connected, and the
screens that are open. Exit code 4 means that no daemon is running.`,
		Example: `  goblin status
  goblin status --json | jq '.servers[] | select(.state != "ready")'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.runningDaemon(cmd.Context())
			if err != nil {
				return err
			}
			return a.printResult(r.status, a.statusText(r.status))
		},
	})
}

// statusText returns the status of a daemon for users.
func (a *App) statusText(s daemon.Status) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Goblin %s, pid %d, up %s\n", s.Version, s.PID, termtext.Age(time.Since(s.Started)))
	fmt.Fprintf(&out, "config   %s\n", termtext.Line(s.Config))
	otherBuild := ""
	if s.Build != a.Version.Build {
		otherBuild = fmt.Sprintf("%s; this command is of build %s; \"%s\" stops the daemon", cmp.Or(s.Build, "unknown"), cmp.Or(a.Version.Build, "unknown"), a.CommandLine("stop"))
	}
	for _, row := range []struct{ value, text string }{
		{otherBuild, "build    %s\n"},
		{startedFrom(&s), "started  %s\n"},
		{s.Address, "http     %s\n"},
		{s.Log, "log      %s\n"},
		{s.Linger, "ends     %s after its last client\n"},
		{s.Notice, "notice   %s\n"},
	} {
		if row.value != "" {
			fmt.Fprintf(&out, row.text, termtext.Line(row.value))
		}
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(&out, "config   %s\n", termtext.Line(w))
	}
	if awaiting, _ := countPinned(s.Servers, ""); awaiting > 0 {
		fmt.Fprintf(&out, "approve  %s; \"%s\" shows what is new or changed\n", countOf(awaiting, "tool awaits approval", "tools await approval"), a.CommandLine("approve"))
	}
	if text := definitionsNote(s.Servers); text != "" {
		fmt.Fprintf(&out, "lists    %s; \"%s\" shows them\n", text, a.CommandLine("doctor"))
	}
	if len(s.Servers) > 0 {
		out.WriteString("\n" + serverTable(s.Servers).render(a.Columns))
	}
	clients := table{header: []string{"CLIENT", "VERSION", "TRANSPORT", "PROTOCOL", "SINCE"}}
	screens := table{header: []string{"SCREEN", "SIZE", "SINCE"}}
	for _, c := range s.Sessions {
		since := termtext.Age(time.Since(c.Since)) + " ago"
		if c.IsScreen() {
			screens.add(screenName(c), screenSize(c), since)
			continue
		}
		if !c.SilentSince.IsZero() {
			since += ", silent for " + termtext.Age(time.Since(c.SilentSince))
		}
		clients.add(cmp.Or(c.Client, "(not introduced)"), c.Version, c.Transport, c.Protocol, since)
	}
	out.WriteString("\n" + cmp.Or(clients.render(a.Columns), "No clients are connected.\n"))
	if len(screens.rows) > 0 {
		out.WriteString("\n" + screens.render(a.Columns))
	}
	return out.String()
}

// definitionsNote returns the number of changed and dropped definitions, "" for none.
func definitionsNote(servers []daemon.Server) string {
	changed, dropped := 0, 0
	for i := range servers {
		if d := servers[i].Definitions; d != nil {
			changed, dropped = changed+d.Changed, dropped+d.Dropped
		}
	}
	var parts []string
	if changed > 0 {
		parts = append(parts, termtext.Count(changed, "definition")+" "+registry.ChangedText)
	}
	if dropped > 0 {
		parts = append(parts, fmt.Sprintf("%d dropped", dropped))
	}
	return strings.Join(parts, ", ")
}

// startedFrom returns when a daemon was started, and from which terminal.
func startedFrom(s *daemon.Status) string {
	text := termtext.Clock(s.Started, time.Now())
	switch {
	case s.Terminal == "":
		return text + " without a terminal"
	case s.TerminalGone:
		return text + " from " + s.Terminal + ", which is gone"
	}
	return text + " from " + s.Terminal
}

// screenName returns the terminal of a UI, or its client.
func screenName(c daemon.Session) string {
	name := cmp.Or(c.Terminal, c.Client, "(not introduced)")
	if c.Owner {
		name += " (the daemon's own)"
	}
	return name
}

func screenSize(c daemon.Session) string {
	if c.Width == 0 {
		return ""
	}
	return fmt.Sprintf("%dx%d", c.Width, c.Height)
}
