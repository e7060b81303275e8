package clientconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"goblin/gateway/configedit"
)

func (d *dialect) put(f *configedit.File, name string, entry map[string]any) error {
	switch {
	case d.format == inTOML:
		return d.checked(f, appendTOML(tomlEntry(d.section[0], name, entry)), func(doc map[string]any) {
			all, ok := doc[d.section[0]].(map[string]any)
			if !ok {
				all = map[string]any{}
				doc[d.section[0]] = all
			}
			all[name] = entry
		})
	case d.list:
		return d.checked(f, func(text []byte) ([]byte, error) { return appendListItem(text, d.section[0], entry) }, func(doc map[string]any) {
			all, _ := doc[d.section[0]].([]any)
			doc[d.section[0]] = append(all, entry)
		})
	}
	return f.At(d.section...).Add(configedit.Server{Name: name, Keys: entry})
}

func (d *dialect) drop(f *configedit.File, name string) error {
	without := func(doc map[string]any) { d.delete(doc, name) }
	switch {
	case d.format == inTOML:
		return d.checked(f, func(text []byte) ([]byte, error) { return withoutTable(text, d.section[0], name), nil }, without)
	case d.list:
		return d.checked(f, func(text []byte) ([]byte, error) { return removeListItem(text, d.section[0], name) }, without)
	}
	return f.At(d.section...).Remove(name)
}

// checked fails unless the decoded result equals the decoded original after meaning.
func (d *dialect) checked(f *configedit.File, change func([]byte) ([]byte, error), meaning func(map[string]any)) error {
	return f.Edit(func(text []byte) ([]byte, error) {
		wanted, err := decoded(d, text)
		if err != nil {
			return nil, err
		}
		fresh := len(wanted) == 0
		meaning(wanted)
		changed, err := change(text)
		if err != nil {
			return nil, fmt.Errorf("%s is unchanged: %w", f.Path(), err)
		}
		got, err := decoded(d, changed)
		if err == nil && fresh { // a new file may have required extra keys
			got = map[string]any{d.section[0]: got[d.section[0]]}
		}
		if err != nil || !reflect.DeepEqual(generic(d.tidy(got)), generic(d.tidy(wanted))) {
			return nil, fmt.Errorf("%s cannot be edited safely; change it by hand (goblin install --print)", f.Path())
		}
		return changed, nil
	})
}

// generic returns a value in the types that decoders produce.
func generic(v any) any {
	text, err := yaml.Marshal(v)
	var out any
	if err != nil || yaml.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

func appendTOML(entry string) func([]byte) ([]byte, error) {
	return func(text []byte) ([]byte, error) {
		text = ended(text)
		if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n\n")) {
			text = append(text, '\n')
		}
		return append(text, entry...), nil
	}
}

func ended(text []byte) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return append(text, '\n')
	}
	return text
}

func tomlEntry(section, name string, entry map[string]any) string {
	if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(name) {
		name = quoted(name)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "[%s.%s]\n", section, name)
	for _, key := range inOrder(entry, "command", "args") {
		fmt.Fprintf(&out, "%s = %s\n", key, quoted(entry[key]))
	}
	return out.String()
}

// inOrder returns the keys of an entry: first the given ones, then the others sorted.
func inOrder(entry map[string]any, first ...string) []string {
	keys := slices.DeleteFunc(slices.Clone(first), func(key string) bool { _, ok := entry[key]; return !ok })
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		if !slices.Contains(first, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// quoted escapes TOML texts like JSON texts.
func quoted(v any) string {
	if table, ok := v.(map[string]any); ok {
		var parts []string
		for key, v := range table {
			parts = append(parts, quoted(key)+" = "+quoted(v))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // cannot fail: texts, numbers and lists
	return strings.ReplaceAll(strings.TrimSpace(out.String()), `","`, `", "`)
}

// withoutTable removes a table and its subtables from a TOML text. The caller detects
// unusual forms by comparing the result.
func withoutTable(text []byte, section, name string) []byte {
	header := regexp.MustCompile(`^\s*\[\s*["']?` + regexp.QuoteMeta(section) + `["']?\s*\.\s*["']?` + regexp.QuoteMeta(name) + `["']?\s*[\].]`)
	var out, pending []byte // comments and empty lines that may belong to the next table
	inside := false
	for line := range bytes.Lines(text) {
		trimmed := bytes.TrimSpace(line)
		switch {
		case bytes.HasPrefix(trimmed, []byte("[")):
			was := inside
			inside = header.Match(line)
			if inside && !was && bytes.HasSuffix(out, []byte("\n\n")) {
				out = out[:len(out)-1] // the empty line before the table
			}
			if !inside {
				out = append(out, pending...)
				out = append(out, line...)
			}
			pending = nil
		case !inside:
			out = append(out, line...)
		case len(trimmed) == 0, trimmed[0] == '#':
			pending = append(pending, line...)
		default:
			pending = nil
		}
	}
	return append(out, pending...)
}

const continueStart = "name: Local Config\nversion: 1.0.0\nschema: v1\n"

func appendListItem(text []byte, section string, entry map[string]any) ([]byte, error) {
	list, err := sequence(text, section)
	if err != nil {
		return nil, err
	}
	text = ended(text)
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return append(text, continueStart+section+":\n"+itemText(entry, "  ")...), nil
	case list == nil || list.Kind == 0:
		return append(text, section+":\n"+itemText(entry, "  ")...), nil
	case list.Tag == "!!null", list.Kind == yaml.SequenceNode && len(list.Content) == 0:
		head := regexp.MustCompile(`(?m)^` + section + `:([ \t]*\[[ \t]*\])?([ \t]*(?:#.*)?\n)`).FindSubmatchIndex(text)
		if head == nil {
			return nil, fmt.Errorf("%q is not a block list; change it by hand (goblin install --print)", section)
		}
		return slices.Concat(text[:head[0]], []byte(section+":"), text[head[4]:head[1]], []byte(itemText(entry, "  ")), text[head[1]:]), nil
	case list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0:
		return nil, fmt.Errorf("%q is not a block list; change it by hand (goblin install --print)", section)
	}
	at := itemEnd(text, list.Content[len(list.Content)-1].Line, list.Column)
	indent := strings.Repeat(" ", list.Column-1)
	return append(append(bytes.Clone(text[:at]), itemText(entry, indent)...), text[at:]...), nil
}

func removeListItem(text []byte, section, name string) ([]byte, error) {
	list, err := sequence(text, section)
	if err != nil || list == nil {
		return text, err
	}
	text = ended(text)
	for _, it := range list.Content {
		for i := 0; i+1 < len(it.Content); i += 2 {
			if it.Content[i].Value == "name" && it.Content[i+1].Value == name && list.Style&yaml.FlowStyle == 0 {
				from := lineOffset(text, it.Line)
				return append(bytes.Clone(text[:from]), text[itemEnd(text, it.Line, list.Column):]...), nil
			}
		}
	}
	return text, nil
}

func sequence(text []byte, section string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, nil
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == section {
			return root.Content[i+1], nil
		}
	}
	return nil, nil
}

func lineOffset(text []byte, line int) (at int) {
	for ; line > 1; line-- {
		at += bytes.IndexByte(text[at:], '\n') + 1
	}
	return at
}

// itemEnd returns the end offset of the item that starts at a line, with its dash in a
// column.
func itemEnd(text []byte, line, column int) int {
	at := lineOffset(text, line)
	end := at + bytes.IndexByte(text[at:], '\n') + 1
	for next := end; next < len(text); {
		stop := next + bytes.IndexByte(text[next:], '\n') + 1
		content := bytes.TrimLeft(text[next:stop], " ")
		indent := stop - next - len(content)
		switch {
		case len(bytes.TrimSpace(content)) == 0, indent < column && content[0] == '#':
		case indent >= column:
			end = stop
		default:
			return end
		}
		next = stop
	}
	return end
}

func itemText(entry map[string]any, indent string) string {
	var out strings.Builder
	lead := indent + "- "
	for _, key := range inOrder(entry, "name", "command", "args") {
		text, _ := json.Marshal(entry[key]) // YAML can read it
		if s, ok := entry[key].(string); ok && regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9/._-]*$`).MatchString(s) && s != "true" && s != "null" {
			text = []byte(s)
		}
		fmt.Fprintf(&out, "%s%s: %s\n", lead, key, strings.ReplaceAll(string(text), `","`, `", "`))
		lead = indent + "  "
	}
	return out.String()
}
