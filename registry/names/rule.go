package names

import "strings"

// Limits of listed tool names, in bytes. Clients add a prefix, and model APIs allow 64.
const (
	MinNameLen     = 24
	DefaultNameLen = 51
	MaxNameLen     = 128
)

// Rule defines how a server's entries are listed. It depends only on the names of the
// configured servers, never on their lists.
//
// Two servers never share a listed name. If several have prefixes of a name, it can only
// be:
//   - without a suffix: the owner's, unless it looks suffixed. The owner has the longest
//     prefix, or is the first in the config.
//   - with a short suffix: another server's, if there is exactly one, or if the name
//     shows its original. Then there is nothing to vary until two hashes collide.
//   - with a long suffix: any server's, because finding 64 equal bits is infeasible.
type Rule struct {
	Server string
	Prefix string // of listed tool names, possibly cut
	maxLen int    // of a listed name
	tool   string // prefix of its tools
	flat   string // prefix of its flat ids, collapsed
	// Another server has the name already: every entry gets a suffix.
	toolTaken, flatTaken bool
	// Number of other servers whose prefix equals this one's or begins it. They could
	// have all names of this server.
	toolShared, flatShared int
	// Prefixes of other servers that begin with this one's. Entries below one of them get
	// a suffix.
	toolLonger, flatLonger []string
}

// Rules returns the rules of the configured servers, in the config's order, for listed
// names of at most most bytes.
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

func newRule(server string, most int) *Rule {
	u := &Rule{Server: server, maxLen: most, tool: Sanitize(server) + "_", flat: Collapse(server) + "_"}
	u.Prefix = u.tool[:min(len(u.tool), PrefixLen(most))]
	return u
}

// PrefixLen returns the prefix length kept in tool names limited to most bytes.
func PrefixLen(most int) int { return most - longSuffixLen }

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

// Collapse returns a server's name as used in flat keys.
func Collapse(server string) string {
	return strings.TrimRight(Flatten(server), "_")
}

// Sanitize replaces the characters that are invalid in tool names.
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

// IsToolName reports whether all characters of s are valid in tool names.
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

// SuffixReason is the reason for a suffix.
type SuffixReason string

// ReservedForOwn and SameFlatID depend on the server's list, so rules never return them.
const (
	NoSuffix          SuffixReason = ""
	NameTaken         SuffixReason = "another server's names have the same prefix"
	NestedPrefix      SuffixReason = "the name begins with another server's prefix"
	NameTooLong       SuffixReason = "the name is longer than gateway.max_name"
	ReservedForOwn    SuffixReason = "another tool of the server would get the same name"
	ReservedForGoblin SuffixReason = "Goblin has its own tool with this name"
	ConfusableName    SuffixReason = "it could be mistaken for another server's name"
	SameFlatID        SuffixReason = "the server has another URI with the same flat id"
)

// ToolName returns a tool's listed name, and the reason if it has a suffix. It ignores
// the server's other tools. own reports whether a name is Goblin's own.
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

// FullToolName returns the name of a tool without a length limit.
func (u *Rule) FullToolName(name string) string { return u.tool + Sanitize(name) }

// SuffixedToolName returns the listed name with a suffix.
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

// isShortSuffixUnique reports whether a short suffix after base is enough. others is the
// number of other servers that could have the name. shown means that the name shows its
// original.
func isShortSuffixUnique(base string, separator byte, others int, owner, shown bool) bool {
	if others == 0 {
		return true
	}
	return !owner && (others == 1 || shown) && !HasHashSuffix(base, separator)
}

// toolConflicts returns the number of other servers that could list the name.
func (u *Rule) toolConflicts(listed string) int {
	return u.toolShared + countPrefixes(listed, u.toolLonger)
}

// Confusable reports whether a name with this server's tool prefix looks suffixed and may
// belong to another server.
func (u *Rule) Confusable(name string) bool {
	return HasHashSuffix(name, '_') && u.toolConflicts(name) > 0
}

// IsPrefixCut reports whether the server's tool prefix may have been cut to head.
func (u *Rule) IsPrefixCut(head string) bool { return strings.HasPrefix(u.tool, head) }

// IsToolSpelling reports whether name is a tool's listed name, or would be if the server
// had other tools.
func (u *Rule) IsToolSpelling(name, tool string, own func(string) bool) bool {
	if !strings.HasPrefix(name, u.Prefix) || len(name) > u.maxLen {
		return false
	}
	if full := u.FullToolName(tool); name != full && !strings.HasPrefix(name, full[:min(len(full), PrefixLen(u.maxLen))]) {
		return false // differs in more than the suffix
	}
	listed, _ := u.ToolName(tool, own)
	return name == listed || name == u.SuffixedToolName(tool)
}

// FlatSuffixReason returns why a flat id needs a suffix regardless of the server's list.
// plain is the flattened original.
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

// FlatSuffix returns the suffix of a flat id. plain is the flattened original.
func (u *Rule) FlatSuffix(original, plain string) string {
	short, long := HashSuffixes(original, '~')
	others := u.flatConflicts(plain)
	owner := !u.flatTaken && others == u.flatShared
	if isShortSuffixUnique(plain, '~', others, owner, original == plain && plain[0] != '_') {
		return short
	}
	return long
}

// FlatConfusable is Confusable for a URI with the prefix of a flat id.
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
