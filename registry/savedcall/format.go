package savedcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
	"goblin/registry/yamltext"
)

// Format returns the YAML text of a call, with one line per argument and check.
func (c *Call) Format() []byte { return write(c.node()) }

// Update returns a file's text with the values of c. Comments, the order of keys, blank
// lines before keys of the file and unchanged values stay. It fails if text is no saved
// call.
func (c *Call) Update(text []byte) ([]byte, error) {
	if _, err := Parse(c.Path, text); err != nil {
		return nil, err
	}
	plain := bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	root, _, bad := yamltext.Parse(blankLine().ReplaceAll(plain, []byte("#blank line of goblin\n$1")))
	if bad != nil {
		return nil, errors.New(bad.Text)
	}
	writeNulls(root)
	out := write(&yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{merge(root, c.node())}})
	out = blankMark().ReplaceAll(out, []byte("\n"))
	if again, err := Parse(c.Path, out); err != nil {
		return nil, fmt.Errorf("update %s: %w", c.Path, err)
	} else if !bytes.Equal(again.Format(), c.Format()) {
		return nil, errors.New("update " + c.Path + ": the file cannot hold these values in its style; edit the file")
	}
	if bytes.Contains(text, []byte("\r\n")) {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	return out, nil
}

// The library drops blank lines. A comment keeps the place of one before a line without
// indentation, which is never inside of a text.
var (
	blankLine = pattern(`(?m)^[ \t]*\n([^ \t\n])`)
	blankMark = pattern(`(?m)^ *#blank line of goblin\n`)
)

// writeNulls spells omitted values. The library would write them as empty texts.
func writeNulls(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Value == "" && n.ShortTag() == "!!null" {
		n.Value = "null"
	}
	for _, c := range n.Content {
		writeNulls(c)
	}
}

func write(n *yaml.Node) []byte {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if e.Encode(n) != nil || e.Close() != nil { // impossible: nodes are made here or were parsed
		return nil
	}
	return out.Bytes()
}

// node returns the mapping of a call.
func (c *Call) node() *yaml.Node {
	root := mapping()
	if c.Description != "" {
		add(root, "description", textNode(c.Description, false))
	}
	add(root, string(c.Kind), textNode(c.Name, false))
	if c.Arguments != nil {
		add(root, "arguments", valueNode(c.Arguments, c.notes, ""))
	}
	if len(c.Capture) > 0 {
		all := mapping()
		for _, one := range c.Capture {
			add(all, one.Name, quoted(one.Path))
		}
		add(root, "capture", all)
	}
	if len(c.Expect) > 0 {
		all := &yaml.Node{Kind: yaml.SequenceNode}
		for _, check := range c.Expect {
			all.Content = append(all.Content, check.node())
		}
		add(root, "expect", all)
	}
	if c.Dev {
		add(root, "dev", plain("true"))
	}
	return root
}

// node returns the mapping of a check. It is one line, unless a variable without quotes
// needs a line of its own.
func (c Check) node() *yaml.Node {
	n := mapping()
	n.Style = yaml.FlowStyle
	switch c.Kind {
	case CheckPath:
		add(n, "path", quoted(c.Path))
		switch {
		case c.Exists != nil:
			add(n, "exists", plain(strconv.FormatBool(*c.Exists)))
		case c.Equals != nil:
			add(n, "equals", valueNode(c.Equals, c.notes, ""))
		default:
			add(n, "matches", textNode(c.Matches, false))
		}
		if hasPlainVariable(n) {
			n.Style = 0
		}
	case CheckTime:
		add(n, "time", plain(c.Time.String()))
	case CheckSize:
		add(n, "size", plain(termtext.ExactSize(c.Size)))
	case CheckDefinition:
		add(n, "definition", quoted(c.Definition))
	default:
		add(n, string(c.Kind), plain("true"))
	}
	if len(c.Ignore) > 0 {
		all := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, path := range c.Ignore {
			all.Content = append(all.Content, quoted(path))
		}
		add(n, "ignore", all)
	}
	return n
}

func hasPlainVariable(n *yaml.Node) bool {
	_, lone := loneVariable(n.Value)
	return n.Kind == yaml.ScalarNode && n.Style == 0 && lone || slices.ContainsFunc(n.Content, hasPlainVariable)
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func add(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, textNode(key, false), value)
}

// plain returns a scalar that is no text, or needs no quotes.
func plain(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

func quoted(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
}

// textNode returns a text. With bare, a variable has no quotes.
func textNode(s string, bare bool) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	_, lone := loneVariable(s)
	switch {
	case lone && bare && plain(s).ShortTag() == "!!str" && !strings.ContainsAny(s, "\n\t #"):
	case lone, s == "", strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }):
		n.Style = yaml.DoubleQuotedStyle
	case strings.Contains(s, "\n"):
		n.Style = yaml.LiteralStyle
		if s != strings.TrimSpace(s) && s != strings.TrimSpace(s)+"\n" || strings.Contains(s, " \n") {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	return n
}

// UnquoteVariables removes the quotes of variables that are whole arguments and no text in
// the tool's input schema. So a number stays a number.
func (c *Call) UnquoteVariables(inputSchema json.RawMessage) {
	all := maps.Clone(c.notes)
	if all == nil {
		all = make(notes)
	}
	for key, value := range rawjson.Members(c.Arguments) {
		name, _ := rawjson.String(key)
		text, isText := rawjson.String(value)
		kind := rawjson.Path(inputSchema, "properties", name, "type")
		if _, lone := loneVariable(text); isText && lone && kind != nil && !bytes.Contains(kind, []byte(`"string"`)) {
			n := all["/"+escapePointer(name)]
			n.plain = true
			all["/"+escapePointer(name)] = n
		}
	}
	c.notes = all
}

// valueNode converts JSON to YAML. at is the JSON pointer in notes.
func valueNode(v []byte, all notes, at string) *yaml.Node {
	switch {
	case rawjson.IsObject(v):
		n := mapping()
		for key, value := range rawjson.Members(v) {
			name, _ := rawjson.String(key)
			add(n, name, valueNode(value, all, at+"/"+escapePointer(name)))
		}
		return n
	case rawjson.IsArray(v):
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for item := range rawjson.Elements(v) {
			n.Content = append(n.Content, valueNode(item, all, at+"/"+strconv.Itoa(len(n.Content))))
		}
		return n
	}
	if s, ok := rawjson.String(v); ok {
		return textNode(s, all[at].plain)
	}
	n := plain(string(bytes.TrimSpace(v)))
	if c := n.Value[0]; (c == '-' || c >= '0' && c <= '9') && n.ShortTag() != "!!int" && n.ShortTag() != "!!float" {
		n.Tag = "!!float" // too large for the library
	}
	return n
}

// merge returns the value of now with the comments, order and style of old.
func merge(old, now *yaml.Node) *yaml.Node {
	switch {
	case old.Kind == now.Kind && old.Kind == yaml.MappingNode:
		return mergeMembers(old, now)
	case old.Kind == now.Kind && old.Kind == yaml.SequenceNode:
		return mergeItems(old, now)
	case old.Kind == now.Kind && sameScalar(old, now):
		return old
	}
	now.HeadComment, now.LineComment, now.FootComment = old.HeadComment, old.LineComment, old.FootComment
	return now
}

func mergeMembers(old, now *yaml.Node) *yaml.Node {
	if was, is := checkOf(old), checkOf(now); was != nil && reflect.DeepEqual(was, is) {
		return old
	}
	out := *old
	out.Content = nil
	value := func(n *yaml.Node, name string) *yaml.Node {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return n.Content[i+1]
			}
		}
		return nil
	}
	for i := 0; i+1 < len(old.Content); i += 2 {
		if v := value(now, old.Content[i].Value); v != nil {
			out.Content = append(out.Content, old.Content[i], merge(old.Content[i+1], v))
		}
	}
	for i := 0; i+1 < len(now.Content); i += 2 {
		if value(old, now.Content[i].Value) == nil {
			out.Content = append(out.Content, now.Content[i], now.Content[i+1])
		}
	}
	if now.Style == 0 && hasPlainVariable(now) || len(old.Content) == 0 {
		out.Style = now.Style
	}
	return &out
}

// checkOf returns the check of a mapping without places, or nil.
func checkOf(n *yaml.Node) *Check {
	p := &parser{}
	c := p.check(n)
	if len(p.mistakes) > 0 {
		return nil
	}
	c.Line = 0
	for at, n := range c.notes {
		c.notes[at] = note{plain: n.plain}
	}
	return &c
}

// mergeItems keeps equal items, and merges each other one with the old item at its place.
func mergeItems(old, now *yaml.Node) *yaml.Node {
	out := *old
	out.Content = nil
	a, b := old.Content, now.Content
	for len(a) > 0 && len(b) > 0 && sameNode(a[0], b[0]) {
		out.Content = append(out.Content, a[0])
		a, b = a[1:], b[1:]
	}
	for i, item := range b {
		at := -1
		if len(a) <= maxItems && len(b) <= maxItems {
			at = slices.IndexFunc(a, func(was *yaml.Node) bool { return sameNode(was, item) })
		}
		switch {
		case at >= 0:
			item, a = a[at], a[at+1:]
		case len(a) > 0 && len(a) >= len(b)-i: // otherwise it was added
			item, a = merge(a[0], item), a[1:]
		}
		out.Content = append(out.Content, item)
	}
	if len(old.Content) == 0 {
		out.Style = now.Style
	}
	return &out
}

func sameNode(a, b *yaml.Node) bool {
	if a.Kind == yaml.MappingNode && b.Kind == yaml.MappingNode {
		if x, y := checkOf(a), checkOf(b); x != nil && y != nil {
			return reflect.DeepEqual(x, y)
		}
	}
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind == yaml.ScalarNode {
		return sameScalar(a, b)
	}
	for i := range a.Content {
		if !sameNode(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

// sameScalar reports whether two scalars have the same value, with or without quotes.
func sameScalar(a, b *yaml.Node) bool {
	_, lone := loneVariable(a.Value)
	x, y := scalarJSON(a), scalarJSON(b)
	return bytes.Equal(x, y) && (!lone || isPlain(a) == isPlain(b))
}

func scalarJSON(n *yaml.Node) json.RawMessage {
	c := converter{parser: &parser{}, notes: make(notes)}
	return c.scalar(nil, n, "")
}
