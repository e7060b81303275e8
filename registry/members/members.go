// Package members knows which members of an MCP message decide something: where a
// request goes, whom a notification concerns, whose URI stands in a result. It
// finds the members that another reader of the same text may take for one of
// them.
//
// Readers of JSON differ. Goblin compares the names of members exactly and takes
// the last of several. Go's encoding/json, and with it mcp-go and the Go SDK,
// ignores case, by Unicode's simple folding ("taſk" is "task"), and others take
// the first of several, or end a name at a NUL. What was checked by one reader must be what the other
// runs, so such members are refused in requests ([Tree.Check]) and taken out of
// all else ([Tree.Clean]).
//
// It owns the tables of these members, per method and direction, and nothing
// else. Members that decide nothing (arguments of a tool, structured content, what
// a revision adds later) are never looked at. All functions are pure. The texts
// must be valid JSON; the time grows with their length, and a text without doubt
// is neither copied nor decoded.
package members

import (
	"bytes"
	"fmt"
	"strings"

	"goblin/registry/rawjson"
)

// Tree names the members of an object that decide, and what decides inside of
// their values. A nil Tree names none.
type Tree struct {
	members []member
	each    *Tree // of the elements, if the value is an array
	values  *Tree // of the value of every member, whatever its name
}

type member struct {
	name  string
	bytes []byte // the name
	tree  *Tree
}

// maxMembers is how many members a Tree can have.
const maxMembers = 32

// object makes a Tree of names and the trees of their values: a name, or a name
// and a *Tree, one after another.
func object(parts ...any) *Tree {
	t := &Tree{}
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			t.members = append(t.members, member{name: p, bytes: []byte(p)})
		case *Tree:
			t.members[len(t.members)-1].tree = p
		}
	}
	if len(t.members) > maxMembers {
		panic("members: too many names in a tree")
	}
	return t
}

// array is the Tree of an array with such elements.
func array(of *Tree) *Tree { return &Tree{each: of} }

// AmbiguousError is a member that readers may take for one that decides.
type AmbiguousError struct {
	Member string // as it stands in the text, JSON's quotes included, at most 100 bytes
	Name   string // of the member that decides, with the names above it
}

func (e *AmbiguousError) Error() string {
	if name, _ := rawjson.String([]byte(e.Member)); strings.HasSuffix("."+e.Name, "."+name) {
		return fmt.Sprintf("member %q stands more than once", e.Name)
	}
	return fmt.Sprintf("readers may take member %s for %q; leave it out", e.Member, e.Name)
}

// Check returns an *[AmbiguousError] for the first member of a text that readers
// may take for one that decides, nil when there is none.
func (t *Tree) Check(text []byte) error {
	if e := t.find(nil, text); e != nil {
		return e
	}
	return nil // not a nil *AmbiguousError
}

// Clean returns the text without the members that readers may take for one that
// decides; of several with its very name the last stays. A text without such
// members is returned as it is, the same slice. shape reads the text, see
// [rawjson.Shape]; it may be nil, and does not fit a text that was changed.
func (t *Tree) Clean(shape *rawjson.Shape, text []byte) []byte {
	if t.find(shape, text) == nil {
		return text
	}
	return t.append(make([]byte, 0, len(text)), text)
}

// find returns the first member in doubt.
func (t *Tree) find(shape *rawjson.Shape, v []byte) *AmbiguousError {
	if t == nil {
		return nil
	}
	if t.each != nil {
		for e := range shape.Elements(v) {
			if err := t.each.find(shape, e); err != nil {
				return err
			}
		}
	}
	if t.values == nil && len(t.members) == 0 {
		return nil
	}
	seen := uint32(0)
	for k, value := range shape.Members(v) {
		if i, exact := t.match(k); i >= 0 {
			m := &t.members[i]
			if !exact || seen&(1<<i) != 0 {
				return &AmbiguousError{Member: string(k[:min(len(k), 100)]), Name: m.name}
			}
			seen |= 1 << i
			if err := m.tree.find(shape, value); err != nil {
				err.Name = m.name + "." + err.Name
				return err
			}
			continue
		}
		if err := t.values.find(shape, value); err != nil {
			return err
		}
	}
	return nil
}

// match returns the place of the member that k is, or folds to; -1 for none.
func (t *Tree) match(k rawjson.Key) (at int, exact bool) {
	for i := range t.members {
		if string(k[1:len(k)-1]) == t.members[i].name {
			return i, true
		}
	}
	var name, start []byte
	for i := range t.members {
		m := &t.members[i]
		if name == nil {
			if !mayFold(k, m.name) {
				continue
			}
			name = decoded(k)
			start, _, _ = bytes.Cut(name, []byte{0}) // where readers in C stop
		}
		if bytes.EqualFold(start, m.bytes) {
			return i, string(name) == m.name
		}
	}
	return -1, false
}

// mayFold is false for most of the keys that do not fold to a name, at little cost:
// the first letters differ, and none of them is more than a byte.
func mayFold(k rawjson.Key, name string) bool {
	c := k[1]
	return c == '\\' || c >= 0x80 || c|0x20 == name[0]|0x20
}

// decoded is the name that a key stands for.
func decoded(k rawjson.Key) []byte {
	if bytes.IndexByte(k, '\\') < 0 {
		return k[1 : len(k)-1]
	}
	name, _ := rawjson.String(k)
	return []byte(name)
}

// append appends the value without the members in doubt.
func (t *Tree) append(dst, v []byte) []byte {
	switch {
	case t != nil && t.each != nil && rawjson.IsArray(v):
		dst = append(dst, '[')
		first := true
		for e := range rawjson.Elements(v) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = t.each.append(dst, e)
		}
		return append(dst, ']')
	case t == nil || !rawjson.IsObject(v):
		return append(dst, v...)
	}
	var last [maxMembers]int // the place of the last member of each name, from 1
	n := 0
	for k := range rawjson.Members(v) {
		n++
		if i, exact := t.match(k); exact {
			last[i] = n
		}
	}
	dst = append(dst, '{')
	at, kept := 0, false
	for k, value := range rawjson.Members(v) {
		at++
		i, exact := t.match(k)
		tree := t.values
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
		dst = tree.append(dst, value)
	}
	return append(dst, '}')
}
