package definition

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"goblin/registry/rawjson"
)

// Limits of [Meaning].
const (
	maxMeanings  = 20
	maxValueText = 60        // bytes of a name or value in a line
	maxCanonical = 256 << 10 // bytes of a definition that is compared by value
)

// equal reports whether two definitions differ at most in the order of members, spaces and
// escapes. Definitions over 256 KiB are compared by their bytes.
func equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if len(a) > maxCanonical || len(b) > maxCanonical {
		return false
	}
	return bytes.Equal(rawjson.AppendCanonical(nil, a), rawjson.AppendCanonical(nil, b))
}

// Meaning describes the difference of two valid definitions in short lines, such as
// `argument "y" is now required`. kind is "tool", "prompt", "resource", "template" or
// "skill". It returns nil if they are [equal], and about 20 lines at most. Names and values
// in them are untrusted, but contain no control characters.
func Meaning(kind string, before, after []byte) []string {
	if equal(before, after) {
		return nil
	}
	m := meaning{kind: kind}
	m.members(before, after)
	if len(m.lines) == 0 {
		return []string{"definition changed"}
	}
	if more := len(m.lines) - maxMeanings; more > 0 {
		m.lines = append(m.lines[:maxMeanings], fmt.Sprintf("%d more changes", more))
	}
	return m.lines
}

type meaning struct {
	kind  string
	lines []string
}

func (m *meaning) add(format string, args ...any) {
	m.lines = append(m.lines, fmt.Sprintf(format, args...))
}

// memberTexts are the members that are reported by name only.
var memberTexts = map[string]string{
	"title": "title", "description": "description", "name": "name", "icons": "icons", "_meta": "metadata",
	"execution": "task support", "inputSchema": "input schema", "outputSchema": "output schema", "arguments": "arguments",
	"annotations": "annotations", "frontmatter": "front matter",
}

func (m *meaning) members(before, after []byte) {
	for _, name := range memberNames(before, after) {
		a, b := rawjson.Get(before, name), rawjson.Get(after, name)
		if a != nil && b != nil && equal(a, b) {
			continue
		}
		count := len(m.lines)
		switch {
		case name == "inputSchema":
			m.fields("argument", SchemaFields(before, name), SchemaFields(after, name))
		case name == "arguments" && m.kind == "prompt":
			m.fields("argument", PromptFields(before), PromptFields(after))
		case name == "annotations" && m.kind == "tool":
			m.hints(a, b)
		case name == "frontmatter" && m.kind == "skill":
			m.members(a, b)
		case name == "mimeType":
			m.value("MIME type", a, b)
		case name == "size":
			m.value("size", a, b)
		}
		if len(m.lines) > count {
			continue
		}
		text := memberTexts[name]
		if text == "" {
			text = quoted(name)
		}
		m.add("%s %s", text, verb(a, b))
	}
}

func verb(before, after []byte) string {
	switch {
	case before == nil:
		return "added"
	case after == nil:
		return "removed"
	}
	return "changed"
}

// memberNames returns the names in both objects, in the order of the definitions.
func memberNames(objects ...[]byte) (all []string) {
	known := make(map[string]bool)
	for _, object := range objects {
		for key := range rawjson.Members(object) {
			name := string(key.Name())
			if !known[name] && len(all) < maxFields {
				known[name] = true
				all = append(all, name)
			}
		}
	}
	return all
}

func (m *meaning) value(what string, before, after []byte) {
	if before == nil || after == nil {
		value := before
		if before == nil {
			value = after
		}
		m.add("%s %s %s", what, shown(value), verb(before, after))
		return
	}
	m.add("%s changed from %s to %s", what, shown(before), shown(after))
}

// hints compares annotations of a tool with the defaults of the protocol.
func (m *meaning) hints(before, after []byte) {
	effective := func(annotations []byte, name string, otherwise bool) bool {
		switch string(rawjson.Get(annotations, name)) {
		case "true":
			return true
		case "false":
			return false
		}
		return otherwise
	}
	wasReadOnly, readOnly := effective(before, "readOnlyHint", false), effective(after, "readOnlyHint", false)
	m.hint("read-only", wasReadOnly, readOnly)
	m.hint("destructive", !wasReadOnly && effective(before, "destructiveHint", true), !readOnly && effective(after, "destructiveHint", true))
	m.hint("idempotent", effective(before, "idempotentHint", false), effective(after, "idempotentHint", false))
	m.hint("open world", effective(before, "openWorldHint", true), effective(after, "openWorldHint", true))
	if a, b := rawjson.Get(before, "title"), rawjson.Get(after, "title"); !bytes.Equal(a, b) {
		m.add("title %s", verb(a, b))
	}
}

func (m *meaning) hint(name string, before, after bool) {
	switch {
	case after && !before:
		m.add("now %s", name)
	case before && !after:
		m.add("no longer %s", name)
	}
}

// fields compares the arguments of a tool or prompt. Members of an added or removed
// argument are not reported.
func (m *meaning) fields(what string, before, after []Field) {
	was := make(map[string]*Field, len(before))
	for i := range before {
		was[before[i].Name] = &before[i]
	}
	is := make(map[string]bool, len(after))
	parent := ""
	for i := range after {
		f := &after[i]
		is[f.Name] = true
		switch old := was[f.Name]; {
		case old != nil:
			m.field(what, old, f)
		case parent != "" && isNested(f.Name, parent):
		default:
			parent = f.Name
			suffix := ""
			if f.Required {
				suffix = ", required"
			}
			m.add("%s %s added%s", what, quoted(f.Name), suffix)
		}
	}
	parent = ""
	for i := range before {
		name := before[i].Name
		if is[name] || parent != "" && isNested(name, parent) {
			continue
		}
		parent = name
		m.add("%s %s removed", what, quoted(name))
	}
}

func isNested(name, parent string) bool {
	rest, ok := strings.CutPrefix(name, parent)
	return ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "[]."))
}

func (m *meaning) field(what string, before, after *Field) {
	name := quoted(after.Name)
	switch {
	case after.Required && !before.Required:
		m.add("%s %s is now required", what, name)
	case before.Required && !after.Required:
		m.add("%s %s is no longer required", what, name)
	}
	if before.Type != after.Type {
		m.add("type of %s %s changed from %s to %s", what, name, shown([]byte(before.Type)), shown([]byte(after.Type)))
	}
	m.notes(fmt.Sprintf("%s %s", what, name), before.Notes, after.Notes)
	if before.Description != after.Description {
		m.add("description of %s %s changed", what, name)
	}
}

var noteLabels = []struct{ prefix, name string }{
	{"one of ", "allowed values"},
	{"always ", "constant"},
	{"default ", "default"},
	{"format ", "format"},
	{"pattern ", "pattern"},
	{"minimum length ", "minimum length"},
	{"maximum length ", "maximum length"},
	{"minimum items ", "minimum items"},
	{"maximum items ", "maximum items"},
	{"minimum ", "minimum"},
	{"maximum ", "maximum"},
}

func (m *meaning) notes(of string, before, after []string) {
	rest := [2][]string{slices.Clone(before), slices.Clone(after)}
	for _, label := range noteLabels {
		var values [2]string
		var found [2]bool
		for side := range rest {
			i := slices.IndexFunc(rest[side], func(note string) bool { return strings.HasPrefix(note, label.prefix) })
			if i >= 0 {
				values[side], found[side] = rest[side][i][len(label.prefix):], true
				rest[side] = slices.Delete(rest[side], i, i+1)
			}
		}
		switch {
		case found[0] && found[1] && values[0] != values[1]:
			m.add("%s of %s changed from %s to %s", label.name, of, shown([]byte(values[0])), shown([]byte(values[1])))
		case found[0] && !found[1]:
			m.add("%s of %s removed", label.name, of)
		case found[1] && !found[0]:
			m.add("%s of %s added: %s", label.name, of, shown([]byte(values[1])))
		}
	}
}

// quoted returns a short name in quotes, without control characters.
func quoted(name string) string { return strconv.Quote(cutText(name)) }

// shown returns a short value in one line, without control characters.
func shown(value []byte) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, cutText(string(value)))
}

func cutText(s string) string {
	if len(s) <= maxValueText {
		return s
	}
	return strings.ToValidUTF8(s[:maxValueText], "") + "…"
}
