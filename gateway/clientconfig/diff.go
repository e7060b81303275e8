package clientconfig

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aymanbagabas/go-udiff"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"

	"goblin/gateway/config"
	"goblin/registry/secrettext"
)

const hiddenValue = "…"

// maxLine is in bytes. Files with longer lines are broken up.
const maxLine = 1000

// Diff returns the changed lines in the format of diff -u. Values and comments are
// hidden, since they may be secret. Only the values that Goblin writes are visible.
func (ch *Change) Diff() string {
	own := scalars(generic(ch.own))
	before, err := ch.place.dialect.masked(ch.Before, own)
	if err != nil {
		return ""
	}
	after, err := ch.place.dialect.masked(ch.After, own)
	if err != nil {
		return ""
	}
	if hasLongLine(before) || hasLongLine(after) { // such as JSON without line breaks
		before, after = broken(before), broken(after)
	}
	text, err := udiff.ToUnified(ch.File, ch.File, before, udiff.Lines(before, after), 0)
	if err != nil { // impossible: the edits match the text
		return ""
	}
	return text
}

func hasLongLine(text string) bool {
	for line := range strings.Lines(text) {
		if len(line) > maxLine {
			return true
		}
	}
	return false
}

func broken(text string) string {
	text = strings.NewReplacer(",", ",\n", "{", "{\n", "[", "[\n").Replace(text)
	return strings.ReplaceAll(text, "\n\n", "\n")
}

func scalars(v any) (list []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			list = append(list, scalars(inner)...)
		}
	case []any:
		for _, inner := range v {
			list = append(list, scalars(inner)...)
		}
	default:
		if s, ok := scalar(v); ok {
			list = append(list, s)
		}
	}
	return list
}

// masked returns a file's text with hidden values and comments. own lists the values of
// Goblin's entry, which stay visible there.
func (d *dialect) masked(text []byte, own []string) (string, error) {
	text, err := utf8Of(text)
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return "", err
	}
	if isTooDeep(text) {
		return "", fmt.Errorf("nested too deeply")
	}
	switch d.format {
	case inTOML:
		var quotedOwn []string
		for _, value := range own {
			quotedOwn = append(quotedOwn, quoted(value))
		}
		m := tomlMask{rest: string(text), own: quotedOwn}
		m.document()
		return m.out.String(), nil
	case inYAML:
		return maskedYAML(text, own)
	}
	v, err := hujson.Parse(config.EndComment(text))
	if err != nil {
		return "", fmt.Errorf("not valid JSON")
	}
	maskJSON(&v, own, false)
	return string(v.Pack()), nil
}

// secretName reports whether a key looks like a misplaced secret.
func secretName(key string) bool { return secrettext.IsRandom(key) || strings.ContainsAny(key, "\n=") }

// maskJSON hides values and comments. within is true inside Goblin's entry.
func maskJSON(v *hujson.Value, own []string, within bool) {
	maskComments(&v.BeforeExtra)
	maskComments(&v.AfterExtra)
	switch inner := v.Value.(type) {
	case *hujson.Object:
		for i := range inner.Members {
			m := &inner.Members[i]
			maskComments(&m.Name.BeforeExtra)
			maskComments(&m.Name.AfterExtra)
			name, _ := m.Name.Value.(hujson.Literal)
			key := name.String()
			if secretName(key) {
				m.Name.Value = hujson.Literal(hiddenValue)
			}
			maskJSON(&m.Value, own, within || key == EntryName)
		}
		maskComments(&inner.AfterExtra)
	case *hujson.Array:
		for i := range inner.Elements {
			maskJSON(&inner.Elements[i], own, within)
		}
		maskComments(&inner.AfterExtra)
	case hujson.Literal:
		if !within || !slices.Contains(own, inner.String()) {
			v.Value = hujson.Literal(hiddenValue)
		}
	}
}

var jsonComment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`//[^\n]*|(?s:/\*.*?\*/)`) })

func maskComments(extra *hujson.Extra) {
	*extra = jsonComment().ReplaceAllFunc(*extra, func(comment []byte) []byte {
		if comment[1] == '*' {
			return []byte("/* " + hiddenValue + " */")
		}
		return []byte("// " + hiddenValue)
	})
}

func maskedYAML(text []byte, own []string) (string, error) {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil {
		return "", fmt.Errorf("not valid YAML")
	}
	maskYAML(&doc, own, false)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if enc.Encode(&doc) != nil {
		return "", fmt.Errorf("cannot be formatted")
	}
	return out.String(), nil
}

func maskYAML(n *yaml.Node, own []string, within bool) {
	for _, comment := range []*string{&n.HeadComment, &n.LineComment, &n.FootComment} {
		if *comment != "" {
			*comment = "# " + hiddenValue
		}
	}
	n.Anchor = ""
	if !strings.HasPrefix(n.Tag, "!!") {
		n.Tag = ""
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Value == "name" && value.Value == EntryName {
				within = true
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			name := key.Value
			known := []string{name}
			if secretName(name) {
				known = nil
			}
			maskYAML(key, known, true)
			maskYAML(value, own, within || name == EntryName)
		}
	case yaml.ScalarNode, yaml.AliasNode:
		if !within || n.Kind == yaml.AliasNode || !slices.Contains(own, n.Value) {
			*n = yaml.Node{
				Kind: yaml.ScalarNode, Value: hiddenValue,
				HeadComment: n.HeadComment, LineComment: n.LineComment, FootComment: n.FootComment,
			}
		}
	default:
		for _, inner := range n.Content {
			maskYAML(inner, own, within)
		}
	}
}

type tomlMask struct {
	rest   string // unread
	out    strings.Builder
	own    []string // values of Goblin's entry, as written
	within bool     // inside Goblin's table
}

func (m *tomlMask) skip(n int, shown string) {
	m.out.WriteString(shown)
	m.rest = m.rest[n:]
}

// gap copies white space and signs up to the next key, value or bracket. It hides
// comments.
func (m *tomlMask) gap(signs string) {
	for m.rest != "" {
		switch c := m.rest[0]; {
		case c == '#':
			m.skip(before(m.rest, "\n"), "# "+hiddenValue)
		case strings.IndexByte(signs, c) >= 0:
			m.skip(1, m.rest[:1])
		default:
			return
		}
	}
}

func (m *tomlMask) document() {
	for m.gap(" \t\r\n"); m.rest != ""; m.gap(" \t\r\n") {
		if m.rest[0] != '[' {
			m.pair()
			continue
		}
		head := m.key("]")
		m.within = tomlEntryName().MatchString(head)
		m.gap("]")
	}
}

var tomlEntryName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\.\s*["']?` + EntryName + `["']?\s*$`)
})

func (m *tomlMask) pair() {
	m.key("=")
	m.gap("= \t")
	m.value()
}

func (m *tomlMask) key(sign string) string {
	end := 0
	for end < len(m.rest) && m.rest[end] != sign[0] {
		end += max(tomlString(m.rest[end:]), 1)
	}
	key := m.rest[:end]
	shown := key
	for part := range strings.SplitSeq(key, ".") {
		if secretName(strings.Trim(part, "[] \t\"'")) {
			shown = hiddenValue
		}
	}
	m.skip(end, shown)
	return key
}

func (m *tomlMask) value() {
	if m.rest == "" {
		return
	}
	switch m.rest[0] {
	case '[':
		m.skip(1, "[")
		for m.gap(" \t\r\n,"); m.rest != "" && m.rest[0] != ']'; m.gap(" \t\r\n,") {
			m.value()
		}
		m.skip(min(1, len(m.rest)), "]")
		return
	case '{':
		m.skip(1, "{")
		for m.gap(" \t\r\n,"); m.rest != "" && m.rest[0] != '}'; m.gap(" \t\r\n,") {
			m.pair()
		}
		m.skip(min(1, len(m.rest)), "}")
		return
	}
	end := tomlString(m.rest)
	if end == 0 { // a number, date or boolean
		end = max(before(m.rest, ",]}#\r\n"), 1)
		end -= len(m.rest[:end]) - len(strings.TrimRight(m.rest[:end], " \t"))
	}
	shown := m.rest[:end]
	if !m.within || !slices.Contains(m.own, shown) {
		shown = hiddenValue
	}
	m.skip(end, shown)
}

func before(text, signs string) int {
	if at := strings.IndexAny(text, signs); at >= 0 {
		return at
	}
	return len(text)
}

// tomlString returns the length of the string at the start of text, or 0.
func tomlString(text string) int {
	for _, mark := range []string{`"""`, `'''`, `"`, `'`} {
		if !strings.HasPrefix(text, mark) {
			continue
		}
		at := len(mark)
		for at < len(text) && !strings.HasPrefix(text[at:], mark) {
			if mark[0] == '"' && text[at] == '\\' {
				at++
			}
			at++
		}
		at += len(mark)
		for len(mark) == 3 && at < len(text) && text[at] == mark[0] { // up to two quotes precede the closing mark
			at++
		}
		return min(at, len(text))
	}
	return 0
}
