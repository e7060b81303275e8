package fleet

import (
	"encoding/json"
	"slices"

	"goblin/gateway/catalog"
	"goblin/gateway/config"
	"goblin/registry"
)

// said is what is remembered of a server besides its lists.
type said struct {
	Transport, Era, Protocol string
	Name, Title, Version     string
	Instructions             string
	Capabilities             json.RawMessage
}

// whole reports whether a server has listed all there is.
func whole(state *registry.ServerState) bool {
	return state.State == registry.StateReady && state.Listed && !state.Stale
}

// recall reads what is remembered of a server as it is defined, and gives it to the
// outlet; the result is the state that it begins with, nil for none.
func (f *Fleet) recall(o *outlet, s *config.Server) *registry.ServerState {
	if f.o.Catalog == nil {
		return nil
	}
	o.identity = catalog.Identity([]any{
		s.Name, s.Type, s.Command, s.Args, s.Env, s.FileEnv, s.Cwd, s.URL, s.Headers, s.Isolation, s.OAuth.Account,
	})
	if s.Disabled || s.Problem != "" || f.servers.Load() != nil { // an edit: what is listed already stays
		return nil
	}
	o.recalled = f.o.Catalog.Load(s.Name, o.identity)
	if o.recalled == nil {
		return nil
	}
	var about said
	if json.Unmarshal(o.recalled.About, &about) != nil {
		about = said{Transport: string(s.Type)} // the lists are good without
	}
	return &registry.ServerState{
		State: registry.StateStopped, Transport: about.Transport, Era: about.Era, ProtocolVersion: about.Protocol,
		ServerName: about.Name, ServerTitle: about.Title, ServerVersion: about.Version,
		Instructions: about.Instructions, Capabilities: about.Capabilities,
		Listed: true, Stale: true, Remembered: o.recalled.Saved,
	}
}

// list lists what is remembered of a server as what it lists itself.
func (f *Fleet) list(b *Server) {
	b.out.write(func() { f.o.Registry.SetState(b.Name(), *b.known) })
	for i, items := range b.out.recalled.Lists {
		kind := registry.Kind(i)
		if kind >= registry.Kinds {
			break
		}
		kept := slices.DeleteFunc(slices.Clone(items), func(item []byte) bool { return !b.PermitsEntry(kind, item) })
		b.out.setList(b.Name(), kind, kept)
	}
	b.out.recalled.Lists = nil
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
	st := &o.state
	about, err := json.Marshal(said{
		Transport: st.Transport, Era: st.Era, Protocol: st.ProtocolVersion, Name: st.ServerName, Title: st.ServerTitle, Version: st.ServerVersion,
		Instructions: st.Instructions, Capabilities: st.Capabilities,
	})
	if err != nil {
		return // the server's capabilities are no JSON
	}
	o.keeping.Lock()
	lists := o.fetched
	o.fetched = nil
	o.keeping.Unlock()
	o.write(func() { o.fleet.o.Catalog.Keep(server, o.identity, about, lists) })
}
