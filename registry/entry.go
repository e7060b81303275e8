package registry

import (
	"bytes"
	"log/slog"

	"goblin/registry/definition"
	"goblin/registry/rawjson"
)

// Kind is the kind of an MCP list.
type Kind uint8

// The kinds, also used as array indices.
const (
	Tool Kind = iota
	Prompt
	Resource
	Template
	Skill
)

// Kinds is the number of kinds, for arrays indexed by [Kind].
const Kinds = 5

func (k Kind) String() string {
	switch k {
	case Tool:
		return "tool"
	case Prompt:
		return "prompt"
	case Resource:
		return "resource"
	case Template:
		return "template"
	case Skill:
		return "skill"
	}
	return "unknown"
}

func (k Kind) changes() Changes { return 1 << k }

// Local is the reserved server name of Goblin's own tools and resources.
const Local = "goblin"

// Entry is a listed tool, prompt, resource, template or skill. Callers must not change
// its fields or the bytes they point to.
type Entry struct {
	Kind   Kind
	Server string // config name of the server, or [Local]
	Name   string // the server's own: tool or prompt name, URI, URI template
	Listed string // as clients see it
	// Flat is the flat id of a resource, with a "~" suffix if the plain id is not unique.
	// It is empty for other kinds.
	Flat        string
	Label       string // the definition's "name" member
	Title       string // "title", for tools also annotations.title
	Description string
	MIME        string // "mimeType"
	Size        int64  // "size" in bytes, -1 if missing
	// Original is the definition as the server sent it. It is set for tools and skills,
	// which are compared over time, and for overridden or repaired entries.
	Original []byte
	// Override describes the parts that the config replaces, or is nil.
	Override *definition.AppliedOverride
	// TaskOnly reports that "execution.taskSupport" is "required" (2025-11-25, tasks).
	TaskOnly  bool
	json      []byte
	repaired  *repairedDefinition // nil if not repaired
	respelled bool                // json has a name other than Listed
	suffixLen uint8               // bytes of the suffix of Flat
}

// JSON returns the definition for clients in one line: the server's own bytes with the
// listed name inserted (for tools also _meta.ui.resourceUri).
func (e *Entry) JSON() []byte { return e.spelled(e.json) }

// LegacyJSON returns the definition for clients with protocol 2025-11-25 or older.
func (e *Entry) LegacyJSON() []byte {
	if e.repaired == nil || e.repaired.legacy == nil {
		return e.JSON()
	}
	return e.spelled(e.repaired.legacy)
}

// Changes returns the repairs for client SDKs, or nil.
func (e *Entry) Changes() []string {
	if e.repaired == nil {
		return nil
	}
	return e.repaired.changes
}

func (e *Entry) definition(legacy bool) []byte {
	if legacy {
		return e.LegacyJSON()
	}
	return e.JSON()
}

func (e *Entry) spelled(definition []byte) []byte {
	if !e.respelled {
		return definition
	}
	return rawjson.SetMember(definition, nameMember(e.Kind), rawjson.Quote(e.Listed))
}

// JSONLen returns the length of JSON in bytes.
func (e *Entry) JSONLen() int {
	if !e.respelled {
		return len(e.json)
	}
	var room [256]byte
	return len(e.json) - len(rawjson.Get(e.json, nameMember(e.Kind))) + len(rawjson.AppendString(room[:0], e.Listed))
}

// Own returns the definition as the server sent it.
func (e *Entry) Own() []byte {
	if e.Original != nil {
		return e.Original
	}
	return rawjson.SetMember(e.json, nameMember(e.Kind), rawjson.Quote(e.Name))
}

func (e *Entry) looksLike(o *Entry) bool {
	return e.Listed == o.Listed && e.respelled == o.respelled && bytes.Equal(e.json, o.json) ||
		(e.respelled || o.respelled) && bytes.Equal(e.JSON(), o.JSON())
}

// ClientName returns the name of a tool or prompt for clients, without its server's
// prefix.
func (e *Entry) ClientName() string {
	if e.Override != nil && e.Override.Name != "" {
		return e.Override.Name
	}
	return e.Name
}

// Problem is a finding about a server's list: a dropped entry, a collision, a suffixed
// name.
type Problem struct {
	Level  slog.Level // Warn if an entry was dropped, Info if renamed
	Kind   Kind
	Server string
	Name   string // original name, if readable
	Text   string // what happened, without the name
}
