package viewer

import "strings"

// briefFrom is the minimum length of a data: URI that is shown by type and size, in bytes.
const briefFrom = 64

// Brief replaces a long data: URI by the type and size of its content. It returns other
// text unchanged.
func Brief(s string) string {
	if len(s) < briefFrom || !strings.EqualFold(s[:len("data:")], "data:") {
		return s
	}
	head, body, ok := strings.Cut(s[len("data:"):], ",")
	if !ok || len(head) > 200 {
		return s
	}
	kind, _, _ := strings.Cut(head, ";")
	if kind == "" {
		kind = "text/plain" // RFC 2397
	}
	held := len(body) - 2*strings.Count(body, "%")
	if strings.HasSuffix(strings.ToLower(head), ";base64") {
		held = len(strings.TrimRight(body, "=")) * 3 / 4
	}
	n, unit := size(int64(held))
	return "data:" + kind + ", " + n + " " + unit
}
