package definition

import (
	"bytes"
	"encoding/json"
	"strings"

	"goblin/registry/rawjson"

	"github.com/aymanbagabas/go-udiff"
)

// Difference compares two definitions. Each line begins with "-", "+" or " " (unified,
// three lines of context). It is untrusted text.
func Difference(before, after []byte) string {
	text := udiff.Unified("before", "after", Format(before), Format(after))
	// Drop headers and line numbers.
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--- ") && !strings.HasPrefix(line, "+++ ") && !strings.HasPrefix(line, "@@ ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// maxNested is the maximum nesting of an indented object. Deeper ones would cost
// quadratic space.
const maxNested = 64

// Format formats a JSON object for users, with real line breaks in descriptions. A bar
// after each of them keeps the text from imitating a member or a surrounding line.
func Format(object []byte) string {
	var out bytes.Buffer
	shallow := rawjson.Checker{Depth: maxNested}
	if shallow.End(object) != nil || json.Indent(&out, object, "", "  ") != nil {
		return string(object) + "\n"
	}
	var text strings.Builder
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), `"description": "`) {
			line = lineBreaks.Replace(line)
		}
		text.WriteString(line)
	}
	return text.String() + "\n"
}

// lineBreaks keeps an escaped backslash before an n.
var lineBreaks = strings.NewReplacer(`\\`, `\\`, `\n`, "\n| ")
