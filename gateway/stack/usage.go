package stack

import (
	"context"
	"slices"

	"goblin/gateway"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/definition"
	"goblin/registry/report"
)

// listedTools omits Goblin's own tools that no list has.
func (i *Stack) listedTools() []telemetry.ListedTool {
	seen := i.gateway.Views.Full()
	all := make([]telemetry.ListedTool, 0, seen.Count(registry.Tool))
	add := func(e *registry.Entry, unlisted bool) {
		all = append(all, telemetry.ListedTool{Server: e.Server, Tool: e.Name, Name: e.Listed, Bytes: e.JSONLen(), Disabled: i.gateway.Views.IsDisabled(e), Unlisted: unlisted})
	}
	for e := range seen.All(registry.Tool) {
		if e.Server != registry.Local {
			add(e, false)
		}
	}
	offered := i.gateway.Views.IsListed()
	for e := range i.registry.Load().Server(registry.Local, registry.Tool) {
		add(e, !offered(e))
	}
	return all
}

// isServing reports whether a server is enabled, or Goblin itself.
func (i *Stack) isServing(server string) bool {
	state, ok := i.registry.State(server)
	return server == registry.Local || ok && state.State != registry.StateDisabled
}

// Usage returns costs of servers, tools and clients, after AwaitLists.
func (i *Stack) Usage(ctx context.Context) (report.Report, error) {
	i.gateway.Servers.AwaitLists(ctx)
	return i.usage(), nil
}

// Usage returns the current costs.
func (c *Client) Usage() report.Report { return c.stack.usage() }

type listSizes struct {
	report.ListSizes
	bytes  int
	others report.NonToolLists
}

var nonToolKinds = []registry.Kind{registry.Prompt, registry.Resource, registry.Template, registry.Skill}

// addNonToolLists omits entries that are disabled for all clients.
func (i *Stack) addNonToolLists(r *report.Report) {
	all := make(map[string]*report.NonToolLists)
	for _, kind := range nonToolKinds {
		for e := range i.gateway.Views.Full().All(kind) {
			if i.gateway.Views.IsDisabled(e) {
				continue
			}
			if all[e.Server] == nil {
				all[e.Server] = new(report.NonToolLists)
			}
			all[e.Server].Add(e.JSONLen())
		}
	}
	for n := range r.Servers {
		if of := all[r.Servers[n].Name]; of != nil {
			r.Servers[n].NonToolLists = *of
			delete(all, r.Servers[n].Name)
		}
	}
	delete(all, registry.Local)
	for name, of := range all { // without tools
		r.Servers = append(r.Servers, report.Server{Name: name, NonToolLists: *of})
	}
}

func (i *Stack) usage() report.Report {
	r := i.meter.Report()
	r.Daemon = true
	i.addNonToolLists(&r)
	r.Fold(i.isServing)
	views := make(map[*registry.Snapshot]listSizes) // most clients share one
	for _, s := range i.gateway.Sessions() {
		if s.IsScreen() {
			continue
		}
		names := []string{s.Name()}
		if s.Stateless() {
			names = s.StatelessClients()
		}
		for _, name := range names {
			view := i.gateway.Views.ListsForClient(s, name)
			is, ok := views[view]
			if !ok {
				is = measureLists(view)
				is.Instructions = len(gateway.Instructions(i.gateway, view))
				views[view] = is
			}
			is.addTo(&r, name)
		}
	}
	for n := range r.Clients {
		r.Clients[n].Limits = report.LimitsFor(r.Clients[n].Name)
	}
	r.Sort()
	return r
}

func (is *listSizes) addTo(r *report.Report, client string) {
	at := slices.IndexFunc(r.Clients, func(c report.Client) bool { return c.Name == client })
	if at < 0 {
		at = len(r.Clients)
		r.Clients = append(r.Clients, report.Client{Name: client})
	}
	c := &r.Clients[at]
	if c.Connected && c.Definitions.Bytes >= is.bytes {
		return // keep the largest session
	}
	c.Connected = true
	c.Tools = is.Tools
	c.Instructions = is.ListSizes.Instructions
	c.Definitions = report.DefinitionSize(is.bytes)
	c.NonToolLists = is.others
	c.Violations = report.LimitsFor(c.Name).Violations(c.Name, is.ListSizes)
}

func measureLists(view *registry.Snapshot) (is listSizes) {
	for e := range view.All(registry.Tool) {
		is.Tools++
		is.bytes += e.JSONLen()
		if len(e.Listed) > len(is.LongName) {
			is.LongName = e.Listed
		}
		if len(e.Description) > is.Description { // bytes ≥ characters
			if n := definition.CountCharacters(e.Description); n > is.Description {
				is.Description, is.LongestDescribed = n, e.Listed
			}
		}
	}
	for _, kind := range nonToolKinds {
		for e := range view.All(kind) {
			is.others.Add(e.JSONLen())
		}
	}
	return is
}
