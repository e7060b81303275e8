package repair

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"goblin/registry/rawjson"
)

type kind byte

const (
	text kind = iota
	boolean
	number
	object
	array
)

var articles = [...]string{text: "a string", boolean: "a boolean", number: "a number", object: "an object", array: "an array"}

// kindOf returns false for null.
func kindOf(v []byte) (kind, bool) {
	switch v[rawjson.AfterSpace(v, 0)] {
	case '"':
		return text, true
	case 't', 'f':
		return boolean, true
	case '{':
		return object, true
	case '[':
		return array, true
	case 'n':
		return 0, false
	}
	return number, true
}

type shape struct {
	kind          kind
	members       []member // checked members of an object
	values        *shape   // of all members of an object; nil: any
	element       *shape   // of the elements of an array; nil: any
	allOrNothing  bool     // one invalid element invalidates the array
	condition     func([]byte) bool
	conditionText string // condition in words
	// fallback replaces an invalid value. If it is nil or returns nil, the value is
	// removed.
	fallback func([]byte) []byte
}

type member struct {
	name string
	*shape
	defaultValue []byte // added if the member is missing
	required     bool   // without it and defaultValue, the object is invalid
}

func (s *shape) accepts(v []byte) bool {
	if is, ok := kindOf(v); !ok || is != s.kind {
		return false
	}
	if s.condition != nil && !s.condition(v) {
		return false
	}
	switch {
	case s.kind == object && (len(s.members) > 0 || s.values != nil):
		return s.acceptsMembers(v)
	case s.kind == array && s.element != nil:
		for e := range rawjson.Elements(v) {
			if !s.element.accepts(e) {
				return false
			}
		}
	}
	return true
}

func (s *shape) acceptsMembers(v []byte) bool {
	seen := 0
	for k, value := range rawjson.Members(v) {
		if s.values != nil && !s.values.accepts(value) {
			return false
		}
		if i := s.memberIndex(k); i >= 0 {
			seen |= 1 << i
			if !s.members[i].accepts(value) {
				return false
			}
		}
	}
	for i := range s.members {
		if s.members[i].required && seen&(1<<i) == 0 {
			return false
		}
	}
	return true
}

func (s *shape) memberIndex(k rawjson.Key) int {
	name := k.Name()
	for i := range s.members {
		if string(name) == s.members[i].name {
			return i
		}
	}
	return -1
}

// repairObject returns an object that SDKs accept, except for missing required members.
func (s *shape) repairObject(v []byte, n *changeLog) []byte {
	if s.accepts(v) {
		return v
	}
	out, _ := s.repairMembers(v, "", n)
	return out
}

// repairValue returns a replacement for v that SDKs accept. keep is false if there is
// none.
func (s *shape) repairValue(v []byte, path string, n *changeLog) (out []byte, keep bool) {
	if s.accepts(v) {
		return v, true
	}
	is, ok := kindOf(v)
	if !ok || is != s.kind || s.condition != nil && !s.condition(v) || s.allOrNothing {
		if s.fallback != nil {
			if out = s.fallback(v); out != nil {
				n.add(path, fmt.Sprintf("changed to %s: %s", out, s.reason(v)))
				return out, true
			}
		}
		n.add(path, "removed: "+s.reason(v))
		return nil, false
	}
	if s.kind == array {
		return s.repairArray(v, path, n), true
	}
	if out, keep = s.repairMembers(v, path, n); !keep {
		n.add(path, "removed: a required member is missing")
	}
	return out, keep
}

func (s *shape) reason(v []byte) string {
	is, ok := kindOf(v)
	switch {
	case !ok:
		return "null"
	case is != s.kind:
		return "not " + articles[s.kind]
	case s.conditionText != "":
		return "not " + s.conditionText
	}
	return "invalid element"
}

func (s *shape) repairArray(v []byte, path string, n *changeLog) []byte {
	out := []byte{'['}
	i := 0
	for e := range rawjson.Elements(v) {
		if e, keep := s.element.repairValue(e, path+"["+strconv.Itoa(i)+"]", n); keep {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, e...)
		}
		i++
	}
	return append(out, ']')
}

// repairMembers repairs or removes members. complete is false if a required one is
// missing.
func (s *shape) repairMembers(v []byte, path string, n *changeLog) (out []byte, complete bool) {
	seen := 0
	out = rawjson.Filter(v, func(k rawjson.Key, value []byte) ([]byte, bool) {
		keep := true
		if s.values != nil {
			value, keep = s.values.repairValue(value, memberPath(path, k), n)
		}
		if i := s.memberIndex(k); i >= 0 {
			if value, keep = s.members[i].repairValue(value, memberPath(path, k), n); keep {
				seen |= 1 << i
			}
		}
		return value, keep
	})
	complete = true
	for i := range s.members {
		switch m := &s.members[i]; {
		case !m.required || seen&(1<<i) != 0:
		case m.defaultValue == nil:
			complete = false
		default:
			out = rawjson.SetMember(out, m.name, m.defaultValue)
			n.add(memberPath(path, rawjson.Quote(m.name)), fmt.Sprintf("set to %s", m.defaultValue))
		}
	}
	return out, complete
}

func enum(wanted string, all ...string) *shape {
	return &shape{kind: text, conditionText: wanted, condition: func(v []byte) bool {
		for _, w := range all {
			if rawjson.Key(v).Is(w) {
				return true
			}
		}
		return false
	}}
}

func constant(v string) func([]byte) []byte {
	return func([]byte) []byte { return []byte(v) }
}

// The shapes are the union of the checks in the TypeScript SDK from 1.0 to 2.4 and the
// Python SDK. Unnamed members pass.
var (
	textShape    = &shape{kind: text}
	objectShape  = &shape{kind: object}
	textArray    = &shape{kind: array, element: textShape}
	booleanShape = &shape{kind: boolean, fallback: func(v []byte) []byte {
		switch k := rawjson.Key(v); {
		case k.Is("true"), k.Is("True"):
			return []byte("true")
		case k.Is("false"), k.Is("False"):
			return []byte("false")
		}
		return nil
	}}
	sizeShape = &shape{kind: number, conditionText: "an integer", condition: func(v []byte) bool {
		f, err := strconv.ParseFloat(string(v), 64) // fails only out of range
		fits := math.Abs(f) < 1<<63 || !bytes.ContainsAny(v, ".eE")
		return err == nil && f == math.Trunc(f) && fits
	}}
	fractionShape = &shape{kind: number, conditionText: "between 0 and 1", condition: func(v []byte) bool {
		f, err := strconv.ParseFloat(string(v), 64)
		return err == nil && 0 <= f && f <= 1
	}}
	timeShape = &shape{kind: text, conditionText: "a time with an offset, such as 2026-01-31T08:00:00Z", condition: isTime}

	icons = &shape{kind: array, element: &shape{kind: object, members: []member{
		{name: "src", shape: textShape, required: true},
		{name: "mimeType", shape: textShape},
		{name: "sizes", shape: textArray},
		{name: "theme", shape: enum(`"light" or "dark"`, "light", "dark")},
	}}}
	annotations = &shape{kind: object, members: []member{
		{name: "audience", shape: &shape{kind: array, element: enum("", "user", "assistant"), allOrNothing: true}},
		{name: "priority", shape: fractionShape},
		{name: "lastModified", shape: timeShape},
	}}

	// propertyShape is the schema of a property. Older SDKs accept only objects.
	propertyShape = &shape{kind: object, fallback: func(v []byte) []byte {
		if string(v) == "false" {
			return []byte(`{"not":{}}`)
		}
		return []byte("{}")
	}}
	properties = &shape{kind: object, values: propertyShape}
	isObject   = enum(`"object"`, "object")

	inputSchema = &shape{kind: object, fallback: constant(`{"type":"object"}`), members: []member{
		{name: "type", shape: &shape{kind: text, condition: isObject.condition, conditionText: isObject.conditionText, fallback: constant(`"object"`)}, required: true, defaultValue: []byte(`"object"`)},
		{name: "properties", shape: properties},
		{name: "required", shape: textArray},
		{name: "$schema", shape: textShape},
	}}
	// outputSchema is for clients up to 2025-11-25; later ones accept any object.
	outputSchema = &shape{kind: object, members: []member{
		{name: "type", shape: isObject, required: true},
		{name: "properties", shape: properties},
		{name: "required", shape: textArray},
	}}

	tool = &shape{kind: object, members: []member{
		{name: "description", shape: textShape},
		{name: "inputSchema", shape: inputSchema, required: true, defaultValue: []byte(`{"type":"object"}`)},
		{name: "outputSchema", shape: &shape{kind: object, members: []member{{name: "$schema", shape: textShape}}}},
		{name: "title", shape: textShape},
		{name: "annotations", shape: &shape{kind: object, members: []member{
			{name: "title", shape: textShape},
			{name: "readOnlyHint", shape: booleanShape},
			{name: "destructiveHint", shape: booleanShape},
			{name: "idempotentHint", shape: booleanShape},
			{name: "openWorldHint", shape: booleanShape},
		}}},
		{name: "icons", shape: icons},
		{name: "execution", shape: &shape{kind: object, members: []member{
			{name: "taskSupport", shape: enum(`"required", "optional" or "forbidden"`, "required", "optional", "forbidden")},
		}}},
		{name: "_meta", shape: objectShape},
	}}
	prompt = &shape{kind: object, members: []member{
		{name: "description", shape: textShape},
		{name: "title", shape: textShape},
		{name: "arguments", shape: &shape{kind: array, element: &shape{kind: object, members: []member{
			{name: "name", shape: textShape, required: true},
			{name: "title", shape: textShape},
			{name: "description", shape: textShape},
			{name: "required", shape: booleanShape},
		}}}},
		{name: "icons", shape: icons},
		{name: "_meta", shape: objectShape},
	}}
	template = &shape{kind: object, members: []member{
		{name: "name", shape: textShape, required: true},
		{name: "title", shape: textShape},
		{name: "description", shape: textShape},
		{name: "mimeType", shape: textShape},
		{name: "annotations", shape: annotations},
		{name: "icons", shape: icons},
		{name: "_meta", shape: objectShape},
	}}
	resource = &shape{kind: object, members: append([]member{{name: "size", shape: sizeShape}}, template.members...)}
)

// isTime accepts the times that both RFC 3339 and zod's iso.datetime allow.
func isTime(v []byte) bool {
	s, _ := rawjson.String(v)
	if len(s) < len("2006-01-02T15:04:05Z") || s[13] != ':' || s[16] != ':' || s[19] == ',' {
		return false // time.Parse is less strict
	}
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}
