package definition

import (
	"fmt"
	"unicode/utf16"
)

// MaxDescription is how many characters of a tool's description clients show to
// models: Claude Code cuts what is longer. A character is what JavaScript counts
// as one.
const MaxDescription = 2048

// LongDescription says what will become of a tool's description that is longer; "" for
// the others.
func LongDescription(description string) string {
	if len(description) <= MaxDescription {
		return ""
	}
	n := CountCharacters(description)
	if n <= MaxDescription {
		return ""
	}
	return fmt.Sprintf("the description has %d characters, of which clients such as Claude Code show %d", n, MaxDescription)
}

// CountCharacters counts those of a text as JavaScript does.
func CountCharacters(text string) (n int) {
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}
