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

type cachedInfo struct {
	Transport, Era, Protocol string
	Name, Title, Version     string
	Instructions             string
	Capabilities             json.RawMessage
	Denied                   [][]string `json:",omitempty"` // by kind: names that the config hides
}

const maxDeniedBytes = 256 << 10

func deniedNames(of func(registry.Kind) []string) (all [][]string) {
	room := maxDeniedBytes
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

func isComplete(state *registry.ServerState) bool {
	return state.State == registry.StateReady && state.Listed && !state.Stale
}

// DeniedNames returns the names that the config hides, also for cached lists.
func (s *Server) DeniedNames(kind registry.Kind) []string {
	if !s.sink.hasListed[kind].Load() && int(kind) < len(s.sink.cachedDenied) {
		return s.sink.cachedDenied[kind]
	}
	return s.Server.DeniedNames(kind)
}

// identity is the digest of the parts of a definition that cached lists depend on.
func identity(s *config.Server) string {
	return state.ListIdentity([]any{
		s.Name, s.Type, s.Command, s.Args, s.Env, s.FileEnv, s.Cwd, s.URL, s.Headers, s.Isolation, s.OAuth.Account,
		s.Tools, s.Prompts, s.Resources, // filters decide which entries are saved
	})
}

// HasCachedLists reports whether lists of a server with this definition are cached.
func HasCachedLists(store *state.ListCache, s *config.Server) bool {
	return store.Has(s.Name, identity(s))
}

// CacheLists stores lists by kind that a server sent outside of a Manager. state is the
// server's state after listing. denied returns the names that the config hides.
func CacheLists(store *state.ListCache, s *config.Server, state *registry.ServerState, denied func(registry.Kind) []string, lists map[int][][]byte) {
	if about, err := encodeInfo(state, denied); isComplete(state) && err == nil {
		store.Put(s.Name, identity(s), about, lists)
	}
}

func encodeInfo(st *registry.ServerState, denied func(registry.Kind) []string) (json.RawMessage, error) {
	return json.Marshal(cachedInfo{
		Transport: st.Transport, Era: st.Era, Protocol: st.ProtocolVersion, Name: st.ServerName, Title: st.ServerTitle, Version: st.ServerVersion,
		Instructions: st.Instructions, Capabilities: st.Capabilities, Denied: deniedNames(denied),
	})
}

// SaveLists writes the servers' lists to disk, for programs that are about to exit. It
// needs Options.WriteOnly.
func (f *Manager) SaveLists() {
	if f.o.Catalog != nil && f.o.WriteOnly {
		f.o.Catalog.Save(f.created)
	}
}

func (f *Manager) loadCache(o *sink, s *config.Server) *registry.ServerState {
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
	var about cachedInfo
	if json.Unmarshal(head.About, &about) != nil {
		about = cachedInfo{} // lists work without it
	}
	o.cachedDenied = about.Denied
	return &registry.ServerState{
		State: registry.StateStopped, Transport: cmp.Or(about.Transport, string(s.Type)), Era: about.Era, ProtocolVersion: about.Protocol,
		ServerName: about.Name, ServerTitle: about.Title, ServerVersion: about.Version,
		Instructions: about.Instructions, Capabilities: about.Capabilities,
		Listed: true, Stale: true, CachedAt: head.Saved.Local(),
	}
}

// listCached publishes the cached lists of a server, except kinds that the server already
// listed.
func (f *Manager) listCached(b *Server) {
	defer close(b.sink.loaded)
	lists, ok := f.o.Catalog.Lists(b.Name(), b.sink.identity)
	if !ok {
		b.sink.hasCache.Store(false)
	}
	if st, _ := f.o.Registry.State(b.Name()); rawjson.Path(st.Capabilities, "extensions", extensions.Skills) != nil {
		b.sink.ServesSkills(b.Name(), true)
	}
	for i, items := range lists {
		if kind := registry.Kind(i); kind < registry.Kinds {
			b.sink.setCachedList(b.Name(), kind, items)
		}
	}
	if ok {
		b.sink.write(func() { f.o.Registry.ListsComplete(b.Name()) }) // also the empty ones
		b.sink.SetVisible(b.Name(), true)                             // it may have been disabled before
	}
	b.CacheLoaded(ok)
	if !ok {
		b.Wake()
	}
}

// AwaitCachedLists waits until cached lists are published or ctx is done.
func (f *Manager) AwaitCachedLists(ctx context.Context) {
	for _, b := range f.All() {
		if b.sink.loaded == nil {
			continue
		}
		select {
		case <-b.sink.loaded:
		case <-ctx.Done():
		}
	}
}

func (o *sink) setCachedList(server string, kind registry.Kind, items [][]byte) {
	o.listMu.Lock()
	defer o.listMu.Unlock()
	if o.listed[kind] {
		return
	}
	o.setList(server, kind, items)
}

// startGrace is the additional time to determine why a server did not start in time.
const startGrace = 10 * time.Second

// withStartTimeout limits the wait for a server with cached lists to its start timeout.
func (s *Server) withStartTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Config().StartupTimeout+startGrace)
}

func (s *Server) awaitStart(ctx context.Context) (upstream.Conn, error) {
	ctx, cancel := s.withStartTimeout(ctx)
	defer cancel()
	if s.Config().Type != config.Stdio {
		s.AwaitListed(ctx) // its tools define header parameters
	}
	return s.Await(ctx)
}

func (o *sink) stageList(server string, kind registry.Kind, items [][]byte) {
	if o.manager.o.Catalog == nil {
		return
	}
	o.fetchedMu.Lock()
	if o.fetched == nil {
		o.fetched = make(map[int][][]byte)
	}
	o.fetched[int(kind)] = slices.Clone(items)
	o.fetchedMu.Unlock()
	o.stateMu.Lock()
	defer o.stateMu.Unlock()
	if isComplete(&o.state) {
		o.saveLocked(server)
	}
}

// saveLocked saves the staged lists. The caller holds stateMu.
func (o *sink) saveLocked(server string) {
	if o.manager.o.Catalog == nil {
		return
	}
	about, err := encodeInfo(&o.state, o.denied)
	if err != nil {
		return
	}
	o.fetchedMu.Lock()
	lists := o.fetched
	o.fetched = nil
	o.fetchedMu.Unlock()
	o.write(func() { o.manager.o.Catalog.Put(server, o.identity, about, lists) })
}
