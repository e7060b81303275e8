// Package candidate describes servers that can be added to the config.
//
// Its texts come from registries and from files of clients. They are untrusted and not
// escaped.
package candidate

import "time"

// Server is a server that can be added.
type Server struct {
	// Name is a name that is free in the config.
	Name string
	// Origin is the name in the registry, or the clients that have the server.
	Origin                      string
	Title, Description, Version string
	Link                        string // page of the source, or ""
	Deprecated                  bool
	Choices                     []Choice // of a registry's server
	// Entry is complete for a client's server, nil for a registry's one.
	Entry *Definition
	Notes []string
	// Present reports whether the config has the server already.
	Present bool
}

// Choice is one way to run or reach a server: a package or a URL.
type Choice struct {
	Kind    string // npm, pypi, oci, nuget, mcpb, http, sse, or the registry's own word
	Summary string // the package or the URL
	Problem string // why it cannot be added, or ""
	Missing string // the program that is not installed, or ""

	Variables []Variable
	// Build returns the entry for a name and answers by [Variable.Key]. It does no I/O.
	Build func(name string, answers map[string][]string) (*Definition, error)
}

// Variable is a value that the user can set.
type Variable struct {
	Key         string // key of its answer
	Description string
	Required    bool
	Secret      bool
	Format      string // string, number, boolean or filepath
	Default     string
	Placeholder string
	Choices     []string
	Min, Max    *float64 // of a number; nil is no limit
	Repeated    bool     // takes several answers
}

// Definition is a new entry of the config.
type Definition struct {
	Name    string
	Comment string         // above the entry, or ""
	Keys    map[string]any // command, args, env, url, headers, …
	Secrets []Secret       // referenced by Keys as ${keyring:NAME}
}

// Secret is a value to store outside the config.
type Secret struct{ Name, Value string }

// SearchResult is the result of a search in a registry.
type SearchResult struct {
	Registry string // its URL
	Servers  []Server
	HasMore  bool
	Invalid  int // number of skipped invalid entries
	// Cached is the time of an old answer that replaced an unreachable registry, or zero.
	Cached time.Time
}

// ClientServers are the servers in the config files of clients.
type ClientServers struct {
	Servers  []Server
	Problems []string // files that cannot be read
}
