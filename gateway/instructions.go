package gateway

import (
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits in characters as JavaScript counts them. Claude Code cuts at 2,048.
const (
	maxText         = 2047
	maxNames        = 500 // for the list of servers
	maxUnavailable  = 600 // for unavailable servers with their reasons
	minInstructions = 24  // less is useless
	maxRead         = 4 << 10
)

// DescribedServer is a server in the instructions.
type DescribedServer struct {
	Name           string
	DisabledReason string // why it is unavailable, or ""
	Instructions   string
}

const namesOf = "Tools are named server_tool, prompts server/prompt, and resources mcp://server/ followed by the server's own URI. " +
	"Read goblin://servers for the state of each server."

// In order of use.
var toolPurposes = []struct{ tool, text string }{
	{"describe_tool", "read its description with describe_tool"},
	{"call_tool", "call unlisted tools with call_tool or by name"},
	{"execute_lua", "make several calls at once with execute_lua"},
}

// toolsText returns "" without a search tool.
func toolsText(has func(tool string) bool) string {
	var searches, steps []string
	for _, name := range []string{"search_tools", "search_resources"} {
		if has(name) {
			searches = append(searches, name)
		}
	}
	if len(searches) == 0 {
		return ""
	}
	for _, use := range toolPurposes {
		if has(use.tool) {
			steps = append(steps, use.text)
		}
	}
	text := " Find tools and resources with " + strings.Join(searches, " and ") + " by keywords (verb, thing, service, synonyms)"
	for i, step := range steps {
		text += ", "
		if i == len(steps)-1 {
			text += "and "
		}
		text += step
	}
	return text + "."
}

// InstructionsText returns instructions within maxText. has reports whether a tool of
// Goblin is listed. Servers that don't fit are counted.
func InstructionsText(servers []DescribedServer, has func(tool string) bool) string {
	text := "Goblin serves several MCP servers as one: " + joinNames(servers) + ". " + namesOf + toolsText(has)
	var off, on []part
	for _, s := range servers {
		switch {
		case s.DisabledReason != "":
			off = append(off, part{"\n- " + s.Name + ": ", oneLine(s.DisabledReason)})
		case oneLine(s.Instructions) != "":
			on = append(on, part{"\n\nserver " + s.Name + ": ", oneLine(s.Instructions)})
		}
	}
	if len(off) > 0 {
		text += "\n\nThese servers are unavailable, so their tools cannot be called:" + cutToFit(off, maxUnavailable)
	}
	return text + cutToFit(on, maxText-length(text))
}

func joinNames(servers []DescribedServer) string {
	var out strings.Builder
	for i, s := range servers {
		if out.Len()+len(s.Name) > maxNames {
			fmt.Fprintf(&out, " and %d more", len(servers)-i)
			break
		}
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(s.Name)
	}
	if len(servers) == 0 {
		return "none yet"
	}
	return out.String()
}

type part struct{ head, text string }

// cutToFit cuts the longest parts first.
func cutToFit(parts []part, room int) string {
	const note = "\n(and %d more: goblin://servers)"
	shown, each := parts, fairLength(parts, room)
	if each < minInstructions {
		free := room - length(note)
		most := sort.Search(len(parts), func(n int) bool { return fairLength(parts[:n+1], free) < minInstructions })
		shown = parts[:most]
		each = fairLength(shown, free)
	}
	var out strings.Builder
	for _, p := range shown {
		out.WriteString(p.head + cut(p.text, each))
	}
	if left := len(parts) - len(shown); left > 0 && room > length(note) {
		fmt.Fprintf(&out, note, left)
	}
	return out.String()
}

// fairLength returns the maximum length with which all parts fit.
func fairLength(parts []part, room int) int {
	for _, p := range parts {
		room -= length(p.head)
	}
	fits := func(each int) bool {
		sum := 0
		for _, p := range parts {
			sum += min(length(p.text), each)
		}
		return sum <= room
	}
	each := 0
	for step := maxText + 1; step > 0; step /= 2 {
		if fits(each + step) {
			each += step
		}
	}
	return each
}

// length counts characters as JavaScript does.
func length(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

func cut(s string, room int) string {
	if length(s) <= room {
		return s
	}
	n := 0
	for i, r := range s {
		if n += length(string(r)); n > room-1 {
			return strings.TrimRight(s[:i], " ") + "…"
		}
	}
	return s
}

// oneLine removes line breaks and invisible characters.
func oneLine(s string) string {
	s = s[:min(len(s), maxRead)]
	var out strings.Builder
	gap := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			gap = true
			continue
		case !unicode.IsGraphic(r) || r == utf8.RuneError:
			continue
		}
		if gap && out.Len() > 0 {
			out.WriteByte(' ')
		}
		gap = false
		out.WriteRune(r)
	}
	return out.String()
}
