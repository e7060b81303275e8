package command

import (
	"cmp"
	"fmt"
	"slices"

	"goblin/gateway/cli"
	"goblin/gateway/config"
)

// namedEntry is a tool, prompt, resource or template with all its names.
type namedEntry struct {
	server, own string // own is the server's original name
	listed      string // name in client lists, or ""
	inProfile   string // name in the profile's lists, after overrides, or ""
}

// String returns the name that clients see, or server/own.
func (e *namedEntry) String() string { return cmp.Or(e.inProfile, e.listed, e.full()) }

func (e *namedEntry) full() string { return e.server + "/" + e.own }

func entryNames(entries []*namedEntry) []string {
	return each(entries, func(e **namedEntry) string { return (*e).String() })
}

// nameIndex is not safe for concurrent use.
type nameIndex struct {
	noun    string        // of the entries, such as "tool"
	profile string        // of the clients; "" is all clients
	entries []*namedEntry // the candidates
	outside []*namedEntry // of servers outside the profile
	at      map[[2]string]*namedEntry
}

// entry adds a missing entry.
func (x *nameIndex) entry(server, own string) *namedEntry {
	key := [2]string{server, own}
	e := x.at[key]
	if e == nil {
		if x.at == nil {
			x.at = make(map[[2]string]*namedEntry)
		}
		e = &namedEntry{server: server, own: own}
		x.at[key] = e
		x.entries = append(x.entries, e)
	}
	return e
}

// nameMatchers start with the most certain match.
var nameMatchers = []func(e *namedEntry, name string) bool{
	func(e *namedEntry, name string) bool { return e.inProfile != "" && name == e.inProfile },
	func(e *namedEntry, name string) bool { return e.listed != "" && name == e.listed || name == e.full() },
	func(e *namedEntry, name string) bool { return name == e.own },
	func(e *namedEntry, glob string) bool {
		return e.inProfile != "" && config.Glob(glob, e.inProfile) || e.listed != "" && config.Glob(glob, e.listed) || config.Glob(glob, e.full())
	},
}

// ownName is the only match in nameMatchers that must be unique.
const ownName = 2

// find returns the entries that the names match, each once. It fails if a name matches
// nothing, or is the original name in several servers.
func (x *nameIndex) find(names ...string) (found []*namedEntry, err error) {
	for _, name := range names {
		meant, err := x.findOne(name)
		if err != nil {
			return nil, err
		}
		for _, e := range meant {
			if !slices.Contains(found, e) {
				found = append(found, e)
			}
		}
	}
	return found, nil
}

func (x *nameIndex) findOne(name string) (found []*namedEntry, err error) {
	for i, matches := range nameMatchers {
		for _, e := range x.entries {
			if matches(e, name) {
				found = append(found, e)
			}
		}
		if i == ownName && len(found) > 1 {
			if found = preferInProfile(found); len(found) > 1 {
				return nil, x.ambiguous(name, found)
			}
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	return nil, x.notFound(name)
}

func preferInProfile(entries []*namedEntry) []*namedEntry {
	seen := slices.DeleteFunc(slices.Clone(entries), func(e *namedEntry) bool { return e.inProfile == "" })
	if len(seen) == 0 {
		return entries
	}
	return seen
}

const maxCandidates = 8

func (x *nameIndex) ambiguous(name string, found []*namedEntry) error {
	shown := found[:min(len(found), maxCandidates)]
	names := each(shown, func(e **namedEntry) string { return (*e).full() })
	more := ""
	if n := len(found) - len(shown); n > 0 {
		more = fmt.Sprintf(", or one of %d more", n)
	}
	return cli.Fail(cli.CodeFailure, "%d servers have a %s %q; use %s%s", len(found), x.noun, name, cli.QuoteNames(names, " or "), more)
}

func (x *nameIndex) notFound(name string) error {
	text := fmt.Sprintf("no %s %q", x.noun, name)
	if x.profile != "" {
		text = fmt.Sprintf("profile %q: %s", x.profile, text)
	}
	for _, matches := range nameMatchers {
		for _, e := range x.outside {
			if matches(e, name) {
				return cli.Fail(cli.CodeNotFound, "%s; server %q is not in the profile", text, e.server)
			}
		}
	}
	names := entryNames(x.entries)
	own := each(x.entries, func(e **namedEntry) string { return (*e).own })
	if near := cli.NearestSpelling(name, names, own); len(near) > 0 {
		return cli.Fail(cli.CodeNotFound, "%s; did you mean %s?", text, cli.QuoteNames(near, " or "))
	}
	return cli.Fail(cli.CodeNotFound, "%s%s", text, cli.Suggest(name, names, "; no server lists any"))
}
