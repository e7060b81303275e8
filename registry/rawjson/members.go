// Members knows which members of an MCP message decide something: where a
// request goes, whom a notification concerns, whose URI stands in a result. It
// finds the members that another reader of the same text may take for one of
// them.
//
// Readers of JSON differ. Goblin compares the names of members exactly and takes
// the last of several. Go's encoding/json, and with it mcp-go and the Go SDK,
// ignores case, by Unicode's simple folding ("taſk" is "task"), and others take
// the first of several, or end a name at a NUL. What was checked by one reader must be what the other
// runs, so such members are refused in requests ([KeyTree.Check]) and taken out of
// all else ([KeyTree.Clean]).
//
// It owns the tables of these members, per method and direction, and nothing
// else. Where a URI of the server stands in a result is told by the same walk, so
// that one reader decides what is a link ([KeyTree.Read]). Members that decide nothing (arguments of a tool, structured content, what
// a revision adds later) are never looked at. All functions are pure. The texts
// must be valid JSON; the time grows with their length, and a text without doubt
// is neither copied nor decoded.

package rawjson

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// KeyTree names the members of an object that decide, and what decides inside of
// their values. A nil KeyTree names none.
type KeyTree struct {
	members   []treeMember
	first     byteSet  // bytes with which a key may begin that is one of them, or folds to one
	element   *KeyTree // of the elements, if the value is an array
	anyMember *KeyTree // of the value of every member, whatever its name
	uri       bool     // the value is a URI of the server
	block     bool     // a content block: what is in it depends on its "type", the first member
}

type treeMember struct {
	name  string
	ascii bool // the name is
	tree  *KeyTree
}

// byteSet has a bit for each byte. The trees are made at every start of Goblin, so they
// are small.
type byteSet [4]uint64

func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

const everyByte = 1<<64 - 1

// Visitor is told of the URIs in a text.
type Visitor interface {
	// URI gets the raw value of a member that is a URI of the server, in the order
	// of the text, a part of which it is. It may be any JSON value.
	URI(raw []byte)
}

// maxMembers is how many members a KeyTree can have.
const maxMembers = 64

// newTree returns a KeyTree of names and the trees of their values: a name, or a name and a
// *KeyTree, one after another.
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

// Paths is the KeyTree of an object in which the values at these paths decide. Of one
// object no more than 64 members count.
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

// arrayTree returns the KeyTree of an array with elements of the given tree.
func arrayTree(of *KeyTree) *KeyTree { return &KeyTree{element: of} }

// AmbiguousError is a member that readers may take for one that decides.
type AmbiguousError struct {
	Member string // as it stands in the text, JSON's quotes included, at most 100 bytes
	Name   string // of the member that decides, with the names above it
}

func (e *AmbiguousError) Error() string {
	if name, _ := String([]byte(e.Member)); strings.HasSuffix("."+e.Name, "."+name) {
		return fmt.Sprintf("member %q stands more than once", e.Name)
	}
	return fmt.Sprintf("readers may take member %s for %q; leave it out", e.Member, e.Name)
}

// Check returns an *[AmbiguousError] for the first member of a text that readers
// may take for one that decides, nil when there is none.
func (t *KeyTree) Check(text []byte) error {
	if e := t.firstAmbiguous(nil, text, nil); e != nil {
		return e
	}
	return nil // not a nil *AmbiguousError
}

// Clean returns the text without the members that readers may take for one that
// decides; of several with its very name the last stays. A text without such
// members is returned as it is, the same slice. shape reads the text, see
// [rawjson.Layout]; it may be nil, and does not fit a text that was changed.
func (t *KeyTree) Clean(shape *Layout, text []byte) []byte {
	if t.firstAmbiguous(shape, text, nil) == nil {
		return text
	}
	return t.appendClean(make([]byte, 0, len(text)), text)
}

// Read tells of the URIs in a text that has no members in doubt. It returns false,
// maybe after it told of some, when there are such: see [KeyTree.Clean].
func (t *KeyTree) Read(shape *Layout, text []byte, to Visitor) bool {
	return t.firstAmbiguous(shape, text, to) == nil
}

// Split is Check that gives the raw values of the members of an object, too, each at the
// place that [KeyTree.Place] tells, if values has it; nil for those that are not there.
func (t *KeyTree) Split(text []byte, values [][]byte) error {
	if i := AfterSpace(text, 0); i < len(text) && text[i] == '{' {
		if _, e := t.walkMembers(nil, text, i, nil, values); e != nil {
			return e
		}
	}
	return nil
}

// Place is that of a member's value in what Split fills; -1 for one that the KeyTree does not
// name.
func (t *KeyTree) Place(name string) int {
	return slices.IndexFunc(t.members, func(m treeMember) bool { return m.name == name })
}

// firstAmbiguous returns the first ambiguous member. to may be nil.
func (t *KeyTree) firstAmbiguous(shape *Layout, v []byte, to Visitor) *AmbiguousError {
	_, err := t.walkValue(shape, v, AfterSpace(v, 0), to)
	return err
}

// walkValue is firstAmbiguous for the value that begins at i. It returns the index after that value.
// It scans the text once, however deep the tree is.
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

// walkMembers puts the values of the members into values, too, as far as it has places.
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

// walkBlock is walkMembers for a content block: a link has a URI, and an embedded resource
// has one inside.
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

// addParent prepends the name of the enclosing member.
func (e *AmbiguousError) addParent(name string) *AmbiguousError {
	e.Name = name + "." + e.Name
	return e
}

// match returns the place of the member that k is, or folds to; -1 for none.
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
		// Of ASCII, only what is as long folds to it.
		if m := &t.members[i]; (len(name) == len(m.name) || !m.ascii) && strings.EqualFold(string(name), m.name) {
			return i, false
		}
	}
	return -1, false
}

// matchDecoded is match for a key with escapes, or beyond ASCII.
func (t *KeyTree) matchDecoded(k Key) (at int, exact bool) {
	name := string(k.Name())
	start, _, _ := strings.Cut(name, "\x00") // where readers in C stop
	for i := range t.members {
		if m := &t.members[i]; strings.EqualFold(start, m.name) {
			return i, name == m.name
		}
	}
	return -1, false
}

// appendClean appends the value without its ambiguous members.
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
	var last [maxMembers]int // the place of the last member of each name, from 1
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
