package configedit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Set changes one value of a server's entry. The path is a key, such as "args". For a
// mapping, a name follows, such as "env" and "API_KEY". Values are texts, booleans and
// []string. nil removes the value, and a mapping that would be empty. Set returns ErrNone
// for an unknown server.
func (f *File) Set(server string, value any, path ...string) error {
	var unchanged bool
	return f.change(func(doc map[string]any) error {
		keys, err := f.keys(doc, server)
		if err != nil {
			return err
		}
		before, err := setIn(keys, plainValue(value), path)
		unchanged = reflect.DeepEqual(before, plainValue(value))
		return err
	}, func() ([]byte, error) {
		if unchanged {
			return f.text, nil
		}
		return f.set(server, value, path)
	})
}

func plainValue(value any) any {
	list, ok := value.([]string)
	if !ok {
		return value
	}
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

// setIn changes a value in the decoded entry, and returns the old one.
func setIn(keys map[string]any, value any, path []string) (before any, err error) {
	name := path[0]
	if len(path) == 1 {
		before = keys[name]
		if keys[name] = value; value == nil {
			delete(keys, name)
		}
		return before, nil
	}
	inner, ok := keys[name].(map[string]any)
	switch {
	case !ok && keys[name] != nil:
		return nil, fmt.Errorf("%q is not a mapping of texts", name)
	case inner == nil && value == nil:
		return nil, nil
	case inner == nil:
		inner = make(map[string]any)
		keys[name] = inner
	}
	if before, err = setIn(inner, value, path[1:]); len(inner) == 0 {
		delete(keys, name)
	}
	return before, err
}

func (f *File) set(server string, value any, path []string) ([]byte, error) {
	if f.json {
		b, err := f.jsonServers()
		if err != nil {
			return nil, err
		}
		at := b.find(server)
		if at < 0 {
			return nil, errFlow
		}
		return f.setInBraces(b.items[at].value.from, value, path)
	}
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	_, all := f.servers(root)
	_, v := find(all, server)
	switch {
	case v == nil || v.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("server %q is an alias, or merged in by \"<<\"; change it by hand", server)
	case isFlowStyle(v):
		return f.setInBraces(f.offset(v), value, path)
	}
	return f.setInBlock(v, value, path)
}

// setInBraces changes a value of the mapping in braces at an offset.
func (f *File) setInBraces(open int, value any, path []string) ([]byte, error) {
	b, err := mapping(f.text, open)
	if err != nil {
		return nil, err
	}
	at := b.find(path[0])
	switch {
	case at < 0 && value == nil:
		return f.text, nil
	case at < 0:
		return f.addToBraces(b, f.flowEntry(path, value)), nil
	}
	old := b.items[at].value
	if len(path) == 1 {
		if value == nil {
			return b.without(f.text, at), nil
		}
		list, isList := value.([]string)
		if items, ok := f.items(old.from); isList && ok && len(items) > 0 && len(list) > 0 {
			return f.replaceItems(items, list, old.to), nil
		}
		return replace(f.text, old, f.flowValue(value)), nil
	}
	inner, err := mapping(f.text, old.from)
	switch {
	case err != nil && string(f.text[old.from:old.to]) == "null", old.from == old.to:
		return replace(f.text, old, "{"+f.flowEntry(path[1:], value)+"}"), nil
	case err != nil:
		return nil, fmt.Errorf("%q is not a mapping; change it by hand", path[0])
	case value == nil && len(inner.items) == 1 && inner.find(path[1]) == 0:
		return b.without(f.text, at), nil
	}
	return f.setInBraces(old.from, value, path[1:])
}

func (f *File) addToBraces(b *braces, entry string) []byte {
	if len(b.items) == 0 && !f.json { // more lines would need the right indentation
		return insert(f.text, b.open+1, entry)
	}
	return f.into(b, func(string, string) string { return entry })
}

// flowEntry formats a key with its value for a mapping in braces.
func (f *File) flowEntry(path []string, value any) string {
	key := f.flowValue(path[0])
	if len(path) == 1 {
		return key + ": " + f.flowValue(value)
	}
	return key + ": {" + f.flowEntry(path[1:], value) + "}"
}

func (f *File) flowValue(value any) string {
	if list, ok := value.([]string); ok {
		all := make([]string, len(list))
		for i, s := range list {
			all[i] = f.flowValue(s)
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	if s, ok := value.(string); ok && !f.json && !strings.ContainsAny(s, "\n\r") {
		var n yaml.Node
		_ = n.Encode([]string{s}) // cannot fail: texts
		n.Style = yaml.FlowStyle
		if text, err := yaml.Marshal(&n); err == nil {
			return string(bytes.TrimSpace(text)[1 : len(bytes.TrimSpace(text))-1])
		}
	}
	return jsonText(value)
}

func jsonText(value any) string {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // cannot fail: texts and booleans
	return strings.TrimSpace(text.String())
}

// items returns the values of the list in brackets at an offset.
func (f *File) items(open int) (all []span, ok bool) {
	if open >= len(f.text) || f.text[open] != '[' {
		return nil, false
	}
	r := &flow{text: f.text, at: open + 1}
	for {
		r.blanks()
		if r.at >= len(f.text) {
			return nil, false
		}
		if f.text[r.at] == ']' {
			return all, true
		}
		at, err := r.value()
		if err != nil || at.from == at.to {
			return nil, false
		}
		all = append(all, at)
		if r.blanks(); r.at < len(f.text) && f.text[r.at] == ',' {
			r.at++
		}
	}
}

// difference returns the range of items that a new list replaces.
func difference(old, list []string) (from, oldTo, newTo int) {
	oldTo, newTo = len(old), len(list)
	for from < oldTo && from < newTo && old[from] == list[from] {
		from++
	}
	for oldTo > from && newTo > from && old[oldTo-1] == list[newTo-1] {
		oldTo--
		newTo--
	}
	return from, oldTo, newTo
}

// replaceItems changes a list in brackets, which ends at end, item by item.
func (f *File) replaceItems(items []span, list []string, end int) []byte {
	old := make([]string, len(items))
	for i, it := range items {
		old[i] = unquote(f.text[it.from:it.to])
	}
	from, oldTo, newTo := difference(old, list)
	both := min(oldTo-from, newTo-from)
	text := f.text
	switch last := from + both; {
	case oldTo > last && oldTo < len(items):
		text = replace(text, span{items[last].from, items[oldTo].from}, "")
	case oldTo > last && last > 0:
		text = replace(text, span{items[last-1].to, items[oldTo-1].to}, "")
	case oldTo > last:
		text = replace(text, span{items[0].from, end - 1}, "")
	case newTo > last:
		added := make([]string, 0, newTo-last)
		for _, s := range list[last:newTo] {
			added = append(added, f.flowValue(s))
		}
		at := items[max(last-1, 0)]
		between := ", "
		if start := lineStart(f.text, at.from); start < at.from {
			between = ",\n" + string(f.text[start:at.from])
		}
		if more := strings.Join(added, between); last > 0 {
			text = insert(text, at.to, between+more)
		} else {
			text = insert(text, at.from, more+between)
		}
	}
	for i := from + both - 1; i >= from; i-- {
		text = replace(text, items[i], f.flowValue(list[i]))
	}
	return text
}

// setInBlock changes a value of a mapping in block style.
func (f *File) setInBlock(v *yaml.Node, value any, path []string) ([]byte, error) {
	k, old := find(v, path[0])
	indent := strings.Repeat(" ", v.Content[0].Column-1)
	switch {
	case k == nil && value == nil:
		return f.text, nil
	case k == nil:
		return insert(endLine(f.text), f.valueEnd(v.Content[len(v.Content)-2], v.Content[len(v.Content)-1]), blockEntry(indent, path, value)), nil
	case old.Anchor != "":
		return nil, fmt.Errorf("%q has an anchor; change it by hand", path[0])
	case len(path) == 1:
		return f.setBlockValue(k, old, value, indent), nil
	case old.Kind == yaml.AliasNode:
		return nil, fmt.Errorf("%q is an alias; change it by hand", path[0])
	case old.Kind != yaml.MappingNode || len(old.Content) == 0 && !isFlowStyle(old):
		return f.replaceEntry(k, old, blockEntry(indent, path, value)), nil
	case value == nil && len(old.Content) == 2 && old.Content[0].Value == path[1]:
		return f.replaceEntry(k, old, ""), nil
	case isFlowStyle(old):
		return f.setInBraces(f.offset(old), value, path[1:])
	}
	return f.setInBlock(old, value, path[1:])
}

// replaceEntry replaces the lines of a key in block style.
func (f *File) replaceEntry(k, v *yaml.Node, by string) []byte {
	text := endLine(f.text)
	return slices.Concat(text[:f.offset(k)-(k.Column-1)], []byte(by), text[f.valueEnd(k, v):])
}

// valueEnd is entryEnd for any value. A list may have the indentation of its key.
func (f *File) valueEnd(k, v *yaml.Node) int {
	if n := len(v.Content); v.Kind == yaml.SequenceNode && v.Style&yaml.FlowStyle == 0 && n > 0 && v.Column == k.Column {
		return f.entryEnd(&yaml.Node{Line: v.Content[n-1].Line, Column: v.Column})
	}
	return f.entryEnd(k)
}

func (f *File) setBlockValue(k, old *yaml.Node, value any, indent string) []byte {
	list, isList := value.([]string)
	switch {
	case value == nil:
		return f.replaceEntry(k, old, "")
	case isList && old.Kind == yaml.SequenceNode && old.Style&yaml.FlowStyle != 0 && len(list) > 0:
		from := f.offset(old)
		r := &flow{text: f.text, at: from}
		if whole, err := r.value(); err == nil {
			if items, ok := f.items(from); ok && len(items) > 0 {
				return f.replaceItems(items, list, whole.to)
			}
			return replace(f.text, whole, f.flowValue(list))
		}
	case isList && old.Kind == yaml.SequenceNode && len(old.Content) > 0 && len(list) > 0:
		if text, ok := f.setBlockList(old, list); ok {
			return text
		}
	case !isList && old.Kind == yaml.ScalarNode:
		if at, ok := f.scalar(old); ok {
			return replace(f.text, at, scalarText(value, old.Style))
		}
	}
	return f.replaceEntry(k, old, blockEntry(indent, []string{k.Value}, value))
}

// setBlockList changes a list with one item per line. It reports false for other lists.
func (f *File) setBlockList(v *yaml.Node, list []string) ([]byte, bool) {
	old := make([]string, len(v.Content))
	lines := make([]span, len(v.Content))
	for i, item := range v.Content {
		dash := &yaml.Node{Line: item.Line, Column: v.Column}
		old[i], lines[i] = item.Value, span{f.offset(&yaml.Node{Line: item.Line, Column: 1}), f.entryEnd(dash)}
		if item.Kind != yaml.ScalarNode || f.offset(dash) >= len(f.text) || f.text[f.offset(dash)] != '-' {
			return nil, false
		}
	}
	from, oldTo, newTo := difference(old, list)
	last := from + min(oldTo-from, newTo-from)
	text := endLine(f.text)
	if oldTo > last {
		text = replace(text, span{lines[last].from, lines[oldTo-1].to}, "")
	} else {
		added := ""
		for _, s := range list[last:newTo] {
			added += strings.Repeat(" ", v.Column-1) + "- " + scalarText(s, 0) + "\n"
		}
		at := lines[0].from
		if last > 0 {
			at = lines[last-1].to
		}
		text = insert(text, at, added)
	}
	for i := last - 1; i >= from; i-- {
		at, ok := f.scalar(v.Content[i])
		if !ok {
			return nil, false
		}
		text = replace(text, at, scalarText(list[i], v.Content[i].Style))
	}
	return text, true
}

// scalar returns the place of a scalar in block style, without comments. It reports false
// if the scalar may have several lines.
func (f *File) scalar(n *yaml.Node) (at span, ok bool) {
	from := f.offset(n)
	if n.Anchor != "" || from >= len(f.text) || n.Style&yaml.TaggedStyle != 0 {
		return span{}, false
	}
	switch c := f.text[from]; {
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 && (c == '"' || c == '\''):
		r := &flow{text: f.text, at: from}
		err := r.quoted()
		return span{from, r.at}, err == nil
	case n.Style != 0 || n.Value == "":
		return span{}, false
	}
	line, _, _ := bytes.Cut(f.text[from:], []byte("\n"))
	if i := bytes.Index(line, []byte(" #")); i >= 0 {
		line = line[:i]
	}
	line = bytes.TrimRight(line, " \t")
	return span{from, from + len(line)}, string(line) == n.Value
}

// scalarText formats a text or boolean for block style. style is the style of the old value.
func scalarText(value any, style yaml.Style) string {
	s, ok := value.(string)
	if !ok || strings.ContainsAny(s, "\n\r") {
		return jsonText(value)
	}
	var n yaml.Node
	_ = n.Encode(s) // cannot fail: a text
	if quoted := style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle); quoted != 0 {
		n.Style = quoted
	}
	text, err := yaml.Marshal(&n)
	if err != nil {
		return jsonText(value)
	}
	return string(bytes.TrimSpace(text))
}

func blockEntry(indent string, path []string, value any) string {
	v := *lineNode(value)
	for _, name := range slices.Backward(path) {
		var key yaml.Node
		_ = key.Encode(name)
		inner := v
		v = yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{&key, &inner}}
	}
	var out strings.Builder
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	_ = enc.Encode(&v) // a Builder never fails
	_ = enc.Close()
	var lines strings.Builder
	for line := range strings.Lines(out.String()) {
		lines.WriteString(indent + line)
	}
	return lines.String()
}

// lineNode returns a value of texts and lists as YAML on one line. Lists are encoded item by
// item, because Encode fails for lists with a text that begins with a line break.
func lineNode(value any) *yaml.Node {
	if list, ok := value.([]string); ok {
		v := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, text := range list {
			v.Content = append(v.Content, lineNode(text))
		}
		return v
	}
	v := &yaml.Node{}
	_ = v.Encode(value) // cannot fail: a text, number or boolean
	if v.Kind == yaml.SequenceNode {
		v.Style = yaml.FlowStyle
	}
	if strings.ContainsAny(v.Value, "\n\r") {
		v.Style = yaml.DoubleQuotedStyle // on one line
	}
	return v
}
