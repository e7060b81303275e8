// Package config reads, checks and expands Goblin's configuration file.
//
// Everything here is a plain function or a value. Load and Find read the file
// system once and return, and Parse looks for the programs of servers, to leave
// out Goblin itself; nothing starts a goroutine, watches a file or writes
// one. A Config is not changed after Parse has returned it, so any number of
// goroutines may read it; a caller that changes a server copies it first.
//
// One table of keys (keys.go) drives the parser, the defaults and the schema,
// so that they cannot drift apart. Every mistake of a file is reported in one
// run, with file and line; no text of a mistake holds the value of a variable,
// a header, an argument or a token. Mask hides them in texts of others.
//
// The package knows nothing of MCP, of processes or of sockets: it says what to
// run and where to listen, and leaves doing so to others.
package config

import (
	"io/fs"
	"log/slog"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"goblin/registry/definition"
)

// Type is how a server is reached.
type Type string

// The transports of backends. An HTTP server whose Server.TypeSet is false may
// be tried as SSE when it refuses Streamable HTTP.
const (
	Stdio Type = "stdio" // a child process
	HTTP  Type = "http"  // Streamable HTTP
	SSE   Type = "sse"   // HTTP with server-sent events, revision 2024-11-05
)

// Isolation is how many connections to a server there are.
type Isolation string

// Shared is one connection for all clients; PerSession is one per client's
// connection or session; PerProject is one for the clients of each project.
const (
	Shared     Isolation = "shared"
	PerSession Isolation = "session"
	PerProject Isolation = "project"
)

// Era is the family of revisions in which a server is spoken to.
type Era string

// AutoEra is the older one where the server offers it, and over HTTP each client's own;
// BothEras is each client's own, over stdio with a process for each. The empty one is
// AutoEra.
const (
	AutoEra   Era = "auto"
	LegacyEra Era = "legacy" // up to 2025-11-25
	ModernEra Era = "modern" // from 2026-07-28 on
	BothEras  Era = "both"
)

// Start is when a server starts.
type Start string

// EagerStart is with Goblin. AutoStart and LazyStart are at the first use of a server whose
// lists are remembered; with LazyStart, it also stops once it has listed if it is not used.
const (
	AutoStart  Start = "auto"
	EagerStart Start = "eager"
	LazyStart  Start = "lazy"
)

// Never is an IdleTimeout of servers that go on however long nobody uses them.
const Never time.Duration = -1

// RootsFrom is whose roots a server gets that asks for them.
type RootsFrom string

// ConfigRoots are those of gateway.roots, but during a call those of its client;
// ClientRoots are those of the clients that the connection serves; NoRoots are none.
const (
	ConfigRoots RootsFrom = "config"
	ClientRoots RootsFrom = "client"
	NoRoots     RootsFrom = "none"
)

// Pin chooses the treatment of tool definitions that are new or changed.
type Pin string

// PinOff ignores changes, PinReport tells of them, PinStrict withholds them.
const (
	PinOff    Pin = "off"
	PinReport Pin = "report"
	PinStrict Pin = "strict"
)

// Config is one configuration, checked and expanded.
type Config struct {
	Path     string       // absolute; empty for the demo
	File     fs.FileInfo  // as it was read; nil for what no file was read for
	Demo     bool         // the embedded demo, because no file was found
	EnvFile  string       // absolute; "" for none
	EnvNames []string     // variables that EnvFile gives a value, sorted
	Registry string       // URL of the registry of MCP servers; "" for the official one
	Servers  []Server     // in the order of the file
	Profiles []Profile    // in the order of the file
	Clients  []ClientRule // in the order of the file: the first that fits counts
	Gateway  Gateway
	Search   Search
	Lua      Lua
	Log      Log
	TUI      TUI
	Warnings []Problem // by line; nothing that keeps Goblin from starting
	// Mistakes are the Warnings that goblin validate reports as mistakes. Each keeps only
	// its server from starting.
	Mistakes []Problem

	variables     map[string]string // those that arguments of profiles' overrides are made of
	overrideLines map[OverrideTarget]int
	profileLines  map[profileKey]int
}

// Server is one backend.
type Server struct {
	Name string // [A-Za-z0-9][A-Za-z0-9._-]{0,63}, unique, never "goblin"
	Type Type

	Command    string   // a bare name is looked up in PATH; anything else is absolute
	Args       []string // without the command
	Env        map[string]string
	Cwd        string // absolute, or empty for Goblin's own
	InheritEnv InheritEnv
	// FileEnv are those of the variables that InheritEnv chooses which the config's
	// env_file has.
	FileEnv map[string]string

	URL     string // http or https
	Headers map[string]string
	OAuth   OAuth

	Tags           []string // by which profiles choose it
	Disabled       bool
	Timeout        time.Duration // of one request, without waits for a human
	CallTimeout    time.Duration // the same for tools/call; 0 for none
	StartupTimeout time.Duration // of connecting and the handshake
	Start          Start         // "": that of Gateway
	IdleTimeout    time.Duration // without use, until it stops; 0: that of Gateway
	Isolation      Isolation
	ForwardMeta    bool // what clients put into _meta besides the protocol's keys
	Era            Era
	Roots          RootsFrom       // empty: see RootsSource
	Tools          Filter          // on original names
	Prompts        Filter          // on original names
	Resources      Filter          // on original URIs and templates
	OpenResources  bool            // forward reads of URIs that the server never listed
	Overrides      *definition.Set // what clients see instead; nil for nothing
	MaxResult      int64           // bytes of text of a tool's result; 0 or less: all of it
	TypeSet        bool            // `type` was written: no fallback to SSE
	CommandSplit   bool            // `command` was a whole line, and is divided at spaces

	JSON           bool // its file is JSON, so fixes are written as JSON
	FromAddCommand bool // the command add checks it, so fixes are written as flags of add

	// FromEnv are the names of Env, sorted, whose values came out of variables
	// that not every child gets.
	FromEnv []string
	// Variables are those that Args and URL are made of, other than the ones that
	// every child gets, with their values.
	Variables map[string]string

	// late has the server's texts for Resolve if there are references in them.
	late *lateServer

	// Problem, if not empty, says in one line why the server cannot be started
	// and where that is in the file, for example an unset variable. The fields
	// that it concerns are empty.
	Problem string
	// Problems are the parts of Problem, each with its own fix.
	Problems []string
}

// OAuth is how Goblin logs in at a remote server. Nothing of it is needed: a server
// that wants a login says where.
type OAuth struct {
	Off               bool // no login; a 401 is an error like others
	ClientID          string
	ClientSecret      string   // or a private key in PEM
	MetadataURL       string   // a client id metadata document
	Scopes            []string // nil: what the server names
	RedirectPort      int      // 0: any
	ClientCredentials bool     // grant: client_credentials
	Issuer            string
	Account           string // servers with the same one share a login
}

// InheritEnv chooses what a child gets of Goblin's own environment, besides
// the base set.
type InheritEnv struct {
	All   bool
	Names []string
}

// choose are the variables that are chosen, nil for none.
func (e InheritEnv) choose(vars map[string]string) map[string]string {
	var chosen map[string]string
	for name, value := range vars {
		if e.All || slices.Contains(e.Names, name) {
			if chosen == nil {
				chosen = make(map[string]string)
			}
			chosen[name] = value
		}
	}
	return chosen
}

// Gateway configures the side that clients talk to.
type Gateway struct {
	Listen    string // host:port, or empty: no HTTP
	AuthToken string // visible ASCII; empty only on loopback
	// NoToken, if it has a text, says why AuthToken is empty although the file has
	// one: nobody may listen then.
	NoToken        Problem
	lateToken      *lateText // of AuthToken, if it holds references
	AllowedOrigins []string
	AllowedHosts   []string // without ports and final dots
	Namespace      Namespace
	MaxName        int           // bytes of a tool's listed name
	PageSize       int           // entries
	StartupWait    time.Duration // 0: never wait
	HandshakeWait  time.Duration // of initialize and server/discover; 0: never wait
	ListChanged    ListChanged
	MetaTools      MetaTools
	MetaToolsAbove int // entries that a client sees who needs them, if they are chosen by themselves
	Roots          []Root
	Pin            Pin
	Linger         time.Duration // 0: end with the last session
	Remember       time.Duration // lists of servers, for so long; 0: not at all
	Start          Start         // of servers
	IdleTimeout    time.Duration // of servers
	Limits         Limits
}

// ListChanged says which kinds of a backend's list_changed are heeded.
type ListChanged struct{ Tools, Prompts, Resources bool }

// Root is a root that is offered to backends when no client can be asked.
type Root struct{ URI, Name string }

// Limits bound what one party can cost.
type Limits struct {
	Frame    int64 // bytes of one JSON-RPC message
	InFlight int   // requests per backend connection
	Unsent   int64 // bytes waiting for one client before its requests wait
	Sessions int   // at a time, over the socket and over HTTP each
	Projects int   // processes of servers with isolation: project
	Pages    int   // pages of one list
	Entries  int   // entries of one list
	Depth    int   // arrays and objects within each other in one message
}

// Lua bounds one run of a Lua program.
type Lua struct {
	Timeout time.Duration
	Memory  int64 // bytes
	Calls   int   // of tools, prompts and resources
	Output  int64 // bytes
}

// Search is how tools are found.
type Search struct {
	Embeddings string // the URL of an OpenAI-compatible API; empty: by words alone
	Model      string
	AuthToken  string // a bearer token for it; may be empty
}

// Log is where Goblin's own log goes.
type Log struct {
	Level slog.Level
	File  string // absolute; empty: stderr
}

// TUI is how the screen looks.
type TUI struct {
	Theme  string              // auto, dark, light or none
	Images string              // auto, kitty, iterm, sixel, blocks or off
	Keys   map[string][]string // of actions, as goblin/registry/keymap spells both; none takes the keys away
}

// RootsSource is Roots, or what stands for it where nothing was written: a server that
// clients share keeps what it was told, so none of them may tell it.
func (s *Server) RootsSource() RootsFrom {
	switch {
	case s.Roots != "":
		return s.Roots
	case s.Isolation == PerSession, s.Isolation == PerProject:
		return ClientRoots
	}
	return ConfigRoots
}

// Server finds a server by its name.
func (c *Config) Server(name string) (*Server, bool) {
	i := slices.IndexFunc(c.Servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return &c.Servers[i], true
}

// Equal reports whether both would be run in the same way, so that a running
// connection need not be replaced.
func (s *Server) Equal(o *Server) bool {
	return reflect.DeepEqual(s.normal(), o.normal())
}

// normal is a copy in which an empty collection is nil and a problem has lost
// its line, which moves when text above it does.
func (s *Server) normal() Server {
	v := *s
	for _, list := range []*[]string{
		&v.Args, &v.InheritEnv.Names, &v.Tools.Allow, &v.Tools.Deny,
		&v.Prompts.Allow, &v.Prompts.Deny, &v.Resources.Allow, &v.Resources.Deny, &v.OAuth.Scopes,
	} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	for _, m := range []*map[string]string{&v.Env, &v.Headers, &v.FileEnv} {
		if len(*m) == 0 {
			*m = nil
		}
	}
	if v.Problem != "" {
		v.Problem, v.Problems = "cannot start", nil
	}
	v.FromEnv, v.Variables = nil, nil // how a value came about does not matter
	v.Overrides = nil                 // what clients see is none of the server's business
	v.Tags = nil                      // they are for profiles
	if v.late != nil {
		v.late = &lateServer{refs: v.late.refs} // a text may look like one that has references
	}
	return v
}

// baseEnv lists the variables that every child gets: enough to find programs, a home and a
// locale, and none of the secrets that a shell tends to hold.
var baseEnv = baseEnvOf(runtime.GOOS)

func baseEnvOf(system string) []string {
	if system == "windows" {
		return []string{
			"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
			"PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
		}
	}
	return []string{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"}
}

// Environ is the environment of the server's process as sorted "NAME=value"
// entries: the base set and the names of InheritEnv as lookup finds them, or the
// whole of all if everything is inherited, either over FileEnv, and over that the
// server's own Env.
// lookup is usually os.LookupEnv and all os.Environ().
func (s *Server) Environ(lookup func(string) (string, bool), all []string) []string {
	vars := maps.Clone(s.FileEnv)
	if vars == nil {
		vars = make(map[string]string)
	}
	if s.InheritEnv.All {
		for _, e := range all {
			if name, value, ok := strings.Cut(e, "="); ok && name != "" {
				vars[name] = value
			}
		}
	} else {
		for _, name := range slices.Concat(baseEnv, s.InheritEnv.Names) {
			if value, ok := lookup(name); ok {
				vars[name] = value
			}
		}
	}
	for name, value := range s.Env {
		vars[name] = value
	}
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}
