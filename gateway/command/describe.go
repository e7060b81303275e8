package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/registry"
	"goblin/registry/definition"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

type description struct {
	Kind string `json:"kind"`
	daemon.Entry
	Tokens int `json:"definitionTokens,omitempty"` // estimate, for tools
}

type describeQuery struct {
	name, kind, server string

	entries []description   // matches of the name
	servers []daemon.Server // all servers
	itself  *daemon.Server  // the server with that name, or nil
	// Listed and original names of all entries, if nothing matched.
	known, own []string
}

func (a *App) describe() *cobra.Command {
	var d describeQuery
	cmd := a.withJSON("print a JSON object", &cobra.Command{
		Use:     "describe NAME",
		GroupID: cli.GroupAsk,
		Short:   "Describe one entry or server",
		Long: `Describe a tool, prompt, resource, template or server: its server, own name,
arguments, state, and the tokens of its definition.

NAME is a listed name, SERVER/NAME, a URI, or the server's own name if no other
entry has it. --json prints the definition that clients see.

Uses the running daemon; otherwise starts the required servers temporarily.`,
		Example: `  goblin describe clock_time_in
  goblin describe library/discuss_book
  goblin describe mcp://clock/clock://now --json
  goblin describe clock --kind servers`,
		Args: oneArg("a name"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) (all []string, how cobra.ShellCompDirective) {
			for _, list := range lists {
				names, _ := a.complete(list)(cmd, args, typed)
				all = append(all, names...)
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			d.name = args[0]
			if err := checkKind(cmd, &d.kind, lists); err != nil {
				return err
			}
			cfg, err := a.Load()
			if err != nil {
				return err
			}
			if _, ok := cfg.Server(d.server); !ok && onlyServer(d.server) != nil {
				return checkUsable(cfg, d.server)
			}
			return a.describeOne(cmd.Context(), cfg, &d)
		},
	})
	kindFlag(cmd, &d.kind, strings.Join(lists, ", "), lists)
	a.serverFlag(cmd, &d.server)
	a.withProfile(cmd)
	return cmd
}

// describeOne first asks the servers that the spelling suggests.
func (a *App) describeOne(ctx context.Context, cfg *config.Config, d *describeQuery) error {
	likely := d.likely(cfg)
	isDaemon, err := a.findDescribed(ctx, cfg, likely, d)
	if err == nil && d.matches() == 0 && likely != nil && d.server == "" && !isDaemon {
		_, err = a.findDescribed(ctx, cfg, nil, d)
	}
	if err != nil {
		return err
	}
	switch {
	case d.matches() > 1:
		return d.ambiguous()
	case d.itself != nil && a.asJSON:
		return a.printJSON(struct {
			Kind string `json:"kind"`
			*daemon.Server
		}{"server", d.itself})
	case d.itself != nil:
		return a.printText(serverText(d.itself))
	case len(d.entries) == 0:
		return a.notDescribed(likely, d)
	case a.asJSON:
		return a.printJSON(d.entries[0])
	}
	return a.printText(d.entries[0].String())
}

// likely returns the servers that the name may belong to, or nil for all.
func (d *describeQuery) likely(cfg *config.Config) (only []string) {
	if d.server != "" {
		return onlyServer(d.server)
	}
	if _, ok := cfg.Server(d.name); ok && d.wants("servers") {
		return []string{d.name}
	}
	for _, k := range []kind{toolKind, promptKind, resourceKind} {
		only = append(only, likelyServers(cfg, k, d.name)...)
	}
	slices.Sort(only)
	return slices.Compact(only)
}

func (d *describeQuery) wants(list string) bool { return d.kind == "" || d.kind == list }

func (d *describeQuery) matches() int {
	if d.itself != nil {
		return len(d.entries) + 1
	}
	return len(d.entries)
}

// findDescribed prefers listed names to original names.
func (a *App) findDescribed(ctx context.Context, cfg *config.Config, only []string, d *describeQuery) (isDaemon bool, err error) {
	best := 1
	d.entries, d.itself = nil, nil
	add := func(one description, rank int) {
		if rank > best {
			best, d.entries = rank, nil
		}
		if rank == best {
			d.entries = append(d.entries, one)
		}
	}
	err = a.withGateway(ctx, cfg, only, func(g Gateway) error {
		isDaemon = g.IsDaemon()
		for _, list := range lists[1:] {
			if !d.wants(list) {
				continue
			}
			if err := a.findInList(ctx, g, list, d, add); err != nil {
				return err
			}
		}
		if _, d.servers, err = a.fetch(ctx, cfg, g, daemon.ListQuery{Kind: "servers", Name: d.name}); err != nil {
			return err
		}
		at := slices.IndexFunc(d.servers, func(s daemon.Server) bool { return s.Name == d.name })
		if at >= 0 && d.wants("servers") && d.server == "" {
			d.itself = &d.servers[at]
			if best < 2 {
				d.entries = nil
			}
		}
		if d.matches() == 0 {
			err = d.listAll(ctx, g)
		}
		return err
	})
	return isDaemon, err
}

// findInList adds filtered and unapproved entries without definitions.
func (a *App) findInList(ctx context.Context, g Gateway, list string, d *describeQuery, add func(description, int)) error {
	items, err := g.List(ctx, daemon.ListQuery{Kind: list, Server: d.server, Name: d.name})
	if err != nil {
		return err
	}
	rows, err := g.HiddenEntries(ctx, daemon.HiddenQuery{Kind: list, Profile: a.profile, All: true, Name: d.name})
	if err != nil {
		return err
	}
	kind := strings.TrimSuffix(list, "s")
	rows = setStates(items, rows)
	for _, it := range items {
		one := description{Kind: kind, Entry: it}
		if list == toolKind.list {
			one.Tokens = report.Tokens(len(it.Definition))
		}
		add(one, it.MatchName(d.name))
	}
	for _, r := range rows {
		if d.server != "" && r.Server != d.server || r.State == daemon.StateListed {
			continue
		}
		add(description{Kind: kind, Entry: daemon.Entry{
			Name: r.Label(), Server: r.Server, OriginalName: r.Original, State: r.State, Reason: r.Reason,
		}}, daemon.MatchName(d.name, r.Server, r.Original, r.Label(), r.Label()))
	}
	return nil
}

func (d *describeQuery) ambiguous() error {
	var all []string
	if d.itself != nil {
		all = append(all, fmt.Sprintf("server %q", d.name))
	}
	for i := range d.entries {
		e := &d.entries[i]
		all = append(all, fmt.Sprintf("%s %q", e.Kind, e.ListedName()))
	}
	return cli.Fail(cli.CodeFailure, "%q is ambiguous: %s; use one of these names, or --kind", d.name, strings.Join(all, " or "))
}

func (d *describeQuery) listAll(ctx context.Context, g Gateway) error {
	d.known, d.own = statusNames(d.servers), statusNames(d.servers)
	for _, list := range lists[1:] {
		if !d.wants(list) {
			continue
		}
		items, err := g.List(ctx, daemon.ListQuery{Kind: list, Server: d.server})
		if err != nil {
			return err
		}
		d.known = append(d.known, listedNames(items)...)
		d.own = append(d.own, each(items, (*daemon.Entry).OriginalLabel)...)
	}
	return nil
}

// notDescribed returns an error with similar names, or with the servers that don't
// answer. likely are the servers that the name suggests.
func (a *App) notDescribed(likely []string, d *describeQuery) error {
	var down, suggested []string
	for _, s := range d.servers {
		if lacksEntries(s) {
			down = append(down, stateText(s))
			if slices.Contains(likely, s.Name) {
				suggested = append(suggested, stateText(s))
			}
		}
	}
	if len(suggested) > 0 && len(suggested) == len(likely) {
		return cli.Fail(cli.CodeConnect, "describe %q: %s", d.name, strings.Join(suggested, "; "))
	}
	text := fmt.Sprintf("no entry or server %q", d.name)
	if len(down) > 0 {
		text += "; " + strings.Join(down, "; ")
	}
	if near := cli.NearestSpelling(d.name, d.known, d.own); len(near) > 0 {
		return cli.Fail(cli.CodeNotFound, "%s; did you mean %s?", text, cli.QuoteNames(near, " or "))
	}
	return cli.Fail(cli.CodeNotFound, "%s; search for entries with \"%s\"", text, a.CommandLine("search WORDS"))
}

type lines struct{ strings.Builder }

func (l *lines) add(label, value string) {
	if value != "" {
		fmt.Fprintf(l, "%-12s%s\n", label, termtext.Line(value))
	}
}

// Limits in cells.
const (
	maxNote      = 1000
	maxNameCells = 30 // longer names don't shift other lines
)

func (l *lines) section(heading string, fields []definition.Field) {
	if len(fields) == 0 {
		return
	}
	fmt.Fprintf(l, "\n%s:\n", heading)
	width := 0
	for i := range fields {
		fields[i].Name = termtext.Name(fields[i].Name)
		width = max(width, min(termtext.Width(fields[i].Name), maxNameCells))
	}
	for _, f := range fields {
		about := []string{f.Type}
		if f.Required {
			about = append(about, "required")
		}
		about = append(about, f.Notes...)
		for i := range about {
			about[i] = termtext.Cut(termtext.Line(about[i]), maxNote)
		}
		fmt.Fprintf(l, "  %s  %s\n", termtext.Pad(f.Name, width), strings.Join(about, ", "))
		if f.Description == "" {
			continue
		}
		for line := range strings.Lines(strings.TrimSpace(f.Description)) {
			fmt.Fprintf(l, "      %s\n", termtext.Line(strings.TrimRight(line, "\r\n")))
		}
	}
}

// String returns the description for users, without control characters.
func (d *description) String() string {
	var out lines
	out.add(d.Kind, d.ListedName())
	out.add("server", d.Server)
	out.add("own name", d.OriginalLabel())
	if d.URI != "" || d.URITemplate != "" {
		out.add("name", d.Name)
	}
	out.add("flat id", d.FlatID)
	out.add("title", d.Title)
	state := string(d.State)
	if d.Reason != "" {
		state += ": " + d.Reason
	}
	out.add("state", state)
	out.add("MIME type", d.MIMEType)
	if d.Size != nil {
		out.add("size", termtext.Size(*d.Size))
	}
	out.add("hints", definition.Hints(d.Definition))
	if d.Tokens > 0 {
		out.add("cost", fmt.Sprintf("about %s tokens", termtext.FormatCount(d.Tokens)))
	}
	if d.Overridden != nil {
		out.add("changed", "by overrides in the config")
	}
	if len(d.Changes) > 0 {
		out.add("repaired", registry.ChangedText+": "+strings.Join(d.Changes, "; "))
	}
	if d.Description != "" {
		out.WriteString("\n" + strings.TrimSpace(termtext.Text(d.Description)) + "\n")
	}
	switch d.Kind {
	case toolKind.noun:
		out.section("Arguments", definition.SchemaFields(d.Definition, "inputSchema"))
		out.section("Result", definition.SchemaFields(d.Definition, "outputSchema"))
	case promptKind.noun:
		out.section("Arguments", definition.PromptFields(d.Definition))
	case "template":
		out.section("Variables", definition.TemplateFields(d.URITemplate))
	}
	return out.String()
}

func serverText(s *daemon.Server) string {
	var out lines
	out.add("server", s.Name)
	state := registry.State(s.State).Label()
	if s.Error != "" {
		state += ": " + s.Error
	}
	out.add("state", state)
	out.add("transport", s.Transport)
	out.add("revision", s.Protocol)
	var offers []string
	for _, list := range []struct {
		n    int
		noun string
	}{{s.Tools, "tool"}, {s.Prompts, "prompt"}, {s.Resources, "resource"}, {s.Templates, "template"}} {
		if list.n > 0 {
			offers = append(offers, termtext.Count(list.n, list.noun))
		}
	}
	out.add("offers", cmp.Or(strings.Join(offers, ", "), "nothing"))
	if s.Awaiting > 0 {
		out.add("unapproved", termtext.Count(s.Awaiting, "tool"))
	}
	out.add("login", s.Login.String())
	if s.Restarts > 0 {
		out.add("restarts", termtext.FormatCount(s.Restarts))
	}
	if s.PID > 0 {
		out.add("pid", fmt.Sprint(s.PID))
	}
	if s.LatencyMS > 0 {
		out.add("latency", termtext.Millis(s.LatencyMS))
	}
	return out.String()
}
