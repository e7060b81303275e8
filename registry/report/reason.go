package report

import (
	"fmt"
	"strings"
)

// prefixes of errors that only name the class of a failure.
var classes = []string{"cannot reach the server: ", "dial tcp: ", "dial tcp "}

// Reason shortens a server's last error for a row: first its own words on stderr, then the
// cause, then the fix. attempts are the failed ones. The result is as untrusted as the error.
func Reason(lastError string, attempts int) string {
	text := lastError
	if strings.HasPrefix(text, "the process exited: ") {
		if class, output, ok := strings.Cut(text, "; output: "); ok {
			text = output
			if output == "" {
				text = class
			}
		}
	}
	if name, rest, ok := strings.Cut(text, " not found; "); ok && strings.HasPrefix(name, "command ") {
		text = strings.Trim(strings.TrimPrefix(name, "command "), `"`) + " not found; " + rest
	}
	for _, class := range classes {
		text = strings.TrimPrefix(text, class)
	}
	var parts []string
	for part := range strings.SplitSeq(text, "; ") {
		if len(parts) == 0 || parts[len(parts)-1] != part {
			parts = append(parts, part)
		}
	}
	text = strings.Join(parts, "; ")
	if attempts > 1 {
		return fmt.Sprintf("%d tries; %s", attempts, text)
	}
	return text
}
