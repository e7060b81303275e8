package gateway

import "strings"

// hopLocal reports errors that concern only the connection they came on:
// headers that do not match, and a revision that is not spoken (2026-07-28).
func hopLocal(code int) bool { return code == -32020 || code == -32022 }

// list joins names for a message.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
