package recording

import (
	"encoding/json"

	"goblin/registry/rawjson"
)

// Key returns the name or URI that identifies a definition in a list of a server, or "".
func Key(list string, definition []byte) string {
	if !rawjson.IsObject(definition) {
		return ""
	}
	switch list {
	case "resources", "skills":
		return rawjson.GetString(definition, "uri")
	case "templates":
		return rawjson.GetString(definition, "uriTemplate")
	}
	return rawjson.GetString(definition, "name")
}

// Change returns a list after the change of a [TypeList] line: without the removed
// definitions, changed ones in their place, and new ones at the end.
func (l *Line) Change(definitions []json.RawMessage) (all []json.RawMessage) {
	gone := make(map[string]bool, len(l.Removed))
	for _, name := range l.Removed {
		gone[name] = true
	}
	changed := make(map[string]json.RawMessage, len(l.Added))
	for _, d := range l.Added {
		changed[Key(l.List, d)] = d
	}
	for _, d := range definitions {
		key := Key(l.List, d)
		if now, ok := changed[key]; ok {
			all = append(all, now)
			delete(changed, key)
		} else if !gone[key] {
			all = append(all, d)
		}
	}
	for _, d := range l.Added {
		if _, ok := changed[Key(l.List, d)]; ok {
			all = append(all, d)
		}
	}
	return all
}
