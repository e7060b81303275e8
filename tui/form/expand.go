package form

import (
	"encoding/json"
	"slices"
	"strings"

	"goblin/registry/rawjson"
)

const (
	maxExpanded = 256 << 10 // bytes of all schemas that are shown
	maxNested   = 8         // how deep references are put in
)

// expand puts what references point at in their places, so that a schema can
// be read by itself. Circles, other documents and what goes too deep stay
// references. within are the references that raw stands in.
func (r *resolver) expand(raw json.RawMessage, within []string) json.RawMessage {
	if r.room -= len(raw); r.room < 0 {
		return raw
	}
	if rawjson.IsArray(raw) {
		var out [][]byte
		for item := range rawjson.Elements(raw) {
			out = append(out, r.expand(item, within))
		}
		return rawjson.Array(out)
	}
	list, ok := membersOf(raw, maxMembers)
	if !ok {
		return raw
	}
	list, within = r.inline(list, within)
	for i, m := range list {
		list[i].value = r.expand(m.value, within)
	}
	return objectOf(list)
}

// inline replaces "$ref" by the members of what it points at; those that stand
// beside it win.
func (r *resolver) inline(list []member, within []string) ([]member, []string) {
	at := slices.IndexFunc(list, func(m member) bool { return m.name == "$ref" })
	if at < 0 {
		return list, within
	}
	ref := stringOf(list[at].value)
	pointer, local := strings.CutPrefix(ref, "#/")
	if !local || len(within) >= maxNested || slices.Contains(within, ref) || r.lookup(ref) == nil {
		return list, within
	}
	target, ok := membersOf(r.texts[pointer], maxMembers)
	if !ok {
		return list, within
	}
	out := slices.Delete(slices.Clone(list), at, at+1)
	for _, m := range target {
		if !slices.ContainsFunc(list, func(have member) bool { return have.name == m.name }) || m.name == "$ref" {
			out = append(out, m)
		}
	}
	return out, append(slices.Clone(within), ref)
}
