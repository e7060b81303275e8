package registry

import "time"

// Options is what the catalog depends on. Zero values take the defaults.
type Options struct {
	// Servers are the names of all configured servers in the config's order,
	// disabled ones too: listed names depend on them and on nothing else.
	Servers    []string
	Flat       bool             // list flat ids instead of mcp:// URIs
	PageSize   int              // entries per page, default 1000
	MaxEntries int              // per server and kind, default 1,000,000
	Now        func() time.Time // default time.Now
}

// Registry is the catalog. Make one with [New].
type Registry struct {
	opt           Options
	feed          feed
	subscriptions subscriptions
	logs          LogJournal
	traffic       TrafficJournal
}

// New returns a registry that knows the configured servers, each without
// lists and in [StateDisabled] until its supervisor says otherwise.
func New(o Options) *Registry { return &Registry{opt: o} }

// AddServer adds a server at run time, after all others. A name from
// Options.Servers gets its old place. Names of configured servers' entries do
// not change: where the new server's names could meet theirs, its own get
// tails. Adding a known server does nothing.
func (r *Registry) AddServer(name string) {}

// RemoveServer forgets a server: entries, learned links, state, and the rows
// of its subscriptions.
func (r *Registry) RemoveServer(name string) {}

// SetList replaces a server's list of one kind. items are the raw JSON
// objects as received, all pages after another; SetList copies what it keeps.
// A malformed item (not an object; name or URI missing, empty, not a string;
// an invalid template; a duplicate) is dropped and reported, the others live.
// Listing what stands already changes nothing and wakes nobody. Lists of
// unknown servers are ignored.
func (r *Registry) SetList(server string, kind Kind, items [][]byte) []Problem { return nil }

// SetVisible says whether a server's entries are listed. Hidden ones still
// count for who owns a bare name or raw URI. Servers begin visible.
func (r *Registry) SetVisible(server string, visible bool) {}

// OpenServer says whether mcp://server/<anything> resolves, listed or not.
func (r *Registry) OpenServer(server string, open bool) {}

// Load returns the catalog as it stands.
func (r *Registry) Load() *Snapshot { return nil }
