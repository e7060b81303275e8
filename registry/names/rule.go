package names

import "strings"

// Bounds of how long listed names of tools may be, in bytes. Clients put a prefix in
// front, and models' interfaces end at 64.
const (
	Least   = 24
	Default = 51
	Most    = 128
)

// Rule says how a server's entries are listed. It depends on the names of the
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
type Rule struct {
	Server string
	Head   string // of the listed names of its tools: the prefix, cut
	most   int    // length of a listed name
	tool   string // prefix of its tools
	flat   string // prefix of its flat ids, collapsed
	// Another server has the name already: every entry gets a tail.
	toolTaken, flatTaken bool
	// Number of other servers with the same prefix, or with one that this one's
	// begins with: all names of this server's could be theirs.
	toolShared, flatShared int
	// Prefixes of other servers that begin with this one's: entries that fall
	// under one of them get a tail.
	toolLonger, flatLonger []string
}

// Rules are those of the configured servers, in their order, for listed names of so many
// bytes at most.
func Rules(servers []string, most int) map[string]*Rule {
	rules := make(map[string]*Rule, len(servers))
	for _, s := range servers {
		rules[s] = prefixesOf(s, most)
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

func prefixesOf(server string, most int) *Rule {
	u := &Rule{Server: server, most: most, tool: Sanitize(server) + "_", flat: Collapsed(server) + "_"}
	u.Head = u.tool[:min(len(u.tool), HeadLen(most))]
	return u
}

// HeadLen is how much of a server's prefix every listed name of its tools shows,
// where those may have so many bytes.
func HeadLen(most int) int { return most - longTailLen }

func (u *Rule) note(o *Rule) {
	switch {
	case strings.HasPrefix(u.tool, o.Head):
		u.toolShared++
	case strings.HasPrefix(o.Head, u.tool):
		u.toolLonger = append(u.toolLonger, o.Head)
	}
	switch {
	case strings.HasPrefix(u.flat, o.flat):
		u.flatShared++
	case strings.HasPrefix(o.flat, u.flat):
		u.flatLonger = append(u.flatLonger, o.flat)
	}
}

// Collapsed is a server's name as flat keys have it.
func Collapsed(server string) string {
	return strings.TrimRight(Flatten(server), "_")
}

// Sanitize replaces every character that tool names may not have.
func Sanitize(s string) string {
	if ToolChars(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 && toolChar(byte(r)) {
			return r
		}
		return '_'
	}, s)
}

// ToolChars reports whether tool names may have all characters of s.
func ToolChars(s string) bool {
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

// Why says why a name needs a tail.
type Why string

// The reasons. Own and SameFlat are about what else the server lists, which rules do not
// know.
const (
	None     Why = ""
	Taken    Why = "another server's names begin alike"
	Nested   Why = "the name falls under another server's prefix"
	Long     Why = "the name is longer than gateway.max_name"
	Own      Why = "the server has another tool that would get the same name"
	Goblin   Why = "Goblin has a tool of that name"
	Alike    Why = "another server's name could look like it"
	SameFlat Why = "the server has another URI with the same flat id"
)

// ToolName returns the listed name without looking at the server's other
// tools, and why it has a tail if it does. own says which names are Goblin's.
func (u *Rule) ToolName(name string, own func(string) bool) (string, Why) {
	full := u.FullTool(name)
	why := None
	switch {
	case len(full) > u.most:
		why = Long
	case u.toolTaken:
		why = Taken
	case countPrefixes(full, u.toolLonger) > 0:
		why = Nested
	case own(full):
		why = Goblin
	case u.toolShared > 0 && EndsInTail(full, '_'):
		why = Alike
	default:
		return full, why
	}
	return u.TailedTool(name), why
}

// FullTool is the name of a tool that has all the room that it needs.
func (u *Rule) FullTool(name string) string { return u.tool + Sanitize(name) }

// TailedTool is the listed name with the tail.
func (u *Rule) TailedTool(name string) string {
	full := u.FullTool(name)
	short, long := HashSuffixes(u.Server+"\x00"+name, '_')
	base := full[:min(len(full), u.most-TailLen)]
	others := u.toolRivals(base + short)
	owner := !u.toolTaken && others == u.toolShared
	if tellsApart(base, '_', others, owner, base == full && ToolChars(name)) {
		return base + short
	}
	return full[:min(len(full), HeadLen(u.most))] + long
}

// tellsApart reports whether a short tail is enough behind base. others are the
// servers besides this one whose name it could be, and shown says that the name
// shows its original.
func tellsApart(base string, separator byte, others int, owner, shown bool) bool {
	if others == 0 {
		return true
	}
	return !owner && (others == 1 || shown) && !EndsInTail(base, separator)
}

// toolRivals is the number of other servers that could list a name below this
// one's prefix.
func (u *Rule) toolRivals(listed string) int {
	return u.toolShared + countPrefixes(listed, u.toolLonger)
}

// Confusable reports whether a name below the prefix of the server's tools may be that of
// another server's: it looks like one with a tail.
func (u *Rule) Confusable(name string) bool {
	return EndsInTail(name, '_') && u.toolRivals(name) > 0
}

// CutBy reports whether the prefix of the server's tools may have been cut to head.
func (u *Rule) CutBy(head string) bool { return strings.HasPrefix(u.tool, head) }

// Spells reports whether name is how a tool is listed, or would be if the server
// had others.
func (u *Rule) Spells(name, tool string, own func(string) bool) bool {
	if !strings.HasPrefix(name, u.Head) || len(name) > u.most {
		return false
	}
	if full := u.FullTool(tool); name != full && !strings.HasPrefix(name, full[:min(len(full), HeadLen(u.most))]) {
		return false // not even but for a tail
	}
	listed, _ := u.ToolName(tool, own)
	return name == listed || name == u.TailedTool(tool)
}

// FlatWhy says why a flat id needs a tail whatever else the server lists; plain is
// the flattened original.
func (u *Rule) FlatWhy(plain string) Why {
	if u.flatTaken {
		return Taken
	}
	if u.flatRivals(plain) > u.flatShared {
		return Nested
	}
	if u.flatShared > 0 && EndsInTail(plain, '~') {
		return Alike
	}
	return None
}

// FlatTail is the tail of a flat id; plain is the flattened original.
func (u *Rule) FlatTail(original, plain string) string {
	short, long := HashSuffixes(original, '~')
	others := u.flatRivals(plain)
	owner := !u.flatTaken && others == u.flatShared
	if tellsApart(plain, '~', others, owner, original == plain && plain[0] != '_') {
		return short
	}
	return long
}

// FlatConfusable is Confusable for what begins like a flat id.
func (u *Rule) FlatConfusable(id string) bool { return u.flatShared > 0 && EndsInTail(id, '~') }

// flatRivals is toolRivals for a flat id without its server.
func (u *Rule) flatRivals(rest string) int {
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
