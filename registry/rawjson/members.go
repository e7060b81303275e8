package rawjson

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// KeyTree lists the security-relevant members of an object and, recursively, of their
// values. They decide a request's destination, a notification's recipient, or the owner
// of a URI in a result. Nil lists none.
//
// JSON readers differ on ambiguous names. Goblin compares member names exactly and uses
// the last duplicate. Go's encoding/json, used by mcp-go and the Go SDK, ignores case
// with Unicode's simple folding ("taſk" is "task"). Others use the first duplicate or end
// a name at a NUL. The checked value must be the one that is used. So ambiguous members
// are rejected in requests ([KeyTree.Check]) and removed elsewhere ([KeyTree.Clean]).
//
// The same walk finds the server's URIs in a result, so that one reader decides what is a
// link ([KeyTree.Read]). Other members, such as tool arguments, are never examined. Texts
// must be valid JSON. The cost is linear in their length; unambiguous texts are neither
// copied nor decoded.
type KeyTree struct {
	members   []treeMember
	first     byteSet  // possible first bytes of a key that is, or folds to, a member
	element   *KeyTree // of the elements, if the value is an array
	anyMember *KeyTree // for the values of all other members
	uri       bool     // the value is a URI of the server
	block     bool     // a content block: its relevant members depend on "type", the first one
}

type treeMember struct {
	name  string
	ascii bool
	tree  *KeyTree
}

// byteSet has a bit for each byte. It is small because each start of Goblin creates all
// trees.
type byteSet [4]uint64

func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

const everyByte = 1<<64 - 1

// Visitor receives the URIs in a text.
type Visitor interface {
	// URI receives the raw value of a URI member, which may be any JSON value. It is a
	// slice of the text, in the text's order.
	URI(raw []byte)
}

const maxMembers = 64

// newTree returns a KeyTree of names, each optionally followed by the *KeyTree of its
// value.
func newTree(parts ...any) *KeyTree {
	t := &KeyTree{members: make([]treeMember, 0, len(parts))}
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			t.members = append(t.members, treeMember{name: p, ascii: isASCII(p)})
		case *KeyTree:
			t.members[len(t.members)-1].tree = p
		}
	}
	if len(t.members) > maxMembers {
		panic("members: too many names in a tree")
	}
	t.first = byteSet{2: everyByte, 3: everyByte} // from utf8.RuneSelf on
	t.first.add('\\')
	for _, m := range t.members {
		if m.name == "" || m.name[0] >= utf8.RuneSelf { // may begin with any byte
			t.first = byteSet{everyByte, everyByte, everyByte, everyByte}
			break
		}
		c := m.name[0]
		t.first.add(c)
		if 'a' <= c|0x20 && c|0x20 <= 'z' {
			t.first.add(c ^ 0x20)
		}
	}
	return t
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// Paths returns the KeyTree of an object whose relevant values are at these paths. It
// uses at most 64 members of one object.
func Paths(paths ...[]string) *KeyTree {
	inner := map[string][][]string{}
	var names []string
	for _, p := range paths {
		if len(p) == 0 {
			continue
		}
		if _, known := inner[p[0]]; !known && len(names) < maxMembers {
			names = append(names, p[0])
			inner[p[0]] = nil
		}
		inner[p[0]] = append(inner[p[0]], p[1:])
	}
	var parts []any
	for _, name := range names {
		parts = append(parts, name)
		if len(inner[name]) > 0 {
			parts = append(parts, Paths(inner[name]...))
		}
	}
	return newTree(parts...)
}

func arrayTree(of *KeyTree) *KeyTree { return &KeyTree{element: of} }

// AmbiguousError reports a member that some readers confuse with a relevant one.
type AmbiguousError struct {
	Member string // raw, quotes included, at most 100 bytes
	Name   string // the relevant member, with the names above it
}

func (e *AmbiguousError) Error() string {
	if name, _ := String([]byte(e.Member)); strings.HasSuffix("."+e.Name, "."+name) {
		return fmt.Sprintf("member %q occurs more than once", e.Name)
	}
	return fmt.Sprintf("member %s can be mistaken for %q; omit it", e.Member, e.Name)
}

// Check returns an *[AmbiguousError] for the first ambiguous member of a text, or nil.
func (t *KeyTree) Check(text []byte) error {
	if e := t.firstAmbiguous(nil, text, nil); e != nil {
		return e
	}
	return nil // not a nil *AmbiguousError
}

// Clean returns the text without ambiguous members, keeping the last of exact duplicates.
// It returns the same slice if there are none. shape may be nil, and is invalid for the
// changed text; see [Layout].
func (t *KeyTree) Clean(shape *Layout, text []byte) []byte {
	if t.firstAmbiguous(shape, text, nil) == nil {
		return text
	}
	return t.appendClean(make([]byte, 0, len(text)), text)
}

// Read passes the URIs in a text to the visitor. It returns false, possibly after some
// calls, if the text has ambiguous members; see [KeyTree.Clean].
func (t *KeyTree) Read(shape *Layout, text []byte, to Visitor) bool {
	return t.firstAmbiguous(shape, text, to) == nil
}

// Split is Check that also stores the raw values of an object's members in values, at the
// index of [KeyTree.Place]. Values of missing members stay unchanged.
func (t *KeyTree) Split(text []byte, values [][]byte) error {
	if i := AfterSpace(text, 0); i < len(text) && text[i] == '{' {
		if _, e := t.walkMembers(nil, text, i, nil, values); e != nil {
			return e
		}
	}
	return nil
}

// Place returns the index of a member's value in Split, or -1.
func (t *KeyTree) Place(name string) int {
	return slices.IndexFunc(t.members, func(m treeMember) bool { return m.name == name })
}

func (t *KeyTree) firstAmbiguous(shape *Layout, v []byte, to Visitor) *AmbiguousError {
	_, err := t.walkValue(shape, v, AfterSpace(v, 0), to)
	return err
}

// walkValue is firstAmbiguous for the value at i. It returns the index after that value.
// It scans the text once, regardless of the depth of the tree.
func (t *KeyTree) walkValue(shape *Layout, text []byte, i int, to Visitor) (end int, err *AmbiguousError) {
	switch {
	case t == nil || i >= len(text):
	case t.uri && to != nil:
		end = shape.After(text, i)
		to.URI(text[i:end])
		return end, nil
	case text[i] == '[' && t.element != nil:
		return t.walkElements(shape, text, i, to)
	case text[i] == '{' && (t.anyMember != nil || len(t.members) > 0):
		if t.block {
			return t.walkBlock(shape, text, i, to)
		}
		return t.walkMembers(shape, text, i, to, nil)
	}
	return shape.After(text, i), nil
}

func (t *KeyTree) walkElements(shape *Layout, text []byte, i int, to Visitor) (end int, err *AmbiguousError) {
	for i = AfterSpace(text, i+1); i < len(text) && text[i] != ']'; i = AfterSpace(text, i+1) {
		if i, err = t.element.walkValue(shape, text, i, to); err != nil {
			return i, err
		}
		if i = AfterSpace(text, i); i >= len(text) || text[i] != ',' {
			break
		}
	}
	return i + 1, nil
}

func (t *KeyTree) walkMembers(shape *Layout, text []byte, i int, to Visitor, values [][]byte) (end int, err *AmbiguousError) {
	seen := uint64(0)
	for i = AfterSpace(text, i+1); i < len(text) && text[i] == '"'; i = AfterSpace(text, i+1) {
		end := AfterString(text, i)
		k := Key(text[i:end])
		if i = AfterSpace(text, end); i >= len(text) || text[i] != ':' {
			break
		}
		i = AfterSpace(text, i+1)
		tree := t.anyMember
		at, exact := t.match(k)
		if at >= 0 {
			if !exact || seen&(1<<at) != 0 {
				return i, &AmbiguousError{Member: string(k[:min(len(k), 100)]), Name: t.members[at].name}
			}
			seen |= 1 << at
			tree = t.members[at].tree
		}
		if end, err = tree.walkValue(shape, text, i, to); err != nil {
			if at >= 0 {
				err = err.addParent(t.members[at].name)
			}
			return end, err
		}
		if at >= 0 && at < len(values) {
			values[at] = text[i:end]
		}
		if i = AfterSpace(text, end); i >= len(text) || text[i] != ',' {
			break
		}
	}
	return i + 1, nil
}

// In a content block, a link has a URI, and an embedded resource contains one.
func (t *KeyTree) walkBlock(shape *Layout, text []byte, i int, to Visitor) (end int, err *AmbiguousError) {
	var parts [3][]byte
	if end, err = t.walkMembers(shape, text, i, nil, parts[:]); err != nil {
		return end, err
	}
	if to == nil {
		return end, nil
	}
	switch kind, uri, resource := Key(parts[0]), parts[1], parts[2]; {
	case uri != nil && kind.Is("resource_link"):
		to.URI(uri)
	case kind.Is("resource"):
		err = t.members[2].tree.firstAmbiguous(shape, resource, to)
	}
	return end, err
}

func (e *AmbiguousError) addParent(name string) *AmbiguousError {
	e.Name = name + "." + e.Name
	return e
}

// match returns the index of the member that k is, or folds to, or -1.
func (t *KeyTree) match(k Key) (at int, exact bool) {
	if !t.first.has(k[1]) {
		return -1, false
	}
	for i := range t.members {
		if string(k[1:len(k)-1]) == t.members[i].name {
			return i, true
		}
	}
	name := k[1 : len(k)-1]
	for _, c := range name {
		if c == '\\' || c >= utf8.RuneSelf {
			return t.matchDecoded(k)
		}
	}
	for i := range t.members {
		// Among ASCII names, only equal lengths fold to each other.
		if m := &t.members[i]; (len(name) == len(m.name) || !m.ascii) && strings.EqualFold(string(name), m.name) {
			return i, false
		}
	}
	return -1, false
}

func (t *KeyTree) matchDecoded(k Key) (at int, exact bool) {
	name := string(k.Name())
	start, _, _ := strings.Cut(name, "\x00") // C readers stop here
	for i := range t.members {
		if m := &t.members[i]; strings.EqualFold(start, m.name) {
			return i, name == m.name
		}
	}
	return -1, false
}

func (t *KeyTree) appendClean(dst, v []byte) []byte {
	switch {
	case t != nil && t.element != nil && IsArray(v):
		dst = append(dst, '[')
		first := true
		for e := range Elements(v) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = t.element.appendClean(dst, e)
		}
		return append(dst, ']')
	case t == nil || !IsObject(v):
		return append(dst, v...)
	}
	var last [maxMembers]int // number of the last member of each name, from 1
	n := 0
	for k := range Members(v) {
		n++
		if i, exact := t.match(k); exact {
			last[i] = n
		}
	}
	dst = append(dst, '{')
	at, kept := 0, false
	for k, value := range Members(v) {
		at++
		i, exact := t.match(k)
		tree := t.anyMember
		if i >= 0 {
			if !exact || last[i] != at {
				continue
			}
			tree = t.members[i].tree
		}
		if kept {
			dst = append(dst, ',')
		}
		kept = true
		dst = append(append(dst, k...), ':')
		dst = tree.appendClean(dst, value)
	}
	return append(dst, '}')
}
