package gateway

import (
	"strings"
	"unicode"

	"goblin/registry"
)

// Instructions are bounded; some clients put them whole into a model's context.
const (
	maxInstructions = 4 << 10 // bytes, of all
	maxExcerpt      = 300     // characters, of one server's
	maxNamedServers = 50
)

// instructions are Goblin's own and an excerpt of each server's as last heard, in
// the order of the config. Servers that never connected, that are disabled, or
// for which there is no room, are only named.
func (g *Gateway) instructions() string {
	names := g.Servers.Names()
	more := ""
	if len(names) > maxNamedServers {
		names, more = names[:maxNamedServers], " and more"
	}
	text := "Goblin serves several MCP servers as one: " + list(names) + more + ". " +
		"Tools are named server_tool, prompts server/prompt, and resources mcp://server/ followed by the server's own URI. " +
		"Read goblin://servers for the state of each server."
	if g.o.Config.Gateway.MetaTools.All {
		text += " Find what there is with search_tools and search_resources, look at it with describe_tool, " +
			"and make several calls at once with execute_lua."
	}
	for _, b := range g.Servers.All() {
		state, _ := g.reg.State(b.Name())
		said := excerpt(state.Instructions)
		part := "\n\nserver " + b.Name() + ": " + said
		if said != "" && state.State != registry.StateDisabled && len(text)+len(part) <= maxInstructions {
			text += part
		}
	}
	return text
}

// excerpt is the beginning of a server's instructions, in one line and without
// characters that cannot be seen.
func excerpt(instructions string) string {
	instructions = instructions[:min(len(instructions), maxInstructions)]
	var out strings.Builder
	n, gap := 0, false
	for _, r := range instructions {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			gap = true
			continue
		case !unicode.IsGraphic(r) || r == unicode.ReplacementChar:
			continue
		}
		if gap && n > 0 {
			out.WriteByte(' ')
			n++
		}
		if n >= maxExcerpt-1 { // room for the mark that it goes on
			out.WriteRune('…')
			break
		}
		out.WriteRune(r)
		n, gap = n+1, false
	}
	return out.String()
}
