package recording

import (
	"encoding/json"
	"slices"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// Limits of the definitions that are kept of one recording.
const (
	MaxDefinitions     = 1_000_000
	maxDefinitionBytes = 256 << 20
)

// definitionSize is the size of all definitions of some lists.
type definitionSize struct{ count, bytes int }

// Keep returns the first definitions of a list that fit the limits, beside all other kept
// lists. The list replaces the earlier one of the same name. [Reader.Problems] reports
// omitted definitions, once per server.
func (r *Reader) Keep(server, list string, definitions []json.RawMessage) []json.RawMessage {
	if r.kept == nil {
		r.kept, r.omitted = make(map[[2]string]definitionSize), make(map[string]bool)
	}
	key := [2]string{server, list}
	r.all.count -= r.kept[key].count
	r.all.bytes -= r.kept[key].bytes
	var size definitionSize
	for i, d := range definitions {
		if r.all.count+size.count < MaxDefinitions && r.all.bytes+size.bytes+len(d) <= maxDefinitionBytes {
			size.count++
			size.bytes += len(d)
			continue
		}
		if !r.omitted[server] {
			r.omitted[server] = true
			r.problem("lists of server %q: the recording has more than %s definitions or %s of them; the rest is omitted",
				server, termtext.FormatCount(MaxDefinitions), termtext.Size(maxDefinitionBytes))
		}
		definitions = slices.Clone(definitions[:i]) // frees the rest
		break
	}
	r.kept[key] = size
	r.all.count += size.count
	r.all.bytes += size.bytes
	return definitions
}

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
