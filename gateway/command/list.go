package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/registry"
	"goblin/registry/termtext"
)

func (a *App) list() *cobra.Command {
	var q daemon.ListQuery
	cmd := a.withJSON("print a JSON array", &cobra.Command{
		Use:     "list servers|tools|prompts|resources|templates",
		GroupID: cli.GroupAsk,
		Short:   "List servers, tools, prompts or resources",
		Long: `List servers, tools, prompts, resources or resource templates, by the names that
clients see. STATE is "listed" or the reason why clients don't see an entry;
"goblin tools list --help" explains it. --json prints definitions and omits
filtered and unapproved entries.

Uses the running daemon; otherwise starts the servers temporarily. Servers that
fail are reported on stderr. If all fail, the exit code is 4.`,
		Example: `  goblin list servers
  goblin list tools --server clock
  goblin list resources --mime 'text/*'
  goblin list tools --json | jq -r '.[].name'`,
		ValidArgs: lists,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return cli.Usage(cmd, "list needs a kind: servers, tools, prompts, resources or templates")
			case !slices.Contains(lists, args[0]):
				return cli.Usage(cmd, "list takes servers, tools, prompts, resources or templates, not %q", args[0])
			case len(args) > 1:
				return cli.Usage(cmd, "list takes one kind, but got %q too", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Kind = args[0]
			if q.MIME != "" && q.Kind != "resources" && q.Kind != "templates" {
				return cli.Usage(cmd, "--mime is for resources and templates; %s have no MIME type", q.Kind)
			}
			if err := checkMIME(cmd, q.MIME); err != nil {
				return err
			}
			cfg, err := a.Load()
			if err != nil {
				return err
			}
			return a.listEntries(cmd.Context(), cfg, q)
		},
	})
	a.serverFlag(cmd, &q.Server)
	a.withProfile(cmd)
	cli.NameFlag(cmd.Flags(), &q.MIME, "mime", "only resources and templates of this MIME `TYPE`; may contain *, as in 'image/*'")
	return cmd
}

func (a *App) listEntries(ctx context.Context, cfg *config.Config, q daemon.ListQuery) (err error) {
	only := onlyServer(q.Server)
	if _, ok := cfg.Server(q.Server); !ok && only != nil {
		return checkUsable(cfg, q.Server)
	}
	var items []daemon.Entry
	var servers []daemon.Server
	// Print only after the gateway is closed: if the reader of stdout exits early, no
	// server must be left running.
	err = a.withGateway(ctx, cfg, only, func(g Gateway) (err error) {
		if items, servers, err = a.fetch(ctx, cfg, g, q); err == nil {
			items, err = a.withStates(ctx, g, q, items)
		}
		if err == nil {
			err = ctx.Err() // after an interrupt the list is incomplete
		}
		return err
	})
	if err != nil {
		return err
	}
	if q.Kind == "servers" {
		err = a.printServers(servers)
	} else {
		err = a.print(items, func() error { return a.printItems(q.Kind, items) })
	}
	if err != nil {
		return err
	}
	return a.reportListGaps(cfg, q, servers)
}

// reportListGaps returns an error if no enabled server answered.
func (a *App) reportListGaps(cfg *config.Config, q daemon.ListQuery, servers []daemon.Server) error {
	if q.Kind != "servers" {
		a.warnDamagedToggles(cfg)
	}
	if held := a.withheldNote(servers, ""); held != "" && q.Kind == "tools" {
		a.Warn("%s", held)
	}
	down, wanted := 0, 0
	for _, s := range servers {
		if s.State != string(registry.StateDisabled) {
			wanted++
		}
		if isMissing(s) {
			down++
		}
		if q.Kind != "servers" && (lacksEntries(s) || waitsForProject(s)) {
			a.Warn("%s", stateText(s))
		}
	}
	if down > 0 && down == wanted {
		return errReported(cli.CodeConnect)
	}
	return nil
}

// withStates adds filtered and unapproved entries in text output.
func (a *App) withStates(ctx context.Context, g Gateway, q daemon.ListQuery, items []daemon.Entry) ([]daemon.Entry, error) {
	if q.Kind == "servers" {
		return items, nil
	}
	rows, err := g.HiddenEntries(ctx, daemon.HiddenQuery{Kind: q.Kind, Profile: a.profile, All: true})
	if err != nil {
		return nil, err
	}
	rows = setStates(items, rows)
	if a.asJSON || a.profile != "" || q.MIME != "" {
		return items, nil
	}
	for i := range rows {
		r := &rows[i]
		if q.Server != "" && q.Server != r.Server {
			continue
		}
		it := daemon.Entry{Name: r.Label(), Server: r.Server, State: r.State, Reason: r.Reason}
		if q.Kind == "resources" || q.Kind == "templates" {
			it.Name, it.URI = "", r.Label()
		}
		items = append(items, it)
	}
	return items, nil
}

// setStates sets the states of items from rows, and returns the rows without an item.
func setStates(items []daemon.Entry, rows []daemon.HiddenEntry) (others []daemon.HiddenEntry) {
	key := func(r *daemon.HiddenEntry) [2]string { return [2]string{r.Server, r.Original} }
	at := make(map[[2]string]*daemon.HiddenEntry, len(rows))
	for i := range rows {
		at[key(&rows[i])] = &rows[i]
	}
	for i := range items {
		it := &items[i]
		it.State = daemon.StateListed
		if row := at[[2]string{it.Server, it.OriginalLabel()}]; row != nil {
			it.State, it.Reason = row.State, row.Reason
			delete(at, key(row))
		}
	}
	return slices.DeleteFunc(rows, func(r daemon.HiddenEntry) bool { return at[key(&r)] == nil })
}

// fetch returns the entries of a list (none for the list of servers) and the queried
// servers.
func (a *App) fetch(ctx context.Context, cfg *config.Config, g Gateway, q daemon.ListQuery) ([]daemon.Entry, []daemon.Server, error) {
	if q.Server != "" && q.Server != registry.Local && q.Kind != "servers" && !g.IsDaemon() {
		if err := checkUsable(cfg, q.Server); err != nil {
			return nil, nil, err
		}
	}
	wanted := q
	if q.Kind == "servers" {
		wanted.Kind = "tools" // waits for the servers
	}
	items, err := g.List(ctx, wanted)
	if err != nil {
		return nil, nil, err
	}
	status, err := g.Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	servers := status.Servers
	if q.Server != "" {
		servers = slices.DeleteFunc(servers, func(s daemon.Server) bool { return s.Name != q.Server })
	}
	for i := range servers {
		s := &servers[i]
		s.Error = a.Mask().String(s.Error)
		explainState(cfg, s)
	}
	return items, servers, nil
}

// explainState adds the fix for a server whose command contained its arguments.
func explainState(cfg *config.Config, s *daemon.Server) {
	entry, ok := cfg.Server(s.Name)
	if ok && entry.CommandSplit && s.State != string(registry.StateReady) && s.Error != "" {
		s.Error += "; move its arguments to \"args\""
	}
}

func (a *App) printItems(list string, items []daemon.Entry) error {
	if len(items) == 0 && a.OutTTY {
		a.Warn("no %s", list)
		return nil
	}
	t := table{}
	switch list {
	case "resources":
		t.header, t.right = []string{"URI", "NAME", "STATE", "MIME TYPE", "SIZE", "DESCRIPTION"}, map[int]bool{4: true}
	case "templates":
		t.header = []string{"URI TEMPLATE", "NAME", "STATE", "MIME TYPE", "DESCRIPTION"}
	default:
		t.header = []string{"NAME", "SERVER", "STATE", "DESCRIPTION"}
	}
	for _, it := range items {
		about := cmp.Or(termtext.FirstLine(it.Description), termtext.FirstLine(it.Title))
		bytes := ""
		if it.Size != nil {
			bytes = termtext.Size(*it.Size)
		}
		switch list {
		case "resources":
			t.add(it.ListedName(), it.Name, string(it.State), it.MIMEType, bytes, about)
		case "templates":
			t.add(it.ListedName(), it.Name, string(it.State), it.MIMEType, about)
		default:
			t.add(it.Name, it.Server, string(it.State), about)
		}
	}
	return a.printTable(&t)
}

func (a *App) printServers(servers []daemon.Server) error {
	if servers == nil {
		servers = []daemon.Server{}
	}
	return a.print(servers, func() error { return a.printTable(serverTable(servers)) })
}

// mostLogin is the maximum width of the LOGIN column, in cells.
const mostLogin = 60

func serverTable(servers []daemon.Server) *table {
	t := &table{
		header: []string{"SERVER", "STATE", "TRANSPORT", "TOOLS", "PROMPTS", "RESOURCES", "TEMPLATES", "RESTARTS", "LOGIN", "ERROR"},
		right:  map[int]bool{3: true, 4: true, 5: true, 6: true, 7: true},
	}
	for _, s := range servers {
		restarts := ""
		if s.Restarts > 0 {
			restarts = strconv.Itoa(s.Restarts)
		}
		state := registry.State(s.State).Label()
		if !s.Remembered.IsZero() {
			state += ", cached lists"
		}
		if d := s.Definitions; d != nil {
			state += definitionsMark(d)
		}
		if s.Held != "" {
			state += ", used by " + s.Held
		}
		who := termtext.Cut(termtext.Line(s.Login.String()), mostLogin)
		t.add(s.Name, state, s.Transport, strconv.Itoa(s.Tools), strconv.Itoa(s.Prompts),
			strconv.Itoa(s.Resources), strconv.Itoa(s.Templates), restarts, who, s.Error)
	}
	return t
}

func definitionsMark(d *daemon.Definitions) (mark string) {
	if d.Changed > 0 {
		mark += fmt.Sprintf(", %d changed", d.Changed)
	}
	if d.Dropped > 0 {
		mark += fmt.Sprintf(", %d dropped", d.Dropped)
	}
	return mark
}
