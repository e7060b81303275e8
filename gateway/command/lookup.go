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
	server, own string // own is the server's own name
	listed      string // by which clients see it; "" if it is not listed now
	inProfile   string // by which clients of the index's profile see it, perhaps by overrides; "" if they do not
}

// String returns the name that clients know, or server/own if there is none.
func (e *namedEntry) String() string { return cmp.Or(e.inProfile, e.listed, e.full()) }

func (e *namedEntry) full() string { return e.server + "/" + e.own }

func entryNames(entries []*namedEntry) []string {
	return each(entries, func(e **namedEntry) string { return (*e).String() })
}

// nameIndex finds the entries that names and globs mean. It belongs to one goroutine.
type nameIndex struct {
	noun    string        // of the entries, such as "tool"
	profile string        // whose clients the names are about; "" for all clients
	entries []*namedEntry // that names may mean
	outside []*namedEntry // of servers that the profile does not have
	at      map[[2]string]*namedEntry
}

// entry returns the entry that a server calls own, and adds it if it is new.
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

// nameMatchers report whether an entry has a name, the most certain match first.
var nameMatchers = []func(e *namedEntry, name string) bool{
	func(e *namedEntry, name string) bool { return e.inProfile != "" && name == e.inProfile },
	func(e *namedEntry, name string) bool { return e.listed != "" && name == e.listed || name == e.full() },
	func(e *namedEntry, name string) bool { return name == e.own },
	func(e *namedEntry, glob string) bool {
		return e.inProfile != "" && config.Glob(glob, e.inProfile) || e.listed != "" && config.Glob(glob, e.listed) || config.Glob(glob, e.full())
	},
}

// ownName is the index in nameMatchers of the only match that must be unique.
const ownName = 2

// find returns the entries that names mean, each once. It fails if a name means nothing, or is
// the own name of entries of several servers.
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

// preferInProfile returns the entries that clients of the profile see, or all if they see none.
func preferInProfile(entries []*namedEntry) []*namedEntry {
	seen := slices.DeleteFunc(slices.Clone(entries), func(e *namedEntry) bool { return e.inProfile == "" })
	if len(seen) == 0 {
		return entries
	}
	return seen
}

// maxCandidates is the maximum number of entries in an error.
const maxCandidates = 8

func (x *nameIndex) ambiguous(name string, found []*namedEntry) error {
	shown := found[:min(len(found), maxCandidates)]
	names := each(shown, func(e **namedEntry) string { return (*e).full() })
	more := ""
	if n := len(found) - len(shown); n > 0 {
		more = fmt.Sprintf(", or one of %d more", n)
	}
	return cli.Fail(cli.CodeFailure, "%d servers have a %s %q; say %s%s", len(found), x.noun, name, cli.QuoteNames(names, " or "), more)
}

// notFound returns the error for a name that means nothing, with the names that may be meant.
func (x *nameIndex) notFound(name string) error {
	text := fmt.Sprintf("no %s is called %q", x.noun, name)
	if x.profile != "" {
		text = fmt.Sprintf("profile %q: %s", x.profile, text)
	}
	for _, matches := range nameMatchers {
		for _, e := range x.outside {
			if matches(e, name) {
				return cli.Fail(cli.CodeNotFound, "%s; the profile does not have server %q", text, e.server)
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
