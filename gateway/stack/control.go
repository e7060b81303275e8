package stack

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"goblin/gateway/childproc"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/doctor"
	"goblin/gateway/policy"
	"goblin/gateway/servers"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

var _ daemon.Gateway = (*Stack)(nil)

// Status implements [daemon.Gateway]. The error is always nil.
func (i *Stack) Status(context.Context) (daemon.Status, error) {
	s := daemon.Status{
		PID: os.Getpid(), Version: i.o.Version, Config: i.configName(), Demo: i.o.Config.Demo,
		Started: i.started, Address: i.Address(), Log: i.o.Log, Notice: i.registry.Notice(),
		Sessions: []daemon.Session{}, Recording: i.Recording(),
	}
	cfg, now := i.gateway.Views.Config(), i.registry.Load()
	for _, w := range slices.Concat(policy.CheckOverrides(cfg, policy.CatalogEntries(now)), view.UnusedGlobs(cfg, view.NamesIn(now)), view.UnusedRules(cfg, view.NamesIn(now))) {
		s.Warnings = append(s.Warnings, i.o.Mask.String(w.String()))
	}
	for _, w := range i.ruleWarnings() {
		s.Warnings = append(s.Warnings, i.o.Mask.String(w.String()))
	}
	s.Rules = daemon.NewRules(i.registry.Rules())
	if i.o.Endpoint != nil {
		s.Build = i.o.Endpoint.Build
	}
	if i.o.Linger > 0 {
		s.Linger = config.ShortDuration(i.o.Config.Gateway.Linger)
	}
	if i.o.Terminal != nil {
		s.Terminal, s.TerminalGone = i.o.Terminal()
	}
	for _, c := range i.gateway.Sessions() {
		info := c.Client()
		row := daemon.Session{
			ID: c.ID(), Transport: c.Transport(), Client: info.Name, Version: info.Version,
			Protocol: c.Protocol(), Since: c.Started(),
		}
		if quiet := c.IdleTime(); quiet >= registry.SilentAfter {
			row.SilentSince = time.Now().Add(-quiet)
		}
		if at, ok := i.screens.Load(c); ok {
			row.Screen = at.(func() daemon.Screen)()
		}
		s.Sessions = append(s.Sessions, row)
	}
	s.Servers = i.servers(i.registry.States())
	return s, nil
}

// Servers returns a profile's visible servers.
func (i *Stack) Servers(_ context.Context, profile string) ([]daemon.Server, error) {
	seen, ok := i.gateway.Views.ForProfile(profile)
	if !ok {
		return nil, i.unknownProfileError(profile)
	}
	return i.servers(i.registry.StatesIn(seen.Visible)), nil
}

func (i *Stack) servers(states []registry.ServerState) []daemon.Server {
	all := make([]daemon.Server, 0, len(states))
	for _, state := range states {
		pinned := i.registry.UnapprovedTools(state.Name)
		hidden := 0
		for _, p := range pinned {
			if p.Hidden {
				hidden++
			}
		}
		all = append(all, daemon.Server{
			Definitions: daemon.NewDefinitions(state.Repairs),
			Login:       state.Login, Awaiting: len(pinned), Withheld: hidden,
			Name: state.Name, State: string(state.State), Transport: state.Transport,
			Protocol: state.ProtocolVersion, Error: state.LastError,
			Listed: state.Listed, Tools: state.Counts[registry.Tool], Prompts: state.Counts[registry.Prompt],
			Resources: state.Counts[registry.Resource], Templates: state.Counts[registry.Template],
			Restarts: state.Restarts, PID: state.PID, Remembered: state.CachedAt, Held: state.KeepAwakeReason,
			LatencyMS: float64(state.Latency.Microseconds()) / 1000,
		})
	}
	return all
}

var kinds = map[string]registry.Kind{
	"tools": registry.Tool, "prompts": registry.Prompt,
	"resources": registry.Resource, "templates": registry.Template,
}

// List returns entries in list order, after AwaitLists.
func (i *Stack) List(ctx context.Context, q daemon.ListQuery) ([]daemon.Entry, error) {
	kind, ok := kinds[q.Kind]
	if !ok {
		return nil, fmt.Errorf("list %q: unknown kind; use tools, prompts, resources or templates", q.Kind)
	}
	if err := i.checkServer(q.Server); err != nil {
		return nil, err
	}
	fits, err := registry.MIMEFilter(q.MIME)
	if err != nil {
		return nil, err
	}
	ctx, err = i.withProfile(ctx, q.Profile)
	if err != nil {
		return nil, err
	}
	i.AwaitLists(ctx)
	entries := []daemon.Entry{}
	lists := i.registry.ViewFor(ctx)
	if seen, ok := i.gateway.Views.ForProfile(q.Profile); ok && q.Profile != "" {
		lists = seen.Lists
		if q.WithHidden {
			lists = i.allNamedAs(seen.Visible)
		}
	}
	for e := range lists.All(kind) {
		if q.Server != "" && e.Server != q.Server || fits != nil && !fits(e) {
			continue
		}
		entry := daemon.NewEntry(e)
		if q.Name != "" && entry.MatchName(q.Name) == 0 {
			continue
		}
		if q.WithOwn {
			entry.Own = e.Own()
		}
		state, _ := i.registry.State(e.Server)
		entry.Remembered = state.CachedAt
		entries = append(entries, entry)
	}
	return entries, nil
}

// allNamedAs returns all entries with the names of a view.
func (i *Stack) allNamedAs(seen *registry.Snapshot) *registry.Snapshot {
	return i.registry.Load().InNamespace(seen.UsesFlatIDs(), nil).Narrow(allEntries{seen.Visibility()}, nil)
}

type allEntries struct{ registry.Visibility }

func (allEntries) Server(string) bool                     { return true }
func (allEntries) All(string, registry.Kind) bool         { return true }
func (allEntries) Has(string, registry.Kind, string) bool { return true }

// checkServer returns an error for a server outside of the config. "" is valid.
func (i *Stack) checkServer(server string) error {
	if server != "" && server != registry.Local && !slices.Contains(i.gateway.Servers.Names(), server) {
		return &servers.UnknownError{Name: server, Known: i.gateway.Servers.Names()}
	}
	return nil
}

// Restart reconnects a server. It fails if there is nothing to restart.
func (i *Stack) Restart(_ context.Context, server string) error {
	return i.gateway.Servers.Restart(server)
}

// SetEnabled enables or disables a server until this process exits.
func (i *Stack) SetEnabled(server string, on bool) error {
	return i.gateway.Servers.SetEnabled(server, on)
}

// Approve permanently approves tools and returns their names.
func (i *Stack) Approve(_ context.Context, what daemon.Approval) ([]string, error) {
	if err := i.approvalDisabled(); err != nil {
		return nil, err
	}
	return i.gateway.Servers.Approve(what.Server, what.Seen, what.Tools...)
}

// CallApprovals implements [daemon.Gateway].
func (i *Stack) CallApprovals(context.Context) ([]registry.CallApproval, error) {
	if err := i.gateway.Rules.RefreshApprovals(); err != nil {
		return nil, err
	}
	return append([]registry.CallApproval{}, i.gateway.Rules.Approvals()...), nil
}

// RevokeCallApproval implements [daemon.Gateway].
func (i *Stack) RevokeCallApproval(_ context.Context, id string) error { return i.RevokeApproval(id) }

// Unapproved returns the unapproved tools of a server, or of all for "", after
// AwaitLists. It fails if tools are not pinned.
func (i *Stack) Unapproved(ctx context.Context, server string) ([]registry.UnapprovedTool, error) {
	if err := i.approvalDisabled(); err != nil {
		return nil, err
	}
	i.gateway.Servers.AwaitLists(ctx)
	return append([]registry.UnapprovedTool{}, i.registry.UnapprovedTools(server)...), nil
}

func (i *Stack) approvalDisabled() error {
	if i.pinsError != nil {
		return i.pinsError
	}
	return i.pinStore.Refresh()
}

// Diagnose checks a server with a separate process or connection.
func (i *Stack) Diagnose(ctx context.Context, server string) (report.Diagnosis, error) {
	cfg := i.config()
	s, ok := cfg.Server(server)
	if !ok {
		return report.Diagnosis{}, &servers.UnknownError{Name: server, Known: i.gateway.Servers.Names()}
	}
	return i.diagnose(ctx, cfg, s), nil
}

func (i *Stack) diagnose(ctx context.Context, cfg *config.Config, s *config.Server) report.Diagnosis {
	return doctor.Server(ctx, doctor.Options{
		Config: cfg, Version: i.o.Version, Logins: i.o.Logins, Resolve: i.o.Resolve, Folder: i.o.Folder,
		Redact: i.o.Mask.String, Children: i.children,
	}, s)
}

// Definition returns a server's command or URL without secrets, and its resource usage.
func (i *Stack) Definition(server string) report.Definition {
	s, ok := i.config().Server(server)
	if !ok {
		return report.Definition{}
	}
	d := report.Definition{URL: i.o.Mask.String(s.URL), Env: slices.Sorted(maps.Keys(s.Env)), Headers: slices.Sorted(maps.Keys(s.Headers))}
	if s.Command != "" {
		words := append([]string{s.Command}, s.Args...)
		for at := range words {
			words[at] = i.o.Mask.String(words[at])
		}
		d.Command, d.Folder = termtext.QuoteWords(words...), s.Cwd
		switch {
		case s.Cwd != "":
		case i.o.Config.Demo:
			d.Folder, _ = os.Getwd()
		default:
			d.Folder = filepath.Dir(i.o.Config.Path)
		}
	}
	if b := i.gateway.Servers.Get(server); b != nil {
		d.LeftOut, d.More = filteredEntries(b)
	}
	state, _ := i.registry.State(server)
	pids := []int{state.PID}
	for _, p := range state.Projects {
		pids = append(pids, p.PID)
	}
	for _, pid := range pids {
		if pid > 0 {
			u := childproc.GroupUsage(pid)
			d.Processes, d.Processor, d.Memory = d.Processes+u.Processes, d.Processor+u.CPUTime, d.Memory+u.Memory
		}
	}
	return d
}

// filteredEntries returns some entries that a server's filters hide, and counts the
// others.
func filteredEntries(b *servers.Server) (few []string, more int) {
	const most = 20
	for _, k := range []registry.Kind{registry.Tool, registry.Prompt, registry.Resource, registry.Template} {
		for _, name := range b.DeniedNames(k) {
			if len(few) == most {
				more++
				continue
			}
			few = append(few, k.String()+" "+name)
		}
	}
	return few, more
}

// Stop makes Run return.
func (i *Stack) Stop(context.Context) error {
	i.stop()
	return nil
}
