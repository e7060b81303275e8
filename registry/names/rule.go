package names

import "strings"

// Bounds of how long listed names of tools may be, in bytes. Clients put a prefix in
// front, and models' interfaces end at 64.
const (
	MinNameLen     = 24
	DefaultNameLen = 51
	MaxNameLen     = 128
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
	Prefix string // of the listed names of its tools: the prefix, cut
	maxLen int    // length of a listed name
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
		rules[s] = newRule(s, most)
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
			u.addOther(o)
		}
	}
	return rules
}

// newRule returns the rule of a server that knows no other servers yet.
func newRule(server string, most int) *Rule {
	u := &Rule{Server: server, maxLen: most, tool: Sanitize(server) + "_", flat: Collapse(server) + "_"}
	u.Prefix = u.tool[:min(len(u.tool), PrefixLen(most))]
	return u
}

// PrefixLen is how much of a server's prefix every listed name of its tools shows,
// where those may have so many bytes.
func PrefixLen(most int) int { return most - longSuffixLen }

// addOther records another server whose prefix overlaps with this one's.
func (u *Rule) addOther(o *Rule) {
	switch {
	case strings.HasPrefix(u.tool, o.Prefix):
		u.toolShared++
	case strings.HasPrefix(o.Prefix, u.tool):
		u.toolLonger = append(u.toolLonger, o.Prefix)
	}
	switch {
	case strings.HasPrefix(u.flat, o.flat):
		u.flatShared++
	case strings.HasPrefix(o.flat, u.flat):
		u.flatLonger = append(u.flatLonger, o.flat)
	}
}

// Collapse is a server's name as flat keys have it.
func Collapse(server string) string {
	return strings.TrimRight(Flatten(server), "_")
}

// Sanitize replaces every character that tool names may not have.
func Sanitize(s string) string {
	if IsToolName(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 && isToolChar(byte(r)) {
			return r
		}
		return '_'
	}, s)
}

// IsToolName reports whether tool names may have all characters of s.
func IsToolName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isToolChar(s[i]) {
			return false
		}
	}
	return true
}

func isToolChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// SuffixReason says why a name needs a tail.
type SuffixReason string

// The reasons. ReservedForOwn and SameFlatID are about what else the server lists, which rules do not
// know.
const (
	NoSuffix          SuffixReason = ""
	NameTaken         SuffixReason = "another server's names begin alike"
	NestedPrefix      SuffixReason = "the name falls under another server's prefix"
	NameTooLong       SuffixReason = "the name is longer than gateway.max_name"
	ReservedForOwn    SuffixReason = "the server has another tool that would get the same name"
	ReservedForGoblin SuffixReason = "Goblin has a tool of that name"
	ConfusableName    SuffixReason = "another server's name could look like it"
	SameFlatID        SuffixReason = "the server has another URI with the same flat id"
)

// ToolName returns the listed name without looking at the server's other
// tools, and why it has a tail if it does. own says which names are Goblin's.
func (u *Rule) ToolName(name string, own func(string) bool) (string, SuffixReason) {
	full := u.FullToolName(name)
	why := NoSuffix
	switch {
	case len(full) > u.maxLen:
		why = NameTooLong
	case u.toolTaken:
		why = NameTaken
	case countPrefixes(full, u.toolLonger) > 0:
		why = NestedPrefix
	case own(full):
		why = ReservedForGoblin
	case u.toolShared > 0 && HasHashSuffix(full, '_'):
		why = ConfusableName
	default:
		return full, why
	}
	return u.SuffixedToolName(name), why
}

// FullToolName is the name of a tool that has all the room that it needs.
func (u *Rule) FullToolName(name string) string { return u.tool + Sanitize(name) }

// SuffixedToolName is the listed name with the tail.
func (u *Rule) SuffixedToolName(name string) string {
	full := u.FullToolName(name)
	short, long := HashSuffixes(u.Server+"\x00"+name, '_')
	base := full[:min(len(full), u.maxLen-SuffixLen)]
	others := u.toolConflicts(base + short)
	owner := !u.toolTaken && others == u.toolShared
	if isShortSuffixUnique(base, '_', others, owner, base == full && IsToolName(name)) {
		return base + short
	}
	return full[:min(len(full), PrefixLen(u.maxLen))] + long
}

// isShortSuffixUnique reports whether a short suffix after base is enough. others is the number of
// other servers that could have the name. shown reports whether the name shows its original.
func isShortSuffixUnique(base string, separator byte, others int, owner, shown bool) bool {
	if others == 0 {
		return true
	}
	return !owner && (others == 1 || shown) && !HasHashSuffix(base, separator)
}

// toolConflicts returns the number of other servers that could list a name with this server's
// prefix.
func (u *Rule) toolConflicts(listed string) int {
	return u.toolShared + countPrefixes(listed, u.toolLonger)
}

// Confusable reports whether a name below the prefix of the server's tools may be that of
// another server's: it looks like one with a tail.
func (u *Rule) Confusable(name string) bool {
	return HasHashSuffix(name, '_') && u.toolConflicts(name) > 0
}

// IsPrefixCut reports whether the prefix of the server's tools may have been cut to head.
func (u *Rule) IsPrefixCut(head string) bool { return strings.HasPrefix(u.tool, head) }

// IsToolSpelling reports whether name is how a tool is listed, or would be if the server
// had others.
func (u *Rule) IsToolSpelling(name, tool string, own func(string) bool) bool {
	if !strings.HasPrefix(name, u.Prefix) || len(name) > u.maxLen {
		return false
	}
	if full := u.FullToolName(tool); name != full && !strings.HasPrefix(name, full[:min(len(full), PrefixLen(u.maxLen))]) {
		return false // not even but for a tail
	}
	listed, _ := u.ToolName(tool, own)
	return name == listed || name == u.SuffixedToolName(tool)
}

// FlatSuffixReason says why a flat id needs a tail whatever else the server lists; plain is
// the flattened original.
func (u *Rule) FlatSuffixReason(plain string) SuffixReason {
	if u.flatTaken {
		return NameTaken
	}
	if u.flatConflicts(plain) > u.flatShared {
		return NestedPrefix
	}
	if u.flatShared > 0 && HasHashSuffix(plain, '~') {
		return ConfusableName
	}
	return NoSuffix
}

// FlatSuffix is the tail of a flat id; plain is the flattened original.
func (u *Rule) FlatSuffix(original, plain string) string {
	short, long := HashSuffixes(original, '~')
	others := u.flatConflicts(plain)
	owner := !u.flatTaken && others == u.flatShared
	if isShortSuffixUnique(plain, '~', others, owner, original == plain && plain[0] != '_') {
		return short
	}
	return long
}

// FlatConfusable is Confusable for what begins like a flat id.
func (u *Rule) FlatConfusable(id string) bool { return u.flatShared > 0 && HasHashSuffix(id, '~') }

// flatConflicts is toolConflicts for a flat id without its server.
func (u *Rule) flatConflicts(rest string) int {
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
