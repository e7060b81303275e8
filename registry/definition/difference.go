package definition

import (
	"bytes"
	"encoding/json"
	"strings"

	"goblin/registry/rawjson"

	"github.com/aymanbagabas/go-udiff"
)

// Difference compares two definitions, a line each that begins with "-", "+" or " "
// (unified, with three lines of context). It is foreign text.
func Difference(before, after []byte) string {
	text := udiff.Unified("before", "after", Format(before), Format(after))
	// The names of the two stand above it already, and line numbers say nothing.
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--- ") && !strings.HasPrefix(line, "+++ ") && !strings.HasPrefix(line, "@@ ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// maxNested is how deeply an object may nest that is indented: each level costs
// as many blanks in each line as there are levels.
const maxNested = 64

// Format is a JSON object in the form in which people read it: what stands in
// its descriptions as line breaks are line breaks. A bar before what follows them
// keeps a text from looking like a member, or like a line around the definition.
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

// lineBreaks makes those of JSON's texts real, and knows a backslash that is one.
var lineBreaks = strings.NewReplacer(`\\`, `\\`, `\n`, "\n| ")
