package gateway

import "strings"

// isConnectionError reports error codes that concern only one connection: headers that do not
// match, and an unsupported revision (2026-07-28).
func isConnectionError(code int) bool { return code == -32020 || code == -32022 }

// joinOrNone joins names for a message.
func joinOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
