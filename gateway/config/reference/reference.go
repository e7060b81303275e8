// Package reference lists the keys of the config, from the schema of the parser.
//
// It finds the lines where a config sets them. It must not depend on the UI.
package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"goblin/gateway/config"
	"goblin/registry/report"
)

// schema is the part of the schema that describes keys.
type schema struct {
	Type                 any
	Enum                 []any
	AnyOf                []schema
	Items                *schema
	Properties           map[string]schema
	AdditionalProperties json.RawMessage
	Ref                  string `json:"$ref"`
	Default              any
	Description          string
	Examples             []string
	Minimum, Maximum     json.Number
	Pattern              string
	Defs                 map[string]schema `json:"$defs"`
}

// Keys returns all keys, each map before its keys. In values and texts, code has
// backquotes.
func Keys() []report.ConfigKey {
	var s schema
	in := json.NewDecoder(bytes.NewReader(config.Schema()))
	in.UseNumber()
	if err := in.Decode(&s); err != nil {
		panic("config: schema: " + err.Error()) // impossible: it was just encoded
	}
	var all []report.ConfigKey
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		key := s.Properties[name]
		if name == "servers" {
			key.AdditionalProperties, _ = json.Marshal(struct { // such a type always encodes
				Properties map[string]schema
			}{s.Defs["server"].Properties})
		}
		all = append(all, key.list(name)...)
	}
	return all
}

// list returns a key and the keys of the maps and lists in it.
func (s schema) list(path string) []report.ConfigKey {
	all := append([]report.ConfigKey{s.describe(path)}, s.inner(path)...)
	for _, form := range s.AnyOf { // such as a mapping instead of true
		all = append(all, form.inner(path)...)
	}
	return all
}

func (s schema) inner(path string) (all []report.ConfigKey) {
	add := func(prefix string, keys map[string]schema) {
		for _, name := range slices.Sorted(maps.Keys(keys)) {
			all = append(all, keys[name].list(prefix+name)...)
		}
	}
	add(path+".", s.Properties)
	if each := s.each(); each != nil {
		add(path+".NAME.", each.Properties)
	}
	if s.Items != nil {
		add(path+"[].", s.Items.Properties)
	}
	return all
}

// each returns the schema of the values of a map, or nil.
func (s schema) each() *schema {
	if len(s.AdditionalProperties) == 0 || s.AdditionalProperties[0] != '{' {
		return nil
	}
	var each schema
	in := json.NewDecoder(bytes.NewReader(s.AdditionalProperties))
	in.UseNumber()
	_ = in.Decode(&each) // it is part of a valid schema
	return &each
}

func (s schema) describe(path string) report.ConfigKey {
	k := report.ConfigKey{Path: path, Text: s.Description, Values: s.values()}
	if s.Default != nil {
		k.Default = fmt.Sprint(s.Default)
	}
	k.Example = example(path, k.Default, k.Values)
	return k
}

// example returns lines of a config with a key.
func example(path, value, values string) string {
	first, _, _ := strings.Cut(values, ", ")
	switch {
	case value != "":
	case strings.HasPrefix(first, "`"):
		value = strings.Trim(first, "`")
	case first == "list", first == "list of maps":
		value = "[]"
	case first == "map":
		value = "{}"
	case first == "duration":
		value = "30s"
	case first == "size":
		value = "1MiB"
	default:
		value = `""`
	}
	var b strings.Builder
	indent := ""
	parts := strings.Split(path, ".")
	for i, part := range parts {
		name, item := strings.CutSuffix(part, "[]")
		switch {
		case i == len(parts)-1:
			fmt.Fprintf(&b, "%s%s: %s\n", indent, name, value)
		case item:
			fmt.Fprintf(&b, "%s%s:\n%s  - ", indent, name, indent)
			indent += "    "
			continue
		default:
			fmt.Fprintf(&b, "%s%s:\n", indent, name)
			indent += "  "
		}
	}
	// The first key of a list item follows its dash.
	return strings.ReplaceAll(b.String(), "- "+strings.Repeat(" ", 4), "- ")
}

// values describes the valid values of a key.
func (s schema) values() string {
	var all []string
	for _, v := range s.Enum {
		if v != false { // another spelling of false
			all = append(all, fmt.Sprintf("`%v`", v))
		}
	}
	size := slices.ContainsFunc(s.AnyOf, func(a schema) bool { return slices.Contains(a.Examples, "64KiB") })
	for _, a := range s.AnyOf {
		if variable := a.Pattern == `\$\{`; variable || size && a.isType("integer") {
			continue
		}
		all = append(all, a.values())
	}
	if len(all) > 0 {
		return strings.Join(all, ", ")
	}
	return s.scalar()
}

// scalar describes the valid values of a key without a choice.
func (s schema) scalar() string {
	switch {
	case slices.Contains(s.Examples, "64KiB"):
		return "size"
	case slices.Contains(s.Examples, "30s"):
		all := "duration"
		if strings.Contains(s.Pattern, "^off$") {
			all += ", `off`"
		}
		if s.isType("integer") {
			all += ", `0`"
		}
		return all
	case strings.HasSuffix(s.Pattern, `d|off)$|\$\{`):
		return "days, `off`"
	case s.isType("boolean") && !s.isType("string"):
		return "`true`, `false`"
	case s.isType("array"):
		if s.Items != nil && len(s.Items.Properties) > 0 {
			return "list of maps"
		}
		return "list"
	case s.isType("object"):
		return "map"
	case (s.isType("integer") || s.isType("number")) && !s.isType("string"):
		return fmt.Sprintf("%s to %s", s.Minimum, s.Maximum)
	}
	return "text"
}

func (s schema) isType(name string) bool {
	if list, ok := s.Type.([]any); ok {
		return slices.Contains(list, any(name))
	}
	return s.Type == name
}
