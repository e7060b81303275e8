package dialog

import (
	"encoding/json"

	"goblin/registry"
)

// toolHints are the annotations of a tool; nil means absent.
type toolHints struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  *bool `json:"idempotentHint"`
	OpenWorld   *bool `json:"openWorldHint"`
}

// ToolHints returns the annotations of a tool.
func ToolHints(e *registry.Entry) toolHints {
	var d struct {
		Annotations toolHints `json:"annotations"`
	}
	_ = json.Unmarshal(e.JSON(), &d) // invalid annotations count as absent
	return d.Annotations
}

// isDestructive reports whether a tool declares itself destructive. Absent hints don't
// count, unlike in the protocol: most tools have none, and the user already filled in a
// form.
func isDestructive(e *registry.Entry) bool {
	h := ToolHints(e)
	return h.Destructive != nil && *h.Destructive && (h.ReadOnly == nil || !*h.ReadOnly)
}

// isRepeatable reports whether a tool declares repeated calls harmless.
func isRepeatable(e *registry.Entry) bool {
	h := ToolHints(e)
	if h.ReadOnly != nil && *h.ReadOnly {
		return true
	}
	return !isDestructive(e) && h.Idempotent != nil && *h.Idempotent
}
