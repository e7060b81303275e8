package savedcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"goblin/registry/definition"
	"goblin/registry/rawjson"
	"goblin/registry/suggest"
	"goblin/registry/termtext"
	"goblin/registry/yamltext"
)

const maxMistakes = 50 // that Parse reports

// Keys of a file and of a check.
var (
	callKeys  = []string{"description", "call", "read", "prompt", "arguments", "capture", "expect", "dev"}
	checkKeys = []string{"path", "equals", "matches", "exists", "time", "size", "schema", "definition", "same", "ignore"}
)

// Parse parses the text of a file. path appears in messages. The error joins all mistakes
// as "path:line: what".
func Parse(path string, text []byte) (*Call, error) {
	p := &parser{path: path}
	c := &Call{Path: path}
	if root := p.document(text); root != nil {
		p.call(root, c)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// mistake is an error with its line.
type mistake struct {
	line int
	text string
}

type parser struct {
	path     string
	mistakes []mistake
}

func (p *parser) failf(line int, format string, args ...any) {
	if len(p.mistakes) < maxMistakes {
		p.mistakes = append(p.mistakes, mistake{line, fmt.Sprintf(format, args...)})
	}
}

func (p *parser) err() error {
	slices.SortStableFunc(p.mistakes, func(a, b mistake) int { return a.line - b.line })
	errs := make([]error, len(p.mistakes))
	for i, m := range p.mistakes {
		errs[i] = fmt.Errorf("%s:%d: %s", termtext.Line(p.path), m.line, termtext.Line(m.text))
	}
	return errors.Join(errs...)
}

// document returns the mapping of a file, or nil after a mistake.
func (p *parser) document(text []byte) *yaml.Node {
	if len(text) > MaxFile {
		p.failf(1, "the file is larger than 1 MiB")
		return nil
	}
	root, second, bad := yamltext.Parse(text)
	switch {
	case bad != nil:
		p.failf(bad.Line, "not valid YAML: %s", bad.Text)
	case second > 0:
		p.failf(second, "a second document begins here; write one call per file")
	case root == nil:
		p.failf(1, `the file is empty; write "call: NAME", "read: URI" or "prompt: NAME"`)
	case root.Kind != yaml.MappingNode:
		p.failf(root.Line, `the file must be a mapping with "call", "read" or "prompt", not %s`, describe(root))
	default:
		return root
	}
	return nil
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if n.ShortTag() == "!!null" {
		return "nothing"
	}
	return strconv.Quote(termtext.Cut(n.Value, 60))
}

// members returns the members of a mapping by name, and reports unknown and repeated keys.
// where is for messages, such as "a check".
func (p *parser) members(n *yaml.Node, where string, known []string) map[string]pair {
	all := make(map[string]pair)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		switch _, seen := all[name]; {
		case key.Kind != yaml.ScalarNode:
			p.failf(key.Line, "a key of %s must be a text", where)
		case seen:
			p.failf(key.Line, "key %q occurs twice in %s", name, where)
		case known != nil && !slices.Contains(known, name):
			p.failf(key.Line, "unknown key %q in %s%s", name, where, didYouMean(name, known))
		default:
			all[name] = pair{key, value}
		}
	}
	return all
}

type pair struct{ key, value *yaml.Node }

// synonyms maps keys of other programs to those of a file.
var synonyms = map[string]string{
	"tool": "call", "name": "call", "uri": "read", "resource": "read",
	"args": "arguments", "params": "arguments", "captures": "capture",
	"checks": "expect", "assert": "expect", "asserts": "expect",
	"jsonpath": "path", "equal": "equals", "duration": "time", "bytes": "size",
}

func didYouMean(word string, known []string) string {
	if s := synonyms[strings.ToLower(word)]; slices.Contains(known, s) {
		return suggest.DidYouMean(s)
	}
	f := suggest.New(word)
	for _, k := range known {
		f.Add(k, k)
	}
	if best := f.Best(); len(best) > 0 {
		return suggest.DidYouMean(best[0])
	}
	return "; known: " + strings.Join(known, ", ")
}

func (p *parser) call(root *yaml.Node, c *Call) {
	keys := p.members(root, "a saved call", callKeys)
	for _, kind := range []Kind{KindCall, KindRead, KindPrompt} {
		pair, ok := keys[string(kind)]
		switch {
		case !ok:
		case c.Kind != "":
			p.failf(pair.key.Line, "%q and %q are mutually exclusive; keep one of them", c.Kind, kind)
		default:
			c.Kind, c.Line = kind, pair.key.Line
			c.Name = p.template(pair.value, strconv.Quote(string(kind)))
		}
	}
	if c.Kind == "" {
		p.failf(root.Line, `one of "call", "read" and "prompt" is missing`)
	}
	if at, ok := keys["description"]; ok {
		c.Description = p.text(at.value, `"description"`)
	}
	if at, ok := keys["dev"]; ok {
		p.flag(at.value, `"dev"`, &c.Dev)
	}
	if at, ok := keys["arguments"]; ok {
		p.arguments(at, c)
	}
	if at, ok := keys["capture"]; ok {
		p.captures(at.value, c)
	}
	if at, ok := keys["expect"]; ok {
		p.checks(at.value, c)
	}
}

func (p *parser) arguments(at pair, c *Call) {
	n := at.value
	switch {
	case n.ShortTag() == "!!null":
		return
	case c.Kind == KindRead:
		p.failf(at.key.Line, `"arguments" cannot be combined with "read"`)
	case n.Kind != yaml.MappingNode:
		p.failf(n.Line, `"arguments" must be a mapping, not %s`, describe(n))
	default:
		c.Arguments, c.notes = p.json(n)
	}
	if c.Kind != KindPrompt {
		return
	}
	for i := 1; i < len(n.Content); i += 2 {
		if v := n.Content[i]; v.Kind != yaml.ScalarNode {
			p.failf(v.Line, "an argument of a prompt must be a text, not %s", describe(v))
		}
	}
}

var captureName = pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (p *parser) captures(n *yaml.Node, c *Call) {
	if n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.failf(n.Line, `"capture" must be a mapping of names to JSONPaths, not %s`, describe(n))
		return
	}
	if len(n.Content)/2 > maxItems {
		p.failf(n.Line, `"capture" has more than %d names`, maxItems)
		return
	}
	known := p.members(n, `"capture"`, nil)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		pair, ok := known[name]
		if !ok || pair.key != n.Content[i] {
			continue
		}
		if !captureName().MatchString(name) {
			p.failf(pair.key.Line, "%q is no name of a variable; use letters, digits and _", name)
		}
		c.Capture = append(c.Capture, Capture{Name: name, Path: p.pathText(pair.value), Line: pair.key.Line})
	}
}

func (p *parser) checks(n *yaml.Node, c *Call) {
	if n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		p.failf(n.Line, `"expect" must be a list, not %s`, describe(n))
		return
	}
	if len(n.Content) > maxItems {
		p.failf(n.Line, `"expect" has more than %d checks`, maxItems)
		return
	}
	for _, item := range n.Content {
		if item.Kind != yaml.MappingNode {
			p.failf(item.Line, `a check must be a mapping such as {path: "$.isError", equals: false}, not %s`, describe(item))
			continue
		}
		c.Expect = append(c.Expect, p.check(item))
	}
}

// check reads a check. Each kind is one main key with its further keys.
func (p *parser) check(n *yaml.Node) Check {
	before := len(p.mistakes)
	keys := p.members(n, "a check", checkKeys)
	check := Check{Line: n.Line}
	for _, kind := range []CheckKind{CheckPath, CheckTime, CheckSize, CheckSchema, CheckDefinition, CheckSame} {
		if _, ok := keys[string(kind)]; !ok {
			continue
		}
		if check.Kind != "" {
			p.failf(n.Line, "a check has %q and %q; write two checks", check.Kind, kind)
			return check
		}
		check.Kind = kind
	}
	if check.Kind == "" {
		if len(p.mistakes) == before {
			p.failf(n.Line, "a check needs one of path, time, size, schema, definition and same")
		}
		return check
	}
	for _, name := range checkKeys {
		pair, ok := keys[name]
		if !ok {
			continue
		}
		if owner := ownerOf(name); owner != check.Kind {
			p.failf(pair.key.Line, "%q needs %q in the same check", name, owner)
			continue
		}
		p.part(&check, name, pair.value)
	}
	if _, equals := keys["equals"]; check.Kind == CheckPath {
		_, matches := keys["matches"]
		if n := count(equals, matches, check.Exists != nil); n != 1 && len(p.mistakes) == before {
			p.failf(check.Line, "a check of a path needs one of equals, matches and exists")
		}
	}
	return check
}

func count(all ...bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

func ownerOf(key string) CheckKind {
	switch key {
	case "equals", "matches", "exists":
		return CheckPath
	case "ignore":
		return CheckSame
	}
	return CheckKind(key)
}

func (p *parser) part(c *Check, name string, n *yaml.Node) {
	at := strconv.Quote(name)
	switch name {
	case "path":
		c.Path = p.pathText(n)
	case "equals":
		c.Equals, c.notes = p.json(n)
	case "matches":
		c.Matches = p.pattern(n)
	case "exists":
		c.Exists = new(bool)
		p.flag(n, at, c.Exists)
	case "time":
		c.Time = p.duration(n)
	case "size":
		c.Size = p.size(n)
	case "schema", "same":
		var yes bool
		if p.flag(n, at, &yes) && !yes {
			p.failf(n.Line, "%s must be true; remove the check instead", at)
		}
	case "definition":
		c.Definition = p.text(n, at)
		if !digestSyntax().MatchString(c.Definition) {
			p.failf(n.Line, `%s must be "sha256:" and 64 hexadecimal digits`, at)
		}
	case "ignore":
		p.ignored(n, c)
	}
}

func (p *parser) ignored(n *yaml.Node, c *Check) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	if len(items) > maxItems {
		p.failf(n.Line, `"ignore" has more than %d paths`, maxItems)
		return
	}
	for _, item := range items {
		path := p.pathText(item)
		switch {
		case path == "$":
			p.failf(item.Line, `"ignore" cannot contain the whole answer`)
		case strings.Count(path, "..") > 1:
			p.failf(item.Line, `path %q: more than one ".." in "ignore"`, path)
		}
		c.Ignore = append(c.Ignore, path)
	}
}

var digestSyntax = pattern(`^sha256:[0-9a-f]{64}$`)

func (p *parser) duration(n *yaml.Node) time.Duration {
	d, ok := termtext.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || !ok || d == 0 {
		p.failf(n.Line, `"time" must be a duration such as "500ms" or "2s", not %s`, describe(n))
	}
	return d
}

func (p *parser) size(n *yaml.Node) int64 {
	size, ok := termtext.ParseSize(n.Value)
	if n.Kind != yaml.ScalarNode || !ok {
		p.failf(n.Line, `"size" must be a size such as "64KiB" or "2MB", not %s`, describe(n))
	}
	return size
}

func (p *parser) flag(n *yaml.Node, at string, dst *bool) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		p.failf(n.Line, "%s must be true or false, not %s", at, describe(n))
		return false
	}
	*dst = strings.EqualFold(n.Value, "true")
	return true
}

// text reads a text that is not empty.
func (p *parser) text(n *yaml.Node, at string) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" || n.ShortTag() == "!!null" {
		p.failf(n.Line, "%s must be a text, not %s", at, describe(n))
		return ""
	}
	return n.Value
}

// template reads a text with variables.
func (p *parser) template(n *yaml.Node, at string) string {
	s := p.text(n, at)
	p.checkVariables(n.Line, s)
	return s
}

// pathText reads a JSONPath.
func (p *parser) pathText(n *yaml.Node) string {
	s := p.text(n, "a path")
	if s == "" {
		return ""
	}
	if _, err := parsePath(s); err != nil {
		p.failf(n.Line, "path %q: %v", s, err)
	}
	return s
}

// pattern reads a regular expression with variables.
func (p *parser) pattern(n *yaml.Node) string {
	s := p.template(n, `"matches"`)
	sample, err := expand(s, 0, func(string, bool) (string, bool) { return "x", true })
	if err != nil {
		return s // reported
	}
	if size, err := definition.PatternSize(sample); err != nil {
		p.failf(n.Line, `"matches": %v`, err)
	} else if size > maxPattern {
		p.failf(n.Line, `"matches": the pattern is too complex`)
	}
	return s
}

// json converts a YAML value. Notes are of its strings with variables.
func (p *parser) json(n *yaml.Node) (json.RawMessage, notes) {
	c := converter{parser: p, notes: make(notes)}
	text := c.append(nil, n, "", 0)
	if rawjson.Valid(text) != nil {
		return nil, nil // reported
	}
	return text, c.notes
}
