// Package config reads, checks and expands Goblin's configuration file.
//
// All functions return without leaving a goroutine or a watch behind, and none writes a
// file. Load and Find read the file system. Parse also looks up servers' programs, to
// skip entries for Goblin itself. A Config is immutable once Parse has returned it, so
// goroutines may share it. A caller that changes a server copies it first.
//
// One table of keys (keys.go) drives the parser, the defaults and the schema. Every
// mistake of a file is reported in one run, with file and line. No mistake contains the
// value of a variable, a header, an argument or a token. Mask hides such values in other
// texts.
//
// The package does not depend on MCP, processes or sockets.
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
	"goblin/registry/rule"
	"goblin/registry/termtext"
)

// Type is the transport of a server.
type Type string

// An HTTP server that refuses Streamable HTTP may be tried as SSE unless Server.TypeSet
// is true.
const (
	Stdio Type = "stdio" // a child process
	HTTP  Type = "http"  // Streamable HTTP
	SSE   Type = "sse"   // HTTP with server-sent events, revision 2024-11-05
)

// Isolation selects which clients share a connection to a server.
type Isolation string

// Shared means one connection for all clients. PerSession means one per client connection
// or session. PerProject means one for all clients of a project.
const (
	Shared     Isolation = "shared"
	PerSession Isolation = "session"
	PerProject Isolation = "project"
)

// Era selects the protocol revisions that are used with a server.
type Era string

// AutoEra, the default for "", prefers the older era if a local server supports both.
// Over HTTP it follows the client. BothEras follows the client; over stdio it needs one
// process per era.
const (
	AutoEra   Era = "auto"
	LegacyEra Era = "legacy" // up to 2025-11-25
	ModernEra Era = "modern" // from 2026-07-28 on
	BothEras  Era = "both"
)

// Start selects when a server starts.
type Start string

// EagerStart starts a server together with Goblin. The others start a server with cached
// lists on first use. With LazyStart, a server that has listed stops again if it is not
// used.
const (
	AutoStart  Start = "auto"
	EagerStart Start = "eager"
	LazyStart  Start = "lazy"
)

// Never is the IdleTimeout of servers that never stop when idle.
const Never time.Duration = -1

// RootsFrom selects the roots that a server gets on request.
type RootsFrom string

// ConfigRoots means gateway.roots, and during a call the roots of the calling client.
// ClientRoots means the roots of the connection's clients.
const (
	ConfigRoots RootsFrom = "config"
	ClientRoots RootsFrom = "client"
	NoRoots     RootsFrom = "none"
)

// Pin selects the treatment of new or changed tool definitions.
type Pin string

// PinOff ignores changes, PinReport reports them, and PinStrict hides the tools until
// approval.
const (
	PinOff    Pin = "off"
	PinReport Pin = "report"
	PinStrict Pin = "strict"
)

// Config is a configuration, checked and expanded.
type Config struct {
	Path     string       // absolute; empty for the demo
	File     fs.FileInfo  // at the time of reading; nil without a file
	Demo     bool         // the embedded demo, because no file was found
	EnvFile  string       // absolute, or ""
	EnvNames []string     // non-empty variables of EnvFile, sorted
	Registry string       // URL of the MCP registry; "" means the official one
	Servers  []Server     // in file order
	Profiles []Profile    // in file order
	Clients  []ClientRule // in file order; the first match wins
	Rules    []*rule.Rule // in file order; the first match wins
	Gateway  Gateway
	Search   Search
	Lua      Lua
	Log      Log
	OTel     OTel
	Record   Record
	TUI      TUI
	Warnings []Problem // by line; none prevents Goblin from starting
	// Mistakes are warnings that goblin validate reports as mistakes. Each disables only
	// its server.
	Mistakes []Problem

	variables     map[string]string // used in arguments of profiles' overrides
	overrideLines map[OverrideTarget]int
	profileLines  map[profileKey]int
}

// Server is the definition of one server.
type Server struct {
	Name string // [A-Za-z0-9][A-Za-z0-9._-]{0,63}, unique, never "goblin"
	Type Type

	Command    string   // a bare name (looked up in PATH) or an absolute path
	Args       []string // without the command
	Env        map[string]string
	Cwd        string // absolute, or "" for Goblin's own
	InheritEnv InheritEnv
	FileEnv    map[string]string

	URL     string // http or https
	Headers map[string]string
	OAuth   OAuth

	Tags           []string // profiles select servers by tag
	Disabled       bool
	Timeout        time.Duration // per request; waiting for the user does not count
	CallTimeout    time.Duration // per tools/call; 0 means no limit
	StartupTimeout time.Duration // for connecting and the handshake
	Start          Start         // "" means Gateway.Start
	IdleTimeout    time.Duration // idle time before stopping; 0 means Gateway.IdleTimeout
	Isolation      Isolation
	ForwardMeta    bool // pass on clients' own _meta keys
	Era            Era
	Roots          RootsFrom       // empty: see RootsSource
	Tools          Filter          // on original names
	Prompts        Filter          // on original names
	Resources      Filter          // on original URIs and templates
	OpenResources  bool            // forward reads of URIs that the server never listed
	Overrides      *definition.Set // changes to what clients see, or nil
	MaxResult      int64           // bytes of text in a tool result; ≤ 0 means no limit
	Watch          []string        // globs of files that restart the server; "auto": source files
	Build          Build           // runs before a restart
	TypeSet        bool            // `type` is in the file: no fallback to SSE
	CommandSplit   bool            // `command` was a whole line and was split at spaces

	JSON           bool // the file is JSON, so fixes are written as JSON
	FromAddCommand bool // `goblin add` checks it, so fixes are written as its flags

	// FromEnv lists the names in Env, sorted, whose values come from variables outside of
	// the base set.
	FromEnv []string
	// Variables contains the variables in Args and URL, with their values, except the
	// base set.
	Variables map[string]string

	late *lateServer

	// Problem is the reason why the server cannot start, such as an unset variable, with
	// its place, in one line. The affected fields are empty.
	Problem string
	// Problems contains the parts of Problem, each with its own fix.
	Problems []string
}

// OAuth configures the login at a remote server. All of it is optional.
type OAuth struct {
	Off               bool // no login; a 401 is an ordinary error
	ClientID          string
	ClientSecret      string   // or a private key in PEM
	MetadataURL       string   // of a client ID metadata document
	Scopes            []string // nil means the scopes that the server names
	RedirectPort      int      // 0: any
	ClientCredentials bool     // grant: client_credentials
	Issuer            string
	Account           string // servers with the same account share a login
}

// InheritEnv selects variables of Goblin's environment for a child, in addition to the
// base set.
type InheritEnv struct {
	All   bool
	Names []string
}

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

// Gateway configures the side that clients see.
type Gateway struct {
	Listen    string // host:port; "" means no HTTP
	AuthToken string // visible ASCII; empty only on loopback
	// NoToken is the reason why AuthToken has no value although the file sets it.
	// Goblin does not listen then.
	NoToken        Problem
	lateToken      *lateText // of AuthToken, if it has references
	AllowedOrigins []string
	AllowedHosts   []string // without ports and final dots
	Namespace      Namespace
	MaxName        int           // bytes of a listed tool name
	PageSize       int           // entries
	StartupWait    time.Duration // 0: never wait
	HandshakeWait  time.Duration // of initialize and server/discover; 0: never wait
	ListChanged    ListChanged
	MetaTools      MetaTools
	MetaToolsAbove int // entries above which MetaTools.Auto lists Goblin's tools
	Roots          []Root
	Pin            Pin
	Linger         time.Duration // 0: exit with the last session
	Remember       time.Duration // lifetime of cached lists; 0 disables the cache
	Start          Start         // default for servers
	IdleTimeout    time.Duration // default for servers
	Limits         Limits
}

// ListChanged selects the list_changed notifications that Goblin honors.
type ListChanged struct{ Tools, Prompts, Resources bool }

// Root is a root for servers when no client can be asked.
type Root struct{ URI, Name string }

// Limits limits what one client or server can cost.
type Limits struct {
	Frame    int64 // bytes of one JSON-RPC message
	InFlight int   // requests per server connection
	Unsent   int64 // unsent bytes per client before its requests wait
	Sessions int   // concurrent, for the socket and HTTP separately
	Projects int   // processes of servers with isolation: project
	Pages    int   // of one list
	Entries  int   // of one list
	Depth    int   // nesting of arrays and objects in one message
}

// Lua limits one run of a Lua program.
type Lua struct {
	Timeout time.Duration
	Memory  int64 // bytes
	Calls   int   // of tools, prompts and resources
	Output  int64 // bytes
}

// Search configures tool search.
type Search struct {
	Embeddings string // URL of an OpenAI-compatible API; "" means words only
	Model      string
	AuthToken  string // bearer token of the API; optional
}

// Log configures Goblin's own log.
type Log struct {
	Level slog.Level
	File  string // absolute; "" means stderr
}

// TUI configures the UI.
type TUI struct {
	Theme  string                         // auto, dark, light or none
	Colors map[string]termtext.StyleColor // by style; nil if none
	Images string                         // auto, kitty, iterm, sixel, blocks or off
	Keys   map[string][]string            // keys by action, as in registry/keymap; an empty list removes the keys
}

// RootsSource returns Roots or its default. A shared server keeps the roots that it got,
// so by default no client may set them.
func (s *Server) RootsSource() RootsFrom {
	switch {
	case s.Roots != "":
		return s.Roots
	case s.Isolation == PerSession, s.Isolation == PerProject:
		return ClientRoots
	}
	return ConfigRoots
}

// Server returns the server with the given name.
func (c *Config) Server(name string) (*Server, bool) {
	i := slices.IndexFunc(c.Servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return &c.Servers[i], true
}

// Equal reports whether both definitions run the same way, so that a connection need not
// be replaced.
func (s *Server) Equal(o *Server) bool {
	return reflect.DeepEqual(s.normal(), o.normal())
}

// normal returns a copy for Equal, in which a problem has no line, since that depends on
// the text above.
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
	v.FromEnv, v.Variables = nil, nil // the origin of a value does not matter
	v.Overrides = nil                 // only clients see these
	v.Tags = nil                      // only profiles use these
	if v.late != nil {
		v.late = &lateServer{refs: v.late.refs} // without references that are escaped text
	}
	return v
}

// baseEnv lists the variables that every child gets: enough for programs, home and
// locale, without the secrets of a typical shell.
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

// Environ returns the environment of the server's process as sorted "NAME=value" entries.
// Later sources win: FileEnv, inherited variables, Env. The inherited ones are the base
// set and InheritEnv.Names from lookup, or all. The caller usually passes os.LookupEnv
// and os.Environ().
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
