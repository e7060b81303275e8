package config_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

// keySchema is the part of the schema that the reference shows.
type keySchema struct {
	Type                 any
	Enum                 []any
	AnyOf                []keySchema
	Items                *keySchema
	Properties           map[string]keySchema
	AdditionalProperties json.RawMessage
	Ref                  string `json:"$ref"`
	Default              any
	Description          string
	Examples             []string
	Minimum, Maximum     json.Number
	Pattern              string
	Defs                 map[string]keySchema `json:"$defs"`
}

// The key reference lists the keys of the schema, and thereby of the parser.
func TestKeyReferenceIsCurrent(t *testing.T) {
	const file = "KEYS.md"
	var s keySchema
	in := json.NewDecoder(strings.NewReader(string(config.Schema())))
	in.UseNumber()
	require.NoError(t, in.Decode(&s))
	var b strings.Builder
	b.WriteString("# Config keys\n\nThis file is made from the table that the parser uses: `go generate ./gateway/config`.\n" +
		"[README.md](README.md) explains the keys. `NAME` stands for a name that you choose, `[]` for each entry of a list.\n")
	section := func(title string, rows []string) {
		fmt.Fprintf(&b, "\n## %s\n\n| key | values | default | meaning |\n|---|---|---|---|\n%s", title, strings.Join(rows, ""))
	}
	var top []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		top = append(top, row(name, s.Properties[name]))
	}
	section("Top level", top)
	section("`servers.NAME`", rows(t, "", s.Defs["server"]))
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		key := s.Properties[name]
		title := "`" + name + "`"
		if each := key.each(t); each != nil && len(each.Properties) > 0 {
			key, title = *each, "`"+name+".NAME`"
		}
		if key.Items != nil && len(key.Items.Properties) > 0 {
			key, title = *key.Items, "`"+name+"[]`"
		}
		for _, form := range key.AnyOf { // such as a mapping instead of true
			if len(form.Properties) > 0 {
				key = form
			}
		}
		if len(key.Properties) > 0 {
			section(title, rows(t, "", key))
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, b.String() == string(text), "%s is not current: run go generate ./gateway/config", file)
}

// each returns the schema of the values of a map, or nil.
func (s keySchema) each(t *testing.T) *keySchema {
	if len(s.AdditionalProperties) == 0 || s.AdditionalProperties[0] != '{' {
		return nil
	}
	var each keySchema
	require.NoError(t, json.Unmarshal(s.AdditionalProperties, &each))
	return &each
}

// rows returns a row for each key of a map and of the maps and lists in it.
func rows(t *testing.T, prefix string, s keySchema) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		key := s.Properties[name]
		all = append(all, row(prefix+name, key))
		for _, inner := range append([]keySchema{key}, key.AnyOf...) {
			all = append(all, rows(t, prefix+name+".", inner)...)
		}
		if each := key.each(t); each != nil {
			all = append(all, rows(t, prefix+name+".NAME.", *each)...)
		}
		if key.Items != nil {
			all = append(all, rows(t, prefix+name+"[].", *key.Items)...)
		}
	}
	return all
}

// markdown escapes special characters of Markdown tables, except in code.
var markdown = strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;", `\`, `\\`)

func row(name string, s keySchema) string {
	value := ""
	if s.Default != nil {
		value = fmt.Sprintf("`%v`", s.Default)
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, s.values(), value, markdown.Replace(s.Description))
}

// values describes the valid values of a key.
func (s keySchema) values() string {
	var all []string
	for _, v := range s.Enum {
		if v != false { // another spelling of false
			all = append(all, fmt.Sprintf("`%v`", v))
		}
	}
	size := slices.ContainsFunc(s.AnyOf, func(a keySchema) bool { return slices.Contains(a.Examples, "64KiB") })
	for _, a := range s.AnyOf {
		if variable := a.Pattern == `\$\{`; variable || size && a.isType("integer") {
			continue
		}
		all = append(all, a.values())
	}
	switch {
	case len(all) > 0:
	case slices.Contains(s.Examples, "64KiB"):
		return "size"
	case slices.Contains(s.Examples, "30s"):
		all = append(all, "duration")
		if strings.Contains(s.Pattern, "^off$") {
			all = append(all, "`off`")
		}
		if s.isType("integer") {
			all = append(all, "`0`")
		}
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
	default:
		return "text"
	}
	return strings.Join(all, ", ")
}

func (s keySchema) isType(name string) bool {
	if list, ok := s.Type.([]any); ok {
		return slices.Contains(list, any(name))
	}
	return s.Type == name
}
