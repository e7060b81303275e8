package registry

import "strings"

// maxToolName is the longest tool name that clients accept.
const maxToolName = 64

// rule says how a server's entries are listed. It depends on the names of the
// configured servers, never on what any server lists.
type rule struct {
	server string
	tool   string // prefix of its tools
	flat   string // prefix of its flat ids, collapsed
	// Another server has the name already: every entry gets a tail.
	toolTaken, flatTaken bool
	// Prefixes of other servers that begin with this one's: entries that fall
	// under one of them get a tail.
	toolLonger, flatLonger []string
}

// newRules returns the rules of the configured servers, in their order.
func newRules(servers []string) map[string]*rule {
	rules := make(map[string]*rule, len(servers))
	for _, s := range servers {
		rules[s] = prefixesOf(s)
	}
	for i, s := range servers {
		u := rules[s]
		for j, other := range servers {
			o := rules[other]
			u.toolTaken = u.toolTaken || j < i && o.tool == u.tool
			u.flatTaken = u.flatTaken || j < i && o.flat == u.flat
			u.note(o)
		}
	}
	return rules
}

func prefixesOf(server string) *rule {
	return &rule{server: server, tool: sanitize(server) + "_", flat: collapsed(server) + "_"}
}

func (u *rule) note(o *rule) {
	if len(o.tool) > len(u.tool) && strings.HasPrefix(o.tool, u.tool) {
		u.toolLonger = append(u.toolLonger, o.tool)
	}
	if len(o.flat) > len(u.flat) && strings.HasPrefix(o.flat, u.flat) {
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
	tailLong   tailWhy = "the name is longer than 64 characters"
	tailOwn    tailWhy = "the server has another tool that would get the same name"
	tailGoblin tailWhy = "Goblin has a tool of that name"
	tailFlat   tailWhy = "the server has another URI with the same flat id"
)

// toolName returns the listed name without looking at the server's other
// tools, and why it has a tail if it does.
func (u *rule) toolName(name string, reserved map[string]*LocalTool) (string, tailWhy) {
	full := u.tool + sanitize(name)
	why := tailNone
	switch {
	case len(full) > maxToolName:
		why = tailLong
	case u.toolTaken:
		why = tailTaken
	case hasPrefixOf(full, u.toolLonger):
		why = tailNested
	case reserved[full] != nil:
		why = tailGoblin
	default:
		return full, why
	}
	return u.tailedTool(name), why
}

// tailedTool is the listed name with the tail.
func (u *rule) tailedTool(name string) string {
	full := u.tool + sanitize(name)
	return full[:min(len(full), maxToolName-tailLen)] + "_" + tail(u.server, name)
}

// flatTail reports whether a flat id needs a tail whatever else the server
// lists; rest is the flattened original.
func (u *rule) flatTail(rest string) tailWhy {
	if u.flatTaken {
		return tailTaken
	}
	if len(u.flatLonger) > 0 && hasPrefixOf(u.flat+strings.TrimLeft(rest, "_"), u.flatLonger) {
		return tailNested
	}
	return tailNone
}

func hasPrefixOf(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
