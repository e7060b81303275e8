package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"goblin/registry/suggest"
)

// maxProblems applies per file and kind.
const maxProblems = 200

type reader struct {
	file    string
	dir     string // base of relative paths
	env     func(string) (string, bool)
	lenient bool // another client's JSON file
	columns bool // problems begin with their position, since there is no file

	errs      []Problem
	warns     []Problem
	mistakes  []Problem    // warnings that are mistakes of one server
	server    *serverState // the server being read, or nil
	servers   []serverState
	profiles  []map[string]*yaml.Node // the keys of each profile
	rules     []*yaml.Node            // the globs of clients
	colors    map[string]*yaml.Node   // the names in tui.colors
	inToken   bool                    // gateway.auth_token is being read
	badToken  bool                    // auth_token is set and wrong
	noToken   Problem                 // auth_token needs an unset variable
	lateToken *lateText               // auth_token has references
	fileVars  map[string]string       // from env_file
	fileNames []string                // non-empty ones of fileVars, sorted

	overriding       OverrideTarget                // owner of the overrides being read
	override         *OverrideTarget               // the override of a profile being read, or nil
	unreadyOverrides []unreadyOverride             // of profiles, because of unset variables
	overrides        map[OverrideTarget]*yaml.Node // their names in the file
	overriddenBy     []overriddenBy                // servers in profiles' overrides
	overridden       []string                      // variables in values of profiles' overrides

	expanded int      // bytes produced by expansion
	named    []string // variables outside of the base set in the last text

	secret  bool                            // references are allowed in the current text
	late    bool                            // the last text has references
	resolve func(secretRef) (string, error) // resolves references; nil while the file is read
	asked   map[string]*string              // variables looked up for a server; nil if unset
}

type serverState struct {
	key        *yaml.Node            // the name in the file
	seen       map[string]*yaml.Node // its keys
	issues     []Problem             // reasons why it cannot start
	perProject bool                  // ${project} stays until a client connects
	divided    bool                  // command was a whole line
	typo       bool                  // an unknown key probably means command or url
	other      map[keyPath][]string  // variables outside of the base set, by position
	late       []string              // references in its texts
	overridden []string              // variables in values of overrides
	oauth      map[string]*yaml.Node // the keys of its oauth
	mistakes   []Problem             // issues that are mistakes in the file
}

func (r *reader) problem(n *yaml.Node, format string, args ...any) Problem {
	text := fmt.Sprintf(format, args...)
	switch {
	case r.columns && n.Line > 1:
		text = fmt.Sprintf("line %d, column %d: %s", n.Line, n.Column, text)
	case r.columns:
		text = fmt.Sprintf("column %d: %s", n.Column, text)
	}
	return Problem{File: r.file, Line: n.Line, Text: text}
}

// fail reports a mistake. In another client's file, a mistake in a server's entry only
// disables that server.
func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	switch {
	case r.lenient && r.server != nil:
		r.issue(n, format, args...)
	case len(r.errs) < maxProblems:
		r.errs = append(r.errs, r.problem(n, format, args...))
	case len(r.errs) == maxProblems:
		r.errs = append(r.errs, Problem{File: r.file, Line: n.Line, Text: "too many mistakes; the rest is not shown"})
	}
}

func (r *reader) warn(n *yaml.Node, format string, args ...any) {
	if len(r.warns) < maxProblems {
		r.warns = append(r.warns, r.problem(n, format, args...))
	}
}

// reject reports a wrong value. A literal one is a mistake. One from a variable only
// disables its server.
func (r *reader) reject(at keyPath, n *yaml.Node, complaint string) {
	if r.server != nil && strings.Contains(n.Value, "${") {
		r.issue(n, "%s %s", at, complaint)
		return
	}
	if r.override != nil && strings.Contains(n.Value, "${") {
		r.postpone(n, "%s %s", at, complaint)
		return
	}
	r.fail(n, "%s %s", at, complaint)
}

// postpone records why an override of a profile is not ready. The rest of the config
// stays valid.
func (r *reader) postpone(n *yaml.Node, format string, args ...any) {
	of := *r.override
	kind := strings.TrimSuffix(of.Kind, "s")
	until := fmt.Sprintf("clients of profile %s do not see %s %s of server %s", quote(of.Profile), kind, quote(of.Name), quote(of.Server))
	if of.Kind == onlyTexts {
		until = fmt.Sprintf("clients of profile %s see %s %s of server %s without the override", quote(of.Profile), kind, quote(of.Name), quote(of.Server))
	}
	why := fmt.Sprintf(format, args...)
	r.warn(n, "%s (until then %s)", why, until)
	if !r.isUnready(of) {
		r.unreadyOverrides = append(r.unreadyOverrides, unreadyOverride{of, why})
	}
}

func (r *reader) issue(n *yaml.Node, format string, args ...any) {
	if len(r.server.issues) < maxProblems {
		r.server.issues = append(r.server.issues, r.problem(n, format, args...))
	}
}

// pair contains no aliases.
type pair struct{ key, val *yaml.Node }

// pairs returns the entries of a mapping in order, without duplicates. It merges "<<" as
// in YAML 1.1: own keys win, then earlier merges. An empty value counts as an empty
// mapping, which remains when all entries are commented out.
func (r *reader) pairs(at keyPath, n *yaml.Node) []pair {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s must be a mapping, not %s", at, describe(n))
		return nil
	}
	var own []pair
	var merges []*yaml.Node
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := target(n.Content[i]), target(n.Content[i+1])
		if k.ShortTag() == "!!merge" {
			if v.Kind == yaml.SequenceNode {
				merges = append(merges, v.Content...)
			} else {
				merges = append(merges, v)
			}
			continue
		}
		if k.Kind != yaml.ScalarNode || isNull(k) {
			r.fail(n.Content[i], "a key of %s must be text, not %s", at.whole(), describe(k))
			continue
		}
		if line, ok := lines[k.Value]; ok && r.lenient { // like JSON parsers: the last one wins
			r.warn(n.Content[i], "duplicate key %s%s replaces the one on line %d", quoteKey(k.Value), at.in(), line)
			own = slices.DeleteFunc(own, func(p pair) bool { return p.key.Value == k.Value })
		} else if ok {
			r.fail(n.Content[i], "duplicate key %s%s; first on line %d", quoteKey(k.Value), at.in(), line)
			continue
		}
		lines[k.Value] = n.Content[i].Line
		own = append(own, pair{k, v})
	}
	for _, m := range merges {
		for _, p := range r.pairs(keyPath{self: `"<<"` + at.in()}, target(m)) {
			if _, ok := lines[p.key.Value]; !ok {
				lines[p.key.Value] = p.key.Line
				own = append(own, p)
			}
		}
	}
	return own
}

func (p keyPath) whole() string {
	if p == (keyPath{}) {
		return "the file"
	}
	return p.inner()
}

func (p keyPath) in() string {
	if p == (keyPath{}) {
		return " at the top level"
	}
	return " in " + p.inner()
}

type field[T any] struct {
	name   string
	schema func(def *T) object
	read   func(r *reader, at keyPath, n *yaml.Node, dst *T)
	same   func(a, b *T) bool
	legacy bool // other clients' key: only in their files, not in the schema
}

func key[T, V any](name, doc string, k kind[V], at func(*T) *V) field[T] {
	return field[T]{
		name: name,
		schema: func(def *T) object {
			s := k.schema(*at(def))
			s["description"] = doc
			return s
		},
		read: func(r *reader, p keyPath, n *yaml.Node, dst *T) { k.read(r, p, n, at(dst)) },
		same: func(a, b *T) bool { return reflect.DeepEqual(at(a), at(b)) },
	}
}

// readTable returns the nodes of the present keys.
func readTable[T any](r *reader, at keyPath, table []field[T], n *yaml.Node, dst *T) map[string]*yaml.Node {
	seen := make(map[string]*yaml.Node)
	for _, p := range r.pairs(at, n) {
		i := slices.IndexFunc(table, func(f field[T]) bool {
			return f.name == p.key.Value && (r.lenient || !f.legacy)
		})
		if i < 0 {
			r.unknown(at, p.key, names(table))
			continue
		}
		seen[p.key.Value] = p.key
		table[i].read(r, at.key(p.key.Value), p.val, dst)
	}
	return seen
}

func (r *reader) unknown(at keyPath, key *yaml.Node, known []string) {
	if at == (keyPath{}) && r.lenient {
		return // other clients keep their own settings there
	}
	if len(r.errs) > maxProblems {
		return // suggestions take time
	}
	if r.lenient && r.server != nil && (at.self != "" || at.name == "oauth") {
		r.unknownForeign(at, key, known)
		return
	}
	if guess := nearest(key.Value, known); r.server != nil && (guess == "command" || guess == "url") {
		r.server.typo = true
	}
	tail := didYouMean(key.Value, "known here:", known)
	if word, _, colon := strings.Cut(key.Value, ":"); colon && slices.Contains(known, word) {
		tail = fmt.Sprintf("; write a space after %q", word+":")
	}
	if at == (keyPath{}) {
		for name, keys := range sections() {
			if slices.Contains(keys, key.Value) { // the key is unique to this section
				tail = "; it belongs in " + quote(name)
			}
		}
	}
	r.fail(key, "unknown key %s%s%s", quoteKey(key.Value), at.in(), tail)
}

func (r *reader) unknownForeign(at keyPath, key *yaml.Node, known []string) {
	if isComment(key.Value) {
		r.warn(key, "%s%s is a comment and is ignored", quoteKey(key.Value), at.in())
		return
	}
	tail := ""
	if s := nearest(key.Value, known); s != "" {
		tail = suggest.DidYouMean(s)
	}
	r.warn(key, "unknown key %s%s is ignored%s", quoteKey(key.Value), at.in(), tail)
}

func names[T any](table []field[T]) []string {
	var list []string
	for _, f := range table {
		if !f.legacy {
			list = append(list, f.name)
		}
	}
	return list
}

// text reads and expands a scalar. With loose, numbers and booleans count as text. If ok
// is false, the reason has been reported.
func (r *reader) text(at keyPath, n *yaml.Node, loose bool) (s string, ok bool) {
	switch tag := n.ShortTag(); {
	case isNull(n):
		r.fail(n, "%s is empty; give it a value (\"\" for an empty text) or remove the key", at)
		return "", false
	case n.Kind == yaml.ScalarNode && tag == "!!str":
	case n.Kind == yaml.ScalarNode && isPlain(tag) && loose:
		return n.Value, true
	case n.Kind == yaml.ScalarNode && isPlain(tag):
		r.fail(n, "%s must be text, not %s; put it in quotes", at, describe(n))
		return "", false
	default:
		r.fail(n, "%s must be text, not %s", at, describe(n))
		return "", false
	}
	e := expansion{env: r.ask, project: r.server != nil && r.server.perProject, refers: r.resolveReference}
	s = e.expand(n.Value, 0)
	r.noteReferences(at, n, &e)
	if e.used {
		if r.expanded += len(s); r.expanded > maxExpansion && e.wrong == "" {
			e.wrong = "brings the file's expanded variables above 16 MiB"
		}
	}
	r.noteVariables(at, n, &e)
	switch {
	case e.wrong != "" && r.lenient:
		r.reject(at, n, e.wrong)
	case e.wrong != "":
		r.fail(n, "%s %s", at, e.wrong)
	}
	return s, e.wrong == "" && len(e.unset)+len(e.failed) == 0
}

func (r *reader) noteVariables(at keyPath, n *yaml.Node, e *expansion) {
	r.named = e.other
	if len(e.other) > 0 && r.server != nil {
		if r.server.other == nil {
			r.server.other = make(map[keyPath][]string)
		}
		r.server.other[at] = e.other
	}
	for _, name := range e.unset {
		format := "${%s} is not set, but %s needs it; set it or write ${%s:-default}"
		if name == "project" && r.server != nil {
			format += "; ${project} requires isolation: project"
		}
		switch {
		case r.server != nil:
			r.issue(n, format, name, at, name)
		case r.override != nil:
			r.postpone(n, format, name, at, name)
		case r.inToken:
			r.noToken = r.problem(n, format, name, at, name)
		default:
			r.fail(n, format, name, at, name)
		}
	}
}

func target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func isPlain(tag string) bool {
	return tag == "!!int" || tag == "!!float" || tag == "!!bool" || tag == "!!timestamp"
}

// describe returns the type of a node, never its value.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!str":
		return "text"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a date"
	default:
		return `a value with a tag; a text that begins with "!" needs quotes`
	}
}
