package configedit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// order lists the keys that come first. Others follow by name.
var order = []string{"command", "args", "env", "cwd", "url", "type", "headers"}

func sorted(keys map[string]any) []string {
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	rank := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return names
}

func unquote(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) == nil { // JSON has surrogate pairs, YAML does not
		return s
	}
	if yaml.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

const newConfigText = `# Goblin's servers. "goblin validate" checks this file, "goblin edit" opens it.
servers:
`

// root returns nil for an empty document.
func (f *File) root() (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(f.text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, nil
	}
	return doc.Content[0], nil
}

func (f *File) offset(n *yaml.Node) int {
	at := 0
	for line := 1; line < n.Line; line++ {
		at += bytes.IndexByte(f.text[at:], '\n') + 1
	}
	// Columns are characters.
	for col := 1; col < n.Column && at < len(f.text); col++ {
		at++
		for at < len(f.text) && f.text[at]&0xC0 == 0x80 {
			at++
		}
	}
	return at
}

func find(n *yaml.Node, key string) (k, v *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func (f *File) servers(root *yaml.Node) (k, v *yaml.Node) {
	for _, path := range f.sections() {
		k, v = nil, root
		for _, name := range path {
			k, v = find(v, name)
		}
		if k != nil {
			break
		}
	}
	return k, v
}

func isFlowStyle(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0
}

func (f *File) add(s Server) ([]byte, error) {
	if f.json {
		return f.addJSON(s)
	}
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	k, v := f.servers(root)
	switch {
	case k == nil && f.IsNew() && f.foreign == nil:
		return append([]byte(newConfigText), block(s, "  ", "  ")...), nil
	case k == nil && len(f.newSection()) > 1:
		return nil, errFlow // only JSON files have such sections
	case k == nil:
		return append(endLine(f.text), f.newSection()[0]+":\n"+block(s, "  ", "  ")...), nil
	case isFlowStyle(v):
		return f.addInBraces(s, v)
	case v.Kind == yaml.MappingNode && len(v.Content) > 0:
		last := v.Content[len(v.Content)-2]
		indent := strings.Repeat(" ", last.Column-1)
		at := f.entryEnd(last)
		return insert(endLine(f.text), at, block(s, indent, f.step(v))), nil
	default: // "servers:" without a value, or with comments only
		if v.Tag == "!!null" && v.Value != "" {
			from := f.offset(v)
			f = &File{text: replace(f.text, span{from, from + len(v.Value)}, "")}
		}
		at := f.offset(k)
		indent := strings.Repeat(" ", k.Column-1+2)
		end := bytes.IndexByte(f.text[at:], '\n')
		if end < 0 {
			return append(endLine(f.text), block(s, indent, "  ")...), nil
		}
		return insert(f.text, at+end+1, block(s, indent, "  ")), nil
	}
}

func (f *File) step(servers *yaml.Node) string {
	for i := 0; i+1 < len(servers.Content); i += 2 {
		if v := servers.Content[i+1]; v.Kind == yaml.MappingNode && v.Style&yaml.FlowStyle == 0 && v.Column > servers.Content[i].Column {
			return strings.Repeat(" ", v.Column-servers.Content[i].Column)
		}
	}
	return "  "
}

func endLine(text []byte) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return append(bytes.Clone(text), '\n')
	}
	return bytes.Clone(text)
}

func insert(text []byte, at int, what string) []byte {
	return slices.Concat(text[:at], []byte(what), text[at:])
}

// entryEnd returns the end of a block entry. It is before the next line that is not
// indented deeper, and before its preceding blank lines and comments.
func (f *File) entryEnd(key *yaml.Node) int {
	text := endLine(f.text)
	at := f.offset(key)
	end := at + bytes.IndexByte(text[at:], '\n') + 1
	for next := end; next < len(text); {
		stop := next + bytes.IndexByte(text[next:], '\n') + 1
		line := string(text[next:stop])
		content := strings.TrimLeft(line, " ")
		switch indent := len(line) - len(content); {
		case strings.TrimSpace(content) == "":
		case indent >= key.Column:
			end = stop
		case strings.HasPrefix(content, "#"):
		default:
			return end
		}
		next = stop
	}
	return end
}

func block(s Server, indent, step string) string {
	entry := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range sorted(s.Keys) {
		entry.Content = append(entry.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, lineNode(s.Keys[name]))
	}
	var name yaml.Node
	_ = name.Encode(s.Name)
	whole := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{&name, entry}}
	var out strings.Builder
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(len(step))
	_ = enc.Encode(whole) // a Builder never fails
	_ = enc.Close()
	var lines strings.Builder
	if s.Comment != "" {
		lines.WriteString(indent + "# " + strings.Join(strings.Fields(s.Comment), " ") + "\n")
	}
	for line := range strings.Lines(out.String()) {
		lines.WriteString(indent + line)
	}
	return lines.String()
}

func (f *File) remove(server string) ([]byte, error) {
	if f.json {
		b, err := f.jsonServers()
		if err != nil {
			return nil, err
		}
		at := b.find(server)
		if at < 0 {
			return nil, errFlow
		}
		return b.without(f.text, at), nil
	}
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	_, v := f.servers(root)
	if isFlowStyle(v) {
		b, err := mapping(f.text, f.offset(v))
		if err != nil {
			return nil, err
		}
		if at := b.find(server); at >= 0 {
			return b.without(f.text, at), nil
		}
	}
	k, _ := find(v, server)
	if k == nil {
		return nil, fmt.Errorf("server %q is merged in by \"<<\"; remove it by hand", server)
	}
	text := endLine(f.text)
	from := f.offset(k) - (k.Column - 1)
	return append(bytes.Clone(text[:from]), text[f.entryEnd(k):]...), nil
}

func (f *File) setDisabled(server string, disabled bool) ([]byte, error) {
	if f.json {
		b, err := f.jsonServers()
		if err != nil {
			return nil, err
		}
		at := b.find(server)
		if at < 0 {
			return nil, errFlow
		}
		entry, err := mapping(f.text, b.items[at].value.from)
		if err != nil {
			return nil, err
		}
		return f.switchInBraces(entry, disabled, true), nil
	}
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	_, all := f.servers(root)
	_, v := find(all, server)
	if v == nil || v.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("server %q is an alias, or merged in by \"<<\"; change it by hand", server)
	}
	if isFlowStyle(v) {
		entry, err := mapping(f.text, f.offset(v))
		if err != nil {
			return nil, err
		}
		return f.switchInBraces(entry, disabled, false), nil
	}
	for key, on := range map[string]bool{"disabled": true, "enabled": false, "isActive": false} {
		k, flag := find(v, key)
		if k == nil {
			continue
		}
		at := f.offset(flag)
		line := k.Line == flag.Line && lineStart(f.text, f.offset(k)) != f.offset(k) || k.Column == 1
		if key == "disabled" && !disabled && line && lineEnd(f.text, at+len(flag.Value)) > at+len(flag.Value) {
			return append(bytes.Clone(f.text[:lineStart(f.text, f.offset(k))]), f.text[lineEnd(f.text, at+len(flag.Value)):]...), nil
		}
		return replace(f.text, span{at, at + len(flag.Value)}, fmt.Sprint(disabled == on)), nil
	}
	if !disabled {
		return f.text, nil
	}
	first := v.Content[0]
	at := f.offset(first) - (first.Column - 1)
	return insert(f.text, at, strings.Repeat(" ", first.Column-1)+"disabled: true\n"), nil
}

func replace(text []byte, at span, by string) []byte {
	return slices.Concat(text[:at.from], []byte(by), text[at.to:])
}

// switchInBraces enables or disables a server whose keys are in braces.
func (f *File) switchInBraces(b *braces, disabled, quoted bool) []byte {
	for key, on := range map[string]bool{"disabled": true, "enabled": false, "isActive": false} {
		at := b.find(key)
		switch {
		case at < 0:
		case key == "disabled" && !disabled:
			return b.without(f.text, at)
		default:
			return replace(f.text, b.items[at].value, fmt.Sprint(disabled == on))
		}
	}
	if !disabled {
		return f.text
	}
	entry := "disabled: true"
	if quoted {
		entry = `"disabled": true`
	}
	if len(b.items) == 0 {
		return insert(f.text, b.open+1, entry)
	}
	first := b.items[0].at.from
	between := ", "
	if start := lineStart(f.text, first); start < first {
		between = ",\n" + string(f.text[start:first])
	}
	return insert(f.text, first, entry+between)
}

func (f *File) jsonServers() (*braces, error) {
	for _, path := range f.sections() {
		all, missing, err := f.within(path)
		if err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			return all, nil
		}
	}
	return nil, errFlow
}

// within returns the innermost existing mapping on a path of keys, and the missing keys.
func (f *File) within(path []string) (b *braces, missing []string, err error) {
	if b, err = f.top(); err != nil {
		return nil, nil, err
	}
	for i, name := range path {
		at := b.find(name)
		if at < 0 {
			return b, path[i:], nil
		}
		if b, err = mapping(f.text, b.items[at].value.from); err != nil {
			return nil, nil, err
		}
	}
	return b, nil, nil
}

func (f *File) null(path []string) (at span, ok bool) {
	b, err := f.top()
	for _, name := range path {
		i := -1
		if err == nil {
			i = b.find(name)
		}
		if i < 0 {
			break
		}
		at = b.items[i].value
		if string(f.text[at.from:at.to]) == "null" {
			return at, true
		}
		b, err = mapping(f.text, at.from)
	}
	return span{}, false
}

func (f *File) top() (*braces, error) {
	r := &flow{text: f.text}
	r.blanks()
	return mapping(f.text, r.at)
}

func (f *File) addJSON(s Server) ([]byte, error) {
	if len(bytes.TrimSpace(f.text)) == 0 {
		return []byte("{\n  " + nested(f.newSection(), s, "  ", "  ") + "\n}\n"), nil
	}
	for _, path := range f.sections() {
		if at, ok := f.null(path); ok {
			opened := *f
			opened.text = replace(f.text, at, "{}")
			return opened.addJSON(s)
		}
	}
	var outer *braces
	var missing []string
	for _, path := range slices.Backward(f.sections()) { // the one for a new file comes last
		all, lacks, err := f.within(path)
		if err != nil {
			return nil, err
		}
		if len(lacks) == 0 {
			return f.into(all, func(indent, step string) string { return object(s, indent, step) }), nil
		}
		if slices.Equal(path, f.newSection()) {
			outer, missing = all, lacks
		}
	}
	return f.into(outer, func(indent, step string) string { return nested(missing, s, indent, step) }), nil
}

func nested(path []string, s Server, indent, step string) string {
	if len(path) == 0 {
		return object(s, indent, step)
	}
	key, _ := json.Marshal(path[0])
	inner := indent + step
	return string(key) + ": {\n" + inner + nested(path[1:], s, inner, step) + "\n" + indent + "}"
}

// into appends an entry. write formats it for an indentation of its first line and a
// step.
func (f *File) into(b *braces, write func(indent, step string) string) []byte {
	outer := indentOf(f.text, b.open)
	if len(b.items) == 0 {
		if bytes.IndexByte(f.text[b.open:b.close], '\n') < 0 { // {}
			inside := bytes.TrimRight(f.text[b.open+1:b.close], " \t") // a comment, or nothing
			return slices.Concat(f.text[:b.open+1], inside, []byte("\n"+outer+"  "+write(outer+"  ", "  ")+"\n"+outer), f.text[b.close:])
		}
		at := lineStart(f.text, b.close)
		return insert(f.text, at, outer+"  "+write(outer+"  ", "  ")+"\n")
	}
	last := b.items[len(b.items)-1]
	indent := indentOf(f.text, last.at.from)
	if lineStart(f.text, last.at.from) == last.at.from { // follows another entry on the same line
		entry := write("", "")
		entry = strings.ReplaceAll(entry, "\n", " ")
		if last.separating >= 0 {
			return insert(f.text, last.separating+1, " "+entry)
		}
		return insert(f.text, last.value.to, ", "+entry)
	}
	step := strings.TrimPrefix(indent, outer)
	entry := "\n" + indent + write(indent, step)
	text, at := f.text, last.separating+1
	if last.separating < 0 {
		text, at = insert(text, last.value.to, ","), last.value.to+1
	} else {
		entry += ","
	}
	if end := bytes.IndexByte(text[at:], '\n'); end >= 0 && at+end < b.close { // the rest of the line belongs to the last entry
		at += end
	}
	return insert(text, at, entry)
}

func indentOf(text []byte, at int) string {
	line := text[bytes.LastIndexByte(text[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func object(s Server, indent, step string) string {
	var out strings.Builder
	name, _ := json.Marshal(s.Name)
	out.WriteString(string(name) + ": {")
	for i, key := range sorted(s.Keys) {
		if i > 0 {
			out.WriteByte(',')
		}
		var text strings.Builder
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		_, list := s.Keys[key].([]string)
		if !list {
			enc.SetIndent(indent+step, step)
		}
		_ = enc.Encode(s.Keys[key]) // cannot fail: texts and lists
		value := strings.TrimRight(text.String(), "\n")
		if list {
			value = strings.ReplaceAll(value, `","`, `", "`)
		}
		fmt.Fprintf(&out, "\n%s%q: %s", indent+step, key, value)
	}
	if len(s.Keys) > 0 {
		out.WriteString("\n" + indent)
	}
	out.WriteByte('}')
	return out.String()
}

func (f *File) addInBraces(s Server, v *yaml.Node) ([]byte, error) {
	b, err := mapping(f.text, f.offset(v))
	if err != nil {
		return nil, err
	}
	return f.into(b, func(indent, step string) string { return object(s, indent, step) }), nil
}
