package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/extensions"
	"goblin/gateway/state"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// introduction is how a server introduced itself, remembered besides its lists.
type introduction struct {
	Transport, Era, Protocol string
	Name, Title, Version     string
	Instructions             string
	Capabilities             json.RawMessage
	Denied                   [][]string `json:",omitempty"` // by kind: names that the config leaves out of the lists
}

// mostDenied bounds the bytes of those names.
const mostDenied = 256 << 10

// denies are names that the config leaves out of a server's lists, by kind; nil for none.
func denies(of func(registry.Kind) []string) (all [][]string) {
	room := mostDenied
	for k := range registry.Kinds {
		for _, name := range of(registry.Kind(k)) {
			if room -= len(name); room < 0 {
				return all
			}
			if all == nil {
				all = make([][]string, registry.Kinds)
			}
			all[k] = append(all[k], name)
		}
	}
	return all
}

// whole reports whether a server has listed all there is.
func whole(state *registry.ServerState) bool {
	return state.State == registry.StateReady && state.Listed && !state.Stale
}

// DeniedNames is that of the lists that the catalog has, remembered ones, too.
func (s *Server) DeniedNames(kind registry.Kind) []string {
	if !s.out.told[kind].Load() && int(kind) < len(s.out.lacked) {
		return s.out.lacked[kind]
	}
	return s.Server.DeniedNames(kind)
}

// identity returns the digest of a definition for which cached lists count.
func identity(s *config.Server) string {
	return state.ListIdentity([]any{
		s.Name, s.Type, s.Command, s.Args, s.Env, s.FileEnv, s.Cwd, s.URL, s.Headers, s.Isolation, s.OAuth.Account,
		s.Tools, s.Prompts, s.Resources, // which decide what is kept
	})
}

// Cached reports whether lists of a server as it is defined are cached.
func Cached(store *state.ListCache, s *config.Server) bool {
	return store.Has(s.Name, identity(s))
}

// CacheLists notes in a store what a server listed outside of a fleet, by kind. State describes
// the server after it listed; denied names what the config leaves out of its lists.
func CacheLists(store *state.ListCache, s *config.Server, state *registry.ServerState, denied func(registry.Kind) []string, lists map[int][][]byte) {
	if about, err := introduce(state, denied); whole(state) && err == nil {
		store.Put(s.Name, identity(s), about, lists)
	}
}

// introduce returns the head of a server's file.
func introduce(st *registry.ServerState, denied func(registry.Kind) []string) (json.RawMessage, error) {
	return json.Marshal(introduction{
		Transport: st.Transport, Era: st.Era, Protocol: st.ProtocolVersion, Name: st.ServerName, Title: st.ServerTitle, Version: st.ServerVersion,
		Instructions: st.Instructions, Capabilities: st.Capabilities, Denied: denies(denied),
	})
}

// SaveLists writes what the servers listed, for programs that are about to exit. It needs
// Options.WriteOnly.
func (f *Manager) SaveLists() {
	if f.o.Catalog != nil && f.o.WriteOnly {
		f.o.Catalog.Save(f.made)
	}
}

// recall reads what is remembered of a server as it is defined, but its lists. The result
// is the state that it begins with, nil for none.
func (f *Manager) recall(o *outlet, s *config.Server) *registry.ServerState {
	if f.o.Catalog == nil {
		return nil
	}
	o.identity = identity(s)
	if s.Disabled || s.Problem != "" || f.o.WriteOnly {
		return nil
	}
	head := f.o.Catalog.Head(s.Name, o.identity)
	if head == nil {
		return nil
	}
	var about introduction
	if json.Unmarshal(head.About, &about) != nil {
		about = introduction{} // the lists are good without
	}
	o.lacked = about.Denied
	return &registry.ServerState{
		State: registry.StateStopped, Transport: cmp.Or(about.Transport, string(s.Type)), Era: about.Era, ProtocolVersion: about.Protocol,
		ServerName: about.Name, ServerTitle: about.Title, ServerVersion: about.Version,
		Instructions: about.Instructions, Capabilities: about.Capabilities,
		Listed: true, Stale: true, CachedAt: head.Saved.Local(),
	}
}

// list lists what is remembered of a server as what it lists itself, unless it was faster.
func (f *Manager) list(b *Server) {
	defer close(b.out.loaded)
	lists, ok := f.o.Catalog.Lists(b.Name(), b.out.identity)
	if !ok {
		b.out.recalled.Store(false)
	}
	if st, _ := f.o.Registry.State(b.Name()); rawjson.Path(st.Capabilities, "extensions", extensions.Skills) != nil {
		b.out.ServesSkills(b.Name(), true)
	}
	for i, items := range lists {
		if kind := registry.Kind(i); kind < registry.Kinds {
			b.out.listRemembered(b.Name(), kind, items)
		}
	}
	if ok {
		b.out.SetVisible(b.Name(), true) // it may have been off before
	}
	b.CacheLoaded(ok)
	if !ok {
		b.Wake()
	}
}

// AwaitCachedLists waits until what is remembered of servers is listed, or ctx ends.
func (f *Manager) AwaitCachedLists(ctx context.Context) {
	for _, b := range f.All() {
		if b.out.loaded == nil {
			continue
		}
		select {
		case <-b.out.loaded:
		case <-ctx.Done():
		}
	}
}

func (o *outlet) listRemembered(server string, kind registry.Kind, items [][]byte) {
	o.listing.Lock()
	defer o.listing.Unlock()
	if o.listed[kind] {
		return
	}
	o.setList(server, kind, items)
}

// afterStart is how long it may take to know why a server did not start in time.
const afterStart = 10 * time.Second

// patiently bounds the wait for a server that clients know without its having run: as
// long as it may take to start.
func (s *Server) patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Config().StartupTimeout+afterStart)
}

// awaitStart is the connection of such a server.
func (s *Server) awaitStart(ctx context.Context) (upstream.Conn, error) {
	ctx, cancel := s.patiently(ctx)
	defer cancel()
	if s.Config().Type != config.Stdio {
		s.AwaitListed(ctx) // its tools say what goes into headers
	}
	return s.Await(ctx)
}

// fetch notes a list that is to be remembered once all are there.
func (o *outlet) fetch(server string, kind registry.Kind, items [][]byte) {
	if o.fleet.o.Catalog == nil {
		return
	}
	o.keeping.Lock()
	if o.fetched == nil {
		o.fetched = make(map[int][][]byte)
	}
	o.fetched[int(kind)] = slices.Clone(items)
	o.keeping.Unlock()
	o.stating.Lock()
	defer o.stating.Unlock()
	if whole(&o.state) {
		o.keepLocked(server)
	}
}

// keepLocked has what was fetched remembered. stating is held.
func (o *outlet) keepLocked(server string) {
	if o.fleet.o.Catalog == nil {
		return
	}
	about, err := introduce(&o.state, o.denied)
	if err != nil {
		return // the server's capabilities are no JSON
	}
	o.keeping.Lock()
	lists := o.fetched
	o.fetched = nil
	o.keeping.Unlock()
	o.write(func() { o.fleet.o.Catalog.Put(server, o.identity, about, lists) })
}
