// Package repair fixes definitions that client SDKs would reject.
//
// The official SDKs check a list as a whole: one odd definition costs a client the entries
// of all servers. A definition that all of them accept is returned as it is, the same
// slice, after one pass without allocations. Changes are reported in words that hold
// untrusted text. The input must be valid JSON objects. All functions are pure; the time grows
// with the length of a definition.
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
	JSON []byte // the input itself if nothing was changed for all clients
	// Legacy is for clients of revisions up to 2025-11-25; nil if they get JSON, too.
	Legacy  []byte
	Changes []string // what was changed, at most [MaxChanges] and a count of the others
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
			n.add("outputSchema", "left out for clients up to 2025-11-25")
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

// repairNamed repairs a definition that needs a name. A missing name is derived from the member at.
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
// its query and fragment; all of it if nothing does.
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

// Member repairs the value of an optional member of a resource, such as "icons". Results have
// such members, too. keep is false for a value that must be left out. A healthy value, and
// that of an unknown member, is returned as the same slice.
func Member(name string, v []byte) (out []byte, keep bool) {
	i := resource.memberIndex(rawjson.Key(`"` + name + `"`))
	if i < 0 {
		return v, true
	}
	return resource.members[i].repairValue(v, "", new(changeLog))
}

// changeLog collects the changes of one definition, up to a limit.
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

// texts returns the changes, and the number of those that are left out.
func (n *changeLog) texts() []string {
	if n.omitted > 0 {
		return append(n.list, fmt.Sprintf("and %d more", n.omitted))
	}
	return n.list
}

// maxShown bounds what is shown of a value or a name, in bytes.
const maxShown = 60

func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}

// memberPath returns the path of a member.
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
