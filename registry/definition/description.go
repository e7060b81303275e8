package definition

import (
	"fmt"
	"unicode/utf16"
)

// maxDescription is the length at which Claude Code cuts a tool's description, in UTF-16
// characters as in JavaScript.
const maxDescription = 2048

// LongDescription describes how clients cut a long description, or returns "".
func LongDescription(description string) string {
	if len(description) <= maxDescription {
		return ""
	}
	n := CountCharacters(description)
	if n <= maxDescription {
		return ""
	}
	return fmt.Sprintf("the description has %d characters; clients such as Claude Code show only %d", n, maxDescription)
}

// CountCharacters returns the length of a text in UTF-16, as JavaScript counts it.
func CountCharacters(text string) (n int) {
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}
