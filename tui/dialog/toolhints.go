package dialog

import (
	"encoding/json"

	"goblin/registry"
)

// toolHints are a tool's annotations; absent ones are unknown.
type toolHints struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  *bool `json:"idempotentHint"`
	OpenWorld   *bool `json:"openWorldHint"`
}

// ToolHints reads what a tool says of itself.
func ToolHints(e *registry.Entry) toolHints {
	var d struct {
		Annotations toolHints `json:"annotations"`
	}
	_ = json.Unmarshal(e.JSON(), &d) // an odd annotation costs the letters only
	return d.Annotations
}

// isDestructive reports whether a tool says that it may destroy something. One that
// says nothing does not count, though the protocol would have it so: nearly
// all do, and a form was filled in for it already.
func isDestructive(e *registry.Entry) bool {
	h := ToolHints(e)
	return h.Destructive != nil && *h.Destructive && (h.ReadOnly == nil || !*h.ReadOnly)
}

// isRepeatable reports whether a tool says that calling it again does no harm.
func isRepeatable(e *registry.Entry) bool {
	h := ToolHints(e)
	if h.ReadOnly != nil && *h.ReadOnly {
		return true
	}
	return !isDestructive(e) && h.Idempotent != nil && *h.Idempotent
}
