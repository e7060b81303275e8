package registry

import (
	"strings"

	"goblin/registry/definition"
)

// Bounds of how long listed names of tools may be, in bytes. Clients put a prefix in
// front, and models' interfaces end at 64.
const (
	leastToolName   = 24
	defaultToolName = 51
	mostToolName    = 128
)

// rule says how a server's entries are listed. It depends on the names of the
// configured servers, never on what any server lists.
//
// No two servers can have one listed name, whatever they list. Where several
// have prefixes of a name, it can be
//   - without a tail: only the owner's, who has the longest prefix (the first in
//     the config of equal ones), and none that looks like one with a tail;
//   - with a short tail: only the one other server's, or where there are more
//     others, of originals that the name shows, so that there is nothing to try
//     until the hashes of two are equal;
//   - with a long tail: anybody's, since nobody finds 64 equal bits.
type rule struct {
	server string
	// overrides are what the config has clients see of the server's things.
	overrides *definition.Set
	most      int    // length of a listed name
	tool      string // prefix of its tools
	head      string // of the listed names of its tools: the prefix, cut
	flat      string // prefix of its flat ids, collapsed
	// Another server has the name already: every entry gets a tail.
	toolTaken, flatTaken bool
	// Number of other servers with the same prefix, or with one that this one's
	// begins with: all names of this server's could be theirs.
	toolShared, flatShared int
	// Prefixes of other servers that begin with this one's: entries that fall
	// under one of them get a tail.
	toolLonger, flatLonger []string
}

// newRules returns the rules of the configured servers, in their order, for listed
// names of so many bytes at most.
func newRules(servers []string, most int, overrides map[string]*definition.Set) map[string]*rule {
	rules := make(map[string]*rule, len(servers))
	for _, s := range servers {
		rules[s] = prefixesOf(s, most)
		rules[s].overrides = overrides[s]
	}
	for i, s := range servers {
		u := rules[s]
		for j, other := range servers {
			if j == i {
				continue
			}
			o := rules[other]
			u.toolTaken = u.toolTaken || j < i && o.tool == u.tool
			u.flatTaken = u.flatTaken || j < i && o.flat == u.flat
			u.note(o)
		}
	}
	return rules
}

func prefixesOf(server string, most int) *rule {
	u := &rule{server: server, most: most, tool: sanitize(server) + "_", flat: collapsed(server) + "_"}
	u.head = u.tool[:min(len(u.tool), headLen(most))]
	return u
}

// headLen is how much of a server's prefix every listed name of its tools shows,
// where those may have so many bytes.
func headLen(most int) int { return most - longTailLen }

func (u *rule) note(o *rule) {
	switch {
	case strings.HasPrefix(u.tool, o.head):
		u.toolShared++
	case strings.HasPrefix(o.head, u.tool):
		u.toolLonger = append(u.toolLonger, o.head)
	}
	switch {
	case strings.HasPrefix(u.flat, o.flat):
		u.flatShared++
	case strings.HasPrefix(o.flat, u.flat):
		u.flatLonger = append(u.flatLonger, o.flat)
	}
}

// collapsed is a server's name as flat keys have it.
func collapsed(server string) string {
	return strings.TrimRight(flatten(server), "_")
}

// sanitize replaces every character that tool names may not have.
func sanitize(s string) string {
	if toolChars(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 && toolChar(byte(r)) {
			return r
		}
		return '_'
	}, s)
}

func toolChars(s string) bool {
	for i := 0; i < len(s); i++ {
		if !toolChar(s[i]) {
			return false
		}
	}
	return true
}

func toolChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// tailWhy says why a name needs a tail.
type tailWhy string

const (
	tailNone   tailWhy = ""
	tailTaken  tailWhy = "another server's names begin alike"
	tailNested tailWhy = "the name falls under another server's prefix"
	tailLong   tailWhy = "the name is longer than gateway.max_name"
	tailOwn    tailWhy = "the server has another tool that would get the same name"
	tailGoblin tailWhy = "Goblin has a tool of that name"
	tailAlike  tailWhy = "another server's name could look like it"
	tailFlat   tailWhy = "the server has another URI with the same flat id"
)

// toolName returns the listed name without looking at the server's other
// tools, and why it has a tail if it does. own says which names are Goblin's.
func (u *rule) toolName(name string, own func(string) bool) (string, tailWhy) {
	full := u.tool + sanitize(name)
	why := tailNone
	switch {
	case len(full) > u.most:
		why = tailLong
	case u.toolTaken:
		why = tailTaken
	case countPrefixes(full, u.toolLonger) > 0:
		why = tailNested
	case own(full):
		why = tailGoblin
	case u.toolShared > 0 && endsInTail(full, '_'):
		why = tailAlike
	default:
		return full, why
	}
	return u.tailedTool(name), why
}

// tailedTool is the listed name with the tail.
func (u *rule) tailedTool(name string) string {
	full := u.tool + sanitize(name)
	short, long := tails(u.server+"\x00"+name, '_')
	base := full[:min(len(full), u.most-tailLen)]
	others := u.toolRivals(base + short)
	owner := !u.toolTaken && others == u.toolShared
	if tellsApart(base, '_', others, owner, base == full && toolChars(name)) {
		return base + short
	}
	return full[:min(len(full), headLen(u.most))] + long
}

// tellsApart reports whether a short tail is enough behind base. others are the
// servers besides this one whose name it could be, and shown says that the name
// shows its original.
func tellsApart(base string, separator byte, others int, owner, shown bool) bool {
	if others == 0 {
		return true
	}
	return !owner && (others == 1 || shown) && !endsInTail(base, separator)
}

// toolRivals is the number of other servers that could list a name below this
// one's prefix.
func (u *rule) toolRivals(listed string) int {
	return u.toolShared + countPrefixes(listed, u.toolLonger)
}

// spells reports whether name is how a tool is listed, or would be if the server
// had others.
func (u *rule) spells(name, tool string, own func(string) bool) bool {
	if !strings.HasPrefix(name, u.head) || len(name) > u.most {
		return false
	}
	if full := u.tool + sanitize(tool); name != full && !strings.HasPrefix(name, full[:min(len(full), headLen(u.most))]) {
		return false // not even but for a tail
	}
	listed, _ := u.toolName(tool, own)
	return name == listed || name == u.tailedTool(tool)
}

// flatWhy says why a flat id needs a tail whatever else the server lists; plain is
// the flattened original.
func (u *rule) flatWhy(plain string) tailWhy {
	if u.flatTaken {
		return tailTaken
	}
	if u.flatRivals(plain) > u.flatShared {
		return tailNested
	}
	if u.flatShared > 0 && endsInTail(plain, '~') {
		return tailAlike
	}
	return tailNone
}

// flatTail is the tail of a flat id; plain is the flattened original.
func (u *rule) flatTail(original, plain string) string {
	short, long := tails(original, '~')
	others := u.flatRivals(plain)
	owner := !u.flatTaken && others == u.flatShared
	if tellsApart(plain, '~', others, owner, original == plain && plain[0] != '_') {
		return short
	}
	return long
}

// flatRivals is toolRivals for a flat id without its server.
func (u *rule) flatRivals(rest string) int {
	if len(u.flatLonger) == 0 {
		return u.flatShared
	}
	return u.flatShared + countPrefixes(u.flat+strings.TrimLeft(rest, "_"), u.flatLonger)
}

func countPrefixes(s string, prefixes []string) (n int) {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			n++
		}
	}
	return n
}
