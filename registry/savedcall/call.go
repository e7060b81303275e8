// Package savedcall defines the format of saved calls: YAML files with checks of the answer.
//
// A file is one call of a tool, a read of a resource or a prompt. README.md is the
// reference of the format. The package has no files, processes or environment: callers
// provide texts, variables and answers.
//
// Files, variables and answers are untrusted: their size, depth and number of parts are
// limited. All functions are pure and safe for concurrent use. Texts of outcomes are safe
// for terminals.
package savedcall

import (
	"encoding/json"
	"time"

	"goblin/registry/rawjson"
)

// Limits of a file.
const (
	MaxFile  = 1 << 20 // bytes
	maxDepth = 100     // nesting of YAML and of values
	maxItems = 100     // checks, and captures
)

// Kind is the kind of a call and its key in the file.
type Kind string

// The values of [Kind].
const (
	KindCall   Kind = "call"   // of a tool
	KindRead   Kind = "read"   // of a resource
	KindPrompt Kind = "prompt" // get a prompt
)

// Method returns the MCP method of a Kind.
func (k Kind) Method() string {
	switch k {
	case KindRead:
		return "resources/read"
	case KindPrompt:
		return "prompts/get"
	}
	return "tools/call"
}

// NameMember returns the member of params with the name or URI.
func (k Kind) NameMember() string {
	if k == KindRead {
		return "uri"
	}
	return "name"
}

// Call is a saved call. Strings may hold variables, see [Call.Resolve].
type Call struct {
	Path        string // of the file, for messages
	Description string
	Kind        Kind
	Name        string // of the tool or prompt, or URI
	// Arguments is a JSON object, or nil.
	Arguments json.RawMessage
	Capture   []Capture
	Expect    []Check
	// Dev marks calls that "goblin dev" runs again after each build.
	Dev  bool
	Line int // of the name, 0 if the call is not from a file

	notes notes // of Arguments
}

// Params returns the params of the request. Variables stay as they are.
func (c *Call) Params() json.RawMessage {
	params := rawjson.Object(c.Kind.NameMember(), c.Name)
	if c.Arguments != nil {
		params = rawjson.SetMember(params, "arguments", c.Arguments)
	}
	return params
}

// Capture is a value of the answer that later files of the folder can use.
type Capture struct {
	Name string
	Path string // JSONPath
	Line int
}

// CheckKind is the kind of a check and its main key in the file.
type CheckKind string

// The values of [CheckKind].
const (
	CheckPath       CheckKind = "path"
	CheckTime       CheckKind = "time"
	CheckSize       CheckKind = "size"
	CheckSchema     CheckKind = "schema"
	CheckDefinition CheckKind = "definition"
	CheckSame       CheckKind = "same"
	// CheckError is the check that an answer is no error. It applies to calls that do not
	// check errors themselves and is never in a file.
	CheckError CheckKind = "error"
)

// Check is an expectation about the answer.
type Check struct {
	Kind CheckKind
	// Path is the JSONPath of CheckPath. One of Equals, Matches and Exists is set.
	Path    string
	Equals  json.RawMessage // strings may hold variables
	Matches string          // regular expression (RE2); may hold variables
	Exists  *bool

	Time       time.Duration
	Size       int64  // bytes
	Definition string // "sha256:" and 64 hex digits
	// Ignore are the JSONPaths that CheckSame excludes.
	Ignore []string
	Line   int

	notes notes // of Equals
}

// note is the place and the quoting of a string in YAML.
type note struct {
	line  int
	plain bool // not quoted
}

// notes are the notes of strings with variables, by JSON pointer.
type notes map[string]note
