package mcpregistry

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"unicode/utf8"
)

// Entry is a server in a registry: its server.json and its status.
type Entry struct {
	Name        string      `json:"name"` // reverse DNS, a slash and a name
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description"`
	Version     string      `json:"version"`
	Website     string      `json:"websiteUrl,omitempty"`
	Repository  Repository  `json:"repository,omitzero"`
	Packages    []Package   `json:"packages,omitempty"`
	Remotes     []Transport `json:"remotes,omitempty"`
	Status      string      `json:"status,omitempty"` // active, deprecated, deleted or ""
}

// Repository is the location of a server's source.
type Repository struct {
	URL string `json:"url,omitempty"`
}

// Package is a program that is downloaded and run.
type Package struct {
	Type             string     `json:"registryType"` // npm, pypi, oci, nuget, mcpb
	RegistryBaseURL  string     `json:"registryBaseUrl,omitempty"`
	Identifier       string     `json:"identifier"`
	Version          string     `json:"version,omitempty"`
	SHA256           string     `json:"fileSha256,omitempty"`
	Runtime          string     `json:"runtimeHint,omitempty"`
	Transport        Transport  `json:"transport"`
	RuntimeArguments []Argument `json:"runtimeArguments,omitempty"`
	Arguments        []Argument `json:"packageArguments,omitempty"`
	Environment      []KeyValue `json:"environmentVariables,omitempty"`
}

// Transport describes how a server is reached.
type Transport struct {
	Type      string           `json:"type"` // stdio, streamable-http or sse
	URL       string           `json:"url,omitempty"`
	Headers   []KeyValue       `json:"headers,omitempty"`
	Variables map[string]Input `json:"variables,omitempty"`
}

// Input is a fixed value or a value that the user sets.
type Input struct {
	Description string   `json:"description,omitempty"`
	Required    bool     `json:"isRequired,omitempty"`
	Secret      bool     `json:"isSecret,omitempty"`
	Format      string   `json:"format,omitempty"` // string, number, boolean or filepath
	Value       *string  `json:"value,omitempty"`  // fixed, except {variables}
	Default     string   `json:"default,omitempty"`
	Placeholder string   `json:"placeholder,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	Min         *float64 `json:"-"` // of a number; only in bundles
	Max         *float64 `json:"-"`

	Variables map[string]Input `json:"variables,omitempty"` // of Value
}

// Argument is an argument of a command line.
type Argument struct {
	Input
	Type     string `json:"type"` // positional or named
	Name     string `json:"name,omitempty"`
	Hint     string `json:"valueHint,omitempty"`
	Repeated bool   `json:"isRepeated,omitempty"`
}

// KeyValue is an environment variable or a header.
type KeyValue struct {
	Input
	Name string `json:"name"`
}

// Limits of an entry.
const (
	maxEntry = 256 << 10 // bytes
	maxName  = 200       // bytes, from the schema
	maxParts = 200       // packages, remotes, arguments, variables
)

var serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`) })

// official is the _meta key of the official registry and compatible ones.
const official = "io.modelcontextprotocol.registry/official"

func read(raw []byte) (Entry, error) {
	if len(raw) > maxEntry {
		return Entry{}, fmt.Errorf("has %d bytes", len(raw))
	}
	var v struct {
		Server json.RawMessage `json:"server"`
		Meta   map[string]struct {
			Status string `json:"status"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &v); err != nil || v.Server == nil {
		// _meta of other authors may have any form.
		var only struct {
			Server json.RawMessage `json:"server"`
		}
		if json.Unmarshal(raw, &only) != nil || only.Server == nil {
			return Entry{}, errors.New("is not a registry entry")
		}
		v.Server = only.Server
	}
	var e Entry
	if err := json.Unmarshal(v.Server, &e); err != nil {
		return Entry{}, fmt.Errorf("is not a server.json: %w", err)
	}
	if s := v.Meta[official].Status; s != "" {
		e.Status = s
	}
	switch {
	case len(e.Name) > maxName || !serverName().MatchString(e.Name):
		return Entry{}, errors.New("has an invalid name")
	case !utf8.ValidString(e.Description + e.Title + e.Version):
		return Entry{}, errors.New("is not UTF-8")
	case len(e.Packages) > maxParts || len(e.Remotes) > maxParts:
		return Entry{}, errors.New("has too many packages")
	}
	for i := range e.Packages {
		p := &e.Packages[i]
		if len(p.RuntimeArguments)+len(p.Arguments)+len(p.Environment)+len(p.Transport.Headers) > maxParts {
			return Entry{}, errors.New("has too many arguments")
		}
	}
	return e, nil
}
