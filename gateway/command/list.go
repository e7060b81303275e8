package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/registry"
	"goblin/registry/termtext"
)

var lists = []string{"servers", "tools", "prompts", "resources", "templates"}

func (a *App) list() *cobra.Command {
	var (
		q      daemon.ListQuery
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "list servers|tools|prompts|resources|templates",
		GroupID: cli.GroupAsk,
		Short:   "List what the servers offer",
		Long: `List servers, tools, prompts, resources or resource templates, by the names
that clients see. STATE is "listed", or the reason that clients do not see an
entry; "goblin tools list" explains it. --profile lists only what clients of the
profile see. --json prints the definitions, without filtered entries.

Uses the running daemon; otherwise starts the servers temporarily. Servers
that fail are reported on stderr. If all fail, the exit code is 4.`,
		Example: `  goblin list servers
  goblin list tools --server clock
  goblin list resources --mime 'text/*'
  goblin list tools --json | jq -r '.[].name'`,
		ValidArgs: lists,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return cli.Usage(cmd, "say what to list: servers, tools, prompts, resources or templates")
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
			if _, err := registry.MIMEFilter(q.MIME); err != nil {
				return cli.Usage(cmd, "--mime must be a MIME type or a pattern such as 'text/*', not %q", q.MIME)
			}
			cfg, err := a.Load()
			if err != nil {
				return err
			}
			return interrupted(cmd.Context(), a.listOf(cmd.Context(), cfg, q, asJSON))
		},
	}
	a.byServer(cmd, &q.Server)
	a.withProfile(cmd)
	cli.Name(cmd.Flags(), &q.MIME, "mime", "only of this MIME `TYPE` (resources and templates); * matches anything, as in 'image/*'")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// byServer adds --server to a command, and its completion.
func (a *App) byServer(cmd *cobra.Command, server *string) {
	cli.Name(cmd.Flags(), server, "server", "only of this `SERVER`")
	_ = cmd.RegisterFlagCompletionFunc("server", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return a.complete("servers")(cmd, nil, typed)
	})
}

func (a *App) listOf(ctx context.Context, cfg *config.Config, q daemon.ListQuery, asJSON bool) (err error) {
	var only []string
	if q.Server != "" && q.Server != registry.Local {
		if _, ok := cfg.Server(q.Server); !ok {
			return usable(cfg, q.Server)
		}
		only = []string{q.Server}
	}
	var items []daemon.Entry
	var servers []daemon.Server
	// The answer is complete before it is printed: a reader that leaves early
	// must not leave servers behind.
	err = a.with(ctx, cfg, only, func(g Gateway) (err error) {
		if items, servers, err = a.fetch(ctx, cfg, g, q); err == nil {
			items, err = a.withStates(ctx, g, q, items, asJSON)
		}
		if err == nil {
			err = ctx.Err() // what came until then is not the list
		}
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case q.Kind == "servers":
		err = a.printServers(servers, asJSON)
	case asJSON:
		err = a.json(items)
	default:
		err = a.printItems(q.Kind, items)
	}
	if err != nil {
		return err
	}
	return a.warnOfServers(cfg, q, servers)
}

// warnOfServers reports on stderr what a list lacks. It returns an error if no enabled server
// could be asked.
func (a *App) warnOfServers(cfg *config.Config, q daemon.ListQuery, servers []daemon.Server) error {
	if q.Kind != "servers" {
		a.warnUnknownOff(cfg)
	}
	if held := a.withholding(servers, ""); held != "" && q.Kind == "tools" {
		a.Warn("%s", held)
	}
	down, wanted := 0, 0
	for _, s := range servers {
		if s.State != string(registry.StateDisabled) {
			wanted++
		}
		if missing(s) {
			down++
		}
		if q.Kind != "servers" && (missing(s) || waits(s)) {
			a.Warn("%s", stateOf(s))
		}
	}
	if down > 0 && down == wanted {
		return errTold(cli.CodeConnect)
	}
	return nil
}

// withStates sets the state of each item. For users it adds the entries that filters and
// pins keep out of lists.
func (a *App) withStates(ctx context.Context, g Gateway, q daemon.ListQuery, items []daemon.Entry, asJSON bool) ([]daemon.Entry, error) {
	if q.Kind == "servers" {
		return items, nil
	}
	rows, err := g.Off(ctx, daemon.OffQuery{Kind: q.Kind, Profile: a.profile, All: true})
	if err != nil {
		return nil, err
	}
	at := make(map[[2]string]*daemon.Off, len(rows))
	for i := range rows {
		at[[2]string{rows[i].Server, rows[i].Original}] = &rows[i]
	}
	for i := range items {
		it := &items[i]
		it.State = daemon.StateListed
		key := [2]string{it.Server, it.Original()}
		if row := at[key]; row != nil {
			it.State, it.Reason = row.State, row.Reason
			delete(at, key)
		}
	}
	if asJSON || a.profile != "" || q.MIME != "" {
		return items, nil
	}
	for i := range rows {
		r := &rows[i]
		if at[[2]string{r.Server, r.Original}] == nil || q.Server != "" && q.Server != r.Server {
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

// fetch asks for the items (none of the list of servers) and for the servers
// that the query is about.
func (a *App) fetch(ctx context.Context, cfg *config.Config, g Gateway, q daemon.ListQuery) ([]daemon.Entry, []daemon.Server, error) {
	if q.Server != "" && q.Server != registry.Local && q.Kind != "servers" && !g.IsDaemon() {
		if err := usable(cfg, q.Server); err != nil {
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
		clarify(cfg, s)
	}
	return items, servers, nil
}

// clarify words the state of a server as its entry in the config explains it.
func clarify(cfg *config.Config, s *daemon.Server) {
	entry, ok := cfg.Server(s.Name)
	if ok && entry.Divided && s.State != string(registry.StateReady) && s.Error != "" {
		s.Error += "; put arguments into \"args\""
	}
}

func (a *App) printItems(list string, items []daemon.Entry) error {
	if len(items) == 0 && a.OutTTY {
		a.Warn("there are no %s", list)
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
			bytes = size(*it.Size)
		}
		switch list {
		case "resources":
			t.add(it.Listed(), it.Name, string(it.State), it.MIMEType, bytes, about)
		case "templates":
			t.add(it.Listed(), it.Name, string(it.State), it.MIMEType, about)
		default:
			t.add(it.Name, it.Server, string(it.State), about)
		}
	}
	return t.render(a.Out, a.Columns)
}

func (a *App) printServers(servers []daemon.Server, asJSON bool) error {
	if servers == nil {
		servers = []daemon.Server{}
	}
	if asJSON {
		return a.json(servers)
	}
	return serverTable(servers).render(a.Out, a.Columns)
}

// mostLogin is how many cells a login may take in the table of servers.
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
		state := s.State
		if !s.Remembered.IsZero() {
			state += ", remembered"
		}
		if d := s.Definitions; d != nil {
			state += definitionsMark(d)
		}
		if s.Held != "" {
			state += ", kept by " + s.Held
		}
		who := termtext.Cut(termtext.Line(s.Login.String()), mostLogin)
		t.add(s.Name, state, s.Transport, strconv.Itoa(s.Tools), strconv.Itoa(s.Prompts),
			strconv.Itoa(s.Resources), strconv.Itoa(s.Templates), restarts, who, s.Error)
	}
	return t
}

// definitionsMark returns the number of changed and dropped definitions of a server.
func definitionsMark(d *daemon.Definitions) (mark string) {
	if d.Changed > 0 {
		mark += fmt.Sprintf(", %d changed", d.Changed)
	}
	if d.Dropped > 0 {
		mark += fmt.Sprintf(", %d dropped", d.Dropped)
	}
	return mark
}

// answer prints a value for programs, or else a text for people, if there is one.
func (a *App) answer(asJSON bool, value any, text string) error {
	switch {
	case asJSON:
		return a.json(value)
	case text == "":
		return nil
	}
	return a.printText(text)
}

// json prints v for programs, and readable. Nothing in it makes a terminal do
// anything.
func (a *App) json(v any) error {
	text, err := termtext.Encoded(v, "  ")
	if err == nil {
		_, err = io.WriteString(a.Out, text+"\n")
	}
	return err
}
