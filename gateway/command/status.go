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
	"goblin/registry/report"
	"goblin/registry/termtext"
)

func (a *App) status() *cobra.Command {
	return a.withJSON("print a JSON object", &cobra.Command{
		Use:     "status",
		GroupID: cli.GroupDaemon,
		Short:   "Show the daemon, its servers and clients",
		Long: `Show the daemon of this config: process, HTTP address, log file, servers,
connected clients and open UIs. If no daemon is running, the exit code is 4.`,
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

func (a *App) statusText(s daemon.Status) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Goblin %s, pid %d, up %s\n", s.Version, s.PID, termtext.Age(time.Since(s.Started)))
	fmt.Fprintf(&out, "config   %s\n", termtext.Line(s.Config))
	otherBuild := ""
	if s.Build != a.Version.Build {
		otherBuild = fmt.Sprintf("%s; this command is build %s; stop the daemon with \"%s\"", cmp.Or(s.Build, "unknown"), cmp.Or(a.Version.Build, "unknown"), a.CommandLine("stop"))
	}
	for _, row := range []struct{ value, text string }{
		{otherBuild, "build    %s\n"},
		{startedFrom(&s), "started  %s\n"},
		{s.Address, "http     %s\n"},
		{s.Log, "log      %s\n"},
		{s.Linger, "exits    %s after its last client disconnects\n"},
		{recordingText(s.Recording), "records  %s\n"},
		{rulesText(s.Rules), "rules    %s\n"},
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
		fmt.Fprintf(&out, "approve  %s; see \"%s\"\n", countOf(awaiting, "tool awaits approval", "tools await approval"), a.CommandLine("approve"))
	}
	if text := definitionsNote(s.Servers); text != "" {
		fmt.Fprintf(&out, "lists    %s; see \"%s\"\n", text, a.CommandLine("doctor"))
	}
	if len(s.Servers) > 0 {
		out.WriteString("\n" + serverTable(s.Servers).render(a.Columns))
	}
	clients := table{header: []string{"CLIENT", "VERSION", "TRANSPORT", "REVISION", "SINCE"}}
	screens := table{header: []string{"UI", "SIZE", "SINCE"}}
	for _, c := range s.Sessions {
		since := termtext.Age(time.Since(c.Since)) + " ago"
		if c.IsScreen() {
			screens.add(screenName(c), screenSize(c), since)
			continue
		}
		if !c.SilentSince.IsZero() {
			since += ", silent for " + termtext.Age(time.Since(c.SilentSince))
		}
		clients.add(cmp.Or(c.Client, "(unnamed)"), c.Version, c.Transport, c.Protocol, since)
	}
	out.WriteString("\n" + cmp.Or(clients.render(a.Columns), "No clients connected.\n"))
	if len(screens.rows) > 0 {
		out.WriteString("\n" + screens.render(a.Columns))
	}
	return out.String()
}

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

func rulesText(r *daemon.Rules) string {
	if r == nil {
		return ""
	}
	text := termtext.Count(r.Total, "rule")
	if r.Disabled > 0 {
		text += fmt.Sprintf(" (%d disabled)", r.Disabled)
	}
	text += ", " + countOf(int(r.Matches), "match", "matches")
	if r.Stopped > 0 {
		text += ", " + countOf(r.Stopped, "request waits", "requests wait") + " for the user"
	}
	return text
}

func recordingText(r *report.Recording) string {
	if r == nil || r.Error != "" { // the notice has the error
		return ""
	}
	text := fmt.Sprintf("%s, %s", r.Folder, termtext.Size(r.Bytes))
	if r.Dropped > 0 {
		text += fmt.Sprintf(", %d not recorded", r.Dropped)
	}
	return text
}

func startedFrom(s *daemon.Status) string {
	text := termtext.Clock(s.Started, time.Now())
	switch {
	case s.Terminal == "":
		return text + " in the background"
	case s.TerminalGone:
		return text + " from " + s.Terminal + " (closed)"
	}
	return text + " from " + s.Terminal
}

func screenName(c daemon.Session) string {
	name := cmp.Or(c.Terminal, c.Client, "(unnamed)")
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
