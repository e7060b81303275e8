// Package repair fixes definitions that client SDKs would reject.
//
// The official SDKs validate a list as a whole: one invalid definition costs a client the
// entries of all servers. Valid definitions are returned as the same slice, after one
// pass without allocations. Descriptions of changes contain untrusted text. The input
// must be valid JSON objects. All functions are pure, and their cost is linear in the
// length of a definition.
package repair

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"goblin/registry/rawjson"
)

// Definition is a definition that client SDKs accept.
type Definition struct {
	JSON []byte // the input slice unless changed for all clients
	// Legacy is for clients up to 2025-11-25, or nil if equal to JSON.
	Legacy  []byte
	Changes []string // at most [MaxChanges] changes, and the number of others
}

// MaxChanges is the maximum number of reported changes of one definition.
const MaxChanges = 10

// Tool repairs the definition of a tool.
func Tool(item []byte) Definition {
	var n changeLog
	d := Definition{JSON: tool.repairObject(item, &n)}
	if out := rawjson.Get(d.JSON, "outputSchema"); out != nil && (!outputSchema.accepts(out) || !SchemaCompiles(out)) {
		fixed, keep := outputSchema.repairValue(out, "", new(changeLog))
		if keep && SchemaCompiles(fixed) {
			d.Legacy = rawjson.Splice(d.JSON, rawjson.ReplaceEdit(d.JSON, out, fixed))
			n.add("outputSchema", "changed for clients up to 2025-11-25")
		} else {
			edits, _ := rawjson.DropMembers(d.JSON, d.JSON, func(k rawjson.Key) bool { return k.Is("outputSchema") })
			d.Legacy = rawjson.Splice(d.JSON, edits...)
			n.add("outputSchema", "removed for clients up to 2025-11-25")
		}
	}
	d.Changes = n.texts()
	return d
}

// Prompt repairs the definition of a prompt. The error explains why it cannot be listed.
func Prompt(item []byte) (Definition, error) {
	i := 0
	for argument := range rawjson.Elements(rawjson.Get(item, "arguments")) {
		if !rawjson.IsString(rawjson.Get(argument, "name")) {
			return Definition{}, fmt.Errorf("arguments[%d] has no name", i)
		}
		i++
	}
	var n changeLog
	return Definition{JSON: prompt.repairObject(item, &n), Changes: n.texts()}, nil
}

// Resource repairs the definition of a resource.
func Resource(item []byte) Definition {
	return repairNamed(resource, item, "uri")
}

// Template repairs the definition of a resource template.
func Template(item []byte) Definition {
	return repairNamed(template, item, "uriTemplate")
}

// repairNamed derives a missing name from the member at.
func repairNamed(s *shape, item []byte, at string) Definition {
	if s.accepts(item) {
		return Definition{JSON: item}
	}
	var n changeLog
	if !rawjson.IsString(rawjson.Get(item, "name")) {
		uri := rawjson.GetString(item, at)
		name := LastSegment(uri)
		item = rawjson.SetMember(item, "name", rawjson.Quote(name))
		n.add("name", fmt.Sprintf("set to %q", shorten(name)))
	}
	return Definition{JSON: s.repairObject(item, &n), Changes: n.texts()}
}

// LastSegment returns the part after the last slash of a URI or URI template, without
// query and fragment. It returns the whole URI if that part is empty.
func LastSegment(uri string) string {
	path := uri
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = strings.TrimSuffix(path[:i], "{")
	}
	if last := path[strings.LastIndexByte(path, '/')+1:]; last != "" {
		return last
	}
	return uri
}

// Member repairs the value of an optional member of a resource, such as "icons", or of a
// result. keep is false if the value must be removed. Valid values and unknown members
// are returned as the same slice.
func Member(name string, v []byte) (out []byte, keep bool) {
	i := resource.memberIndex(rawjson.Key(`"` + name + `"`))
	if i < 0 {
		return v, true
	}
	return resource.members[i].repairValue(v, "", new(changeLog))
}

type changeLog struct {
	list    []string
	omitted int
}

func (n *changeLog) add(path, what string) {
	if len(n.list) == MaxChanges {
		n.omitted++
		return
	}
	n.list = append(n.list, path+" "+what)
}

func (n *changeLog) texts() []string {
	if n.omitted > 0 {
		return append(n.list, fmt.Sprintf("and %d more", n.omitted))
	}
	return n.list
}

const maxShown = 60

func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}

func memberPath(path string, k rawjson.Key) string {
	name := shorten(string(k.Name()))
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || r == '.' }) {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}
