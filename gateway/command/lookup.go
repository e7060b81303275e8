// Lookup finds what users of the shell mean by names of tools, prompts, resources and
// templates: as clients see them, as their servers call them, and globs on either. It must
// not know where the names are from, nor what becomes of the things. A [Book] belongs to one
// goroutine.

package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"goblin/gateway/cli"
	"goblin/gateway/config"
)

// Thing is something that has names.
type Thing struct {
	Server, Name string // the server's own
	Listed       string // by which clients see it; "" for what is not listed now
	// Seen is the name by which the clients see it that somebody asks about, which overrides
	// may give; "" where that is about all clients, or they do not have its server.
	Seen string
}

// String is the name by which those clients know it, if they do.
func (t *Thing) String() string { return cmp.Or(t.Seen, t.Listed, t.full()) }

func (t *Thing) full() string { return t.Server + "/" + t.Name }

// Names are those of things.
func Names(things []Thing) []string {
	names := make([]string, len(things))
	for i := range things {
		names[i] = things[i].String()
	}
	return names
}

// NameIndex has all that names can mean.
type NameIndex struct {
	// Profile is the profile whose clients the names are about; "" for all clients.
	Profile string
	// Outside lists entries of servers that the profile does not have.
	Outside []Thing

	kind   string
	things []Thing
	at     map[[2]string]int
}

// NewNameIndex is an empty book of a kind of things, such as "tool".
func NewNameIndex(kind string) *NameIndex { return &NameIndex{kind: kind, at: make(map[[2]string]int)} }

func (b *NameIndex) thing(server, name string) *Thing {
	at, ok := b.at[[2]string{server, name}]
	if !ok {
		at = len(b.things)
		b.at[[2]string{server, name}] = at
		b.things = append(b.things, Thing{Server: server, Name: name})
	}
	return &b.things[at]
}

// Add puts in what a server calls name and clients listed, which may be "".
func (b *NameIndex) Add(server, name, listed string) {
	if t := b.thing(server, name); listed != "" {
		t.Listed = listed
	}
}

// See says what the clients call a thing that somebody asks about.
func (b *NameIndex) See(server, name, seen string) { b.thing(server, name).Seen = seen }

// lookupNames are how a name may mean a thing, the surest first.
var lookupNames = []func(t *Thing, name string) bool{
	func(t *Thing, name string) bool { return t.Seen != "" && name == t.Seen },
	func(t *Thing, name string) bool { return t.Listed != "" && name == t.Listed || name == t.full() },
	func(t *Thing, name string) bool { return name == t.Name },
	func(t *Thing, glob string) bool {
		return t.Seen != "" && config.Glob(glob, t.Seen) || t.Listed != "" && config.Glob(glob, t.Listed) || config.Glob(glob, t.full())
	},
}

// bare is the way by which a name means one thing only.
const bare = 2

// Find returns what names mean, each thing once. The error tells exit code and reason: one
// of them means nothing, or is what several servers call something.
func (b *NameIndex) Find(names ...string) (found []Thing, err error) {
	for _, name := range names {
		means, err := b.find(name)
		switch {
		case err != nil:
			return nil, err
		case len(means) == 0:
			return nil, b.none(name)
		}
		for _, t := range means {
			if !slices.Contains(found, t) {
				found = append(found, t)
			}
		}
	}
	return found, nil
}

func (b *NameIndex) find(name string) (found []Thing, err error) {
	for way, fits := range lookupNames {
		for i := range b.things {
			if fits(&b.things[i], name) {
				found = append(found, b.things[i])
			}
		}
		if way == bare {
			if seen := onlySeen(found); len(seen) > 0 {
				found = seen
			}
			if len(found) > 1 {
				return nil, b.several(name, found)
			}
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	return nil, nil
}

// onlySeen are those that the clients see that somebody asks about.
func onlySeen(things []Thing) (seen []Thing) {
	for _, t := range things {
		if t.Seen != "" {
			seen = append(seen, t)
		}
	}
	return seen
}

// few are how many of several are named.
const few = 8

func (b *NameIndex) several(name string, found []Thing) error {
	var say []string
	for i := range found[:min(len(found), few)] {
		say = append(say, fmt.Sprintf("%q", found[i].full()))
	}
	more := ""
	if n := len(found) - len(say); n > 0 {
		more = fmt.Sprintf(", or one of %d more", n)
	}
	return cli.Fail(cli.CodeFailure, "%d servers have a %s %q; say %s%s", len(found), b.kind, name, strings.Join(say, " or "), more)
}

// none returns the error for a name that means nothing. It names the profile.
func (b *NameIndex) none(name string) error {
	text := fmt.Sprintf("no %s is called %q", b.kind, name)
	if b.Profile != "" {
		text = fmt.Sprintf("profile %q: %s", b.Profile, text)
	}
	for _, fits := range lookupNames {
		for i := range b.Outside {
			if t := &b.Outside[i]; fits(t, name) {
				return cli.Fail(cli.CodeNotFound, "%s; the profile does not have server %q", text, t.Server)
			}
		}
	}
	return cli.Fail(cli.CodeNotFound, "%s%s", text, b.instead(name))
}

// instead says what a name may have meant that means nothing.
func (b *NameIndex) instead(name string) string {
	names, own := Names(b.things), make([]string, len(b.things))
	for i := range b.things {
		own[i] = b.things[i].Name
	}
	if near := cli.NearestOf(name, names, own); len(near) > 0 {
		return "; did you mean " + cli.Quoted(near, " or ") + "?"
	}
	return cli.Meant(name, names, "; no server lists any")
}
