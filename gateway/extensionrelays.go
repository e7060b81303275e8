package gateway

import (
	"context"
	"errors"
	"log/slog"

	"goblin/gateway/downstream"
	"goblin/gateway/extensions"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/servers"
	"goblin/gateway/tasks"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// relayOptions configures extensionRelays.
type relayOptions struct {
	Registry *registry.Registry
	Servers  *servers.Manager
	Tasks    *tasks.Tasks
	Logger   *slog.Logger
	Views    *view.Views
}

// extensionRelays routes messages of extensions that Goblin does not know, and declares
// servers' extensions to clients. route may wait for servers to list; other methods don't
// block. Create it with [newRelays]. Its methods are safe for concurrent use.
type extensionRelays struct {
	o          relayOptions
	complaints extensions.Complaints
}

// newRelays returns extensionRelays.
func newRelays(o relayOptions) *extensionRelays { return &extensionRelays{o: o} }

// capabilities adds the extensions of visible and enabled servers to Goblin's own.
func (r *extensionRelays) capabilities(seen *registry.Snapshot, own []byte) []byte {
	union, _ := r.union(seen)
	for k, settings := range rawjson.Members(rawjson.Get(own, "extensions")) {
		name, _ := rawjson.String(k)
		union = rawjson.SetMember(union, name, settings)
	}
	if string(union) == "{}" {
		return own
	}
	return rawjson.SetMember(own, "extensions", union)
}

func (r *extensionRelays) union(of *registry.Snapshot) (union []byte, complaints []string) {
	var all []extensions.Declared
	for _, s := range r.o.Registry.StatesIn(of) {
		if s.State != registry.StateDisabled {
			all = append(all, extensions.Declared{Server: s.Name, Capabilities: s.Capabilities})
		}
	}
	return extensions.Union(all)
}

// compare logs dropped extensions once.
func (r *extensionRelays) compare() {
	_, complaints := r.union(r.o.Registry.Load())
	for _, c := range r.complaints.New(complaints) {
		r.o.Logger.Warn("extension not declared to clients", "what", c)
	}
}

// route returns a request's server, edits with original names, and the name that
// determined the server. The error is for the client.
func (r *extensionRelays) route(x *downstream.Request) (server, name string, edits []rawjson.Edit, err error) {
	unknown := jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", x.Method())
	declared := x.Client().Capabilities
	if extensions.ServerCapabilities(declared) == nil {
		return "", "", nil, unknown
	}
	if err := rawjson.ExtensionParams.Check(x.SentParams()); err != nil {
		return "", "", nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	}
	server, edits, err = extensions.Route(x.Params(), func(member, value string) (string, string, error) {
		find := func(resolve view.Resolver) (registry.Target, error) {
			return r.o.Views.Find(x.Context(), x, resolve, value)
		}
		whose, own, err := r.owner(find, x.Session(), r.o.Views.For(x), x.Modern() != nil, member, value)
		if name == "" && whose != "" {
			name = value
		}
		return whose, own, err
	})
	switch {
	case err != nil:
		return "", "", nil, err
	case !r.shared(declared, server):
		return "", "", nil, unknown
	}
	return server, name, edits, nil
}

// notice forwards a notification and returns its server, or "".
func (r *extensionRelays) notice(s *downstream.Session, method string, params []byte) (server string) {
	declared := s.Client().Capabilities
	if extensions.ServerCapabilities(declared) == nil {
		return ""
	}
	ctx, cancel := context.WithCancel(s.Context())
	cancel() // wait for nothing
	params = rawjson.ExtensionParams.Clean(nil, params)
	server, edits, err := extensions.Route(params, func(member, value string) (string, string, error) {
		find := func(resolve view.Resolver) (registry.Target, error) {
			return r.o.Views.FindFor(ctx, s, resolve, value)
		}
		return r.owner(find, s, r.o.Views.ForSession(s), false, member, value)
	})
	b := r.o.Servers.Get(server)
	if err != nil || b == nil || !r.shared(declared, server) {
		return ""
	}
	conn, err := r.o.Servers.Conn(ctx, b, s, false)
	if err == nil {
		err = conn.Notify(method, rawjson.Splice(params, edits...))
	}
	if err != nil {
		r.o.Logger.Debug("notification not forwarded", "server", server, "method", method, "err", err)
		return ""
	}
	return server
}

func (r *extensionRelays) shared(declared []byte, server string) bool {
	state, ok := r.o.Registry.State(server)
	return ok && extensions.Shared(declared, state.Capabilities)
}

// owner returns the server and original name of a value, or "". It fails for an ambiguous
// one.
func (r *extensionRelays) owner(find func(view.Resolver) (registry.Target, error), s *downstream.Session, seen *registry.Snapshot, modern bool, member, value string) (server, own string, err error) {
	resolvers := []view.Resolver{(*registry.Snapshot).ResolveTool, (*registry.Snapshot).ResolvePrompt}
	switch member {
	case "uri":
		resolvers = append(resolvers[:0], (*registry.Snapshot).ResolveResource)
	case "taskId":
		if task, err := r.o.Tasks.Find(s, seen, modern, value); err == nil {
			return task.Server, task.ServerTaskID, nil
		}
		return "", "", nil
	}
	for _, resolve := range resolvers {
		t, err := find(resolve)
		var several *registry.AmbiguousError
		switch {
		case errors.As(err, &several):
			return "", "", err
		case err != nil || t.Local != nil:
		case server != "" && server != t.Server: // tool of one, prompt of another
			return "", "", &registry.AmbiguousError{Kind: registry.Tool, Name: value, Candidates: []string{server + "/" + own, t.Listed}}
		case server == "":
			server, own = t.Server, t.Name
		}
	}
	return server, own, nil
}
