package registry

import (
	"bytes"
	"log/slog"

	"goblin/registry/definition"
	"goblin/registry/rawjson"
)

// Kind reports which of the MCP lists something belongs to.
type Kind uint8

// The kinds, in the order of their arrays' indices.
const (
	Tool Kind = iota
	Prompt
	Resource
	Template
	Skill
)

// Kinds is the number of kinds: the length of arrays indexed by [Kind].
const Kinds = 5

// String returns "tool", "prompt", "resource", "template" or "skill".
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

// changes is the event bit of the kind's list.
func (k Kind) changes() Changes { return 1 << k }

// Local is the name of the server that Goblin's own tools and resources
// belong to. No configured server may have it.
const Local = "goblin"

// Entry is one listed thing. It is immutable: neither the fields nor the
// bytes they point to may be changed.
type Entry struct {
	Kind   Kind
	Server string // config name of the server, or [Local]
	Name   string // as the server spells it: tool or prompt name, URI, URI template
	Listed string // as clients see it
	// Flat is the flat id of a resource, with its "~" tail where the plain
	// one is not enough. Empty for other kinds.
	Flat        string
	Label       string // the definition's "name" member
	Title       string // "title", for tools also annotations.title
	Description string
	MIME        string // "mimeType"
	Size        int64  // "size" in bytes, -1 when absent
	// Original is the definition as the server sent it. Set for tools and skills, whose
	// definitions get compared over time, and for what is overridden or repaired.
	Original []byte
	// Override tells which parts the config replaces for clients, nil for none. Then
	// Original is set.
	Override *definition.AppliedOverride
	// TaskOnly says that a tool runs as a task only: its "execution.taskSupport" is
	// "required" (2025-11-25, tasks).
	TaskOnly  bool
	json      []byte
	repaired  *repairedDefinition // nil if it is as the server sent it
	respelled bool                // json has another name than Listed
	suffixLen uint8               // bytes of the suffix that Flat ends with
}

// JSON returns the definition as clients get it: the server's own bytes with the rename spliced
// in (of tools also _meta.ui.resourceUri), in one line.
func (e *Entry) JSON() []byte { return e.spelled(e.json) }

// LegacyJSON returns the definition as clients of revisions up to 2025-11-25 get it.
func (e *Entry) LegacyJSON() []byte {
	if e.repaired == nil || e.repaired.legacy == nil {
		return e.JSON()
	}
	return e.spelled(e.repaired.legacy)
}

// Changes returns how the definition was repaired to satisfy client SDKs, or nil if it was
// not.
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

// JSONLen returns how many bytes JSON has.
func (e *Entry) JSONLen() int {
	if !e.respelled {
		return len(e.json)
	}
	var room [256]byte
	return len(e.json) - len(rawjson.Get(e.json, nameMember(e.Kind))) + len(rawjson.AppendString(room[:0], e.Listed))
}

// looksLike reports whether clients see no difference between two entries of a kind.
func (e *Entry) looksLike(o *Entry) bool {
	return e.Listed == o.Listed && e.respelled == o.respelled && bytes.Equal(e.json, o.json) ||
		(e.respelled || o.respelled) && bytes.Equal(e.JSON(), o.JSON())
}

// ClientName is the name of a tool or prompt as clients know it, without its server's.
func (e *Entry) ClientName() string {
	if e.Override != nil && e.Override.Name != "" {
		return e.Override.Name
	}
	return e.Name
}

// Problem is something odd about a server's list that a user may want to
// know: a dropped entry, a collision, a name that needed a tail.
type Problem struct {
	Level  slog.Level // Warn when something was dropped, Info when only renamed
	Kind   Kind
	Server string
	Name   string // original name if it could be read
	Text   string // what happened, without the name
}
