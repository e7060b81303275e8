// Package mime matches MIME types with patterns.
package mime

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// ErrBad is returned for a MIME pattern that is not a glob, or too long.
var ErrBad = errors.New("bad MIME type pattern")

// longest is the longest MIME type or pattern that is matched, in bytes: matching
// takes time in proportion to the product of both.
const longest = 256

// Filter returns what reports whether a pattern matches a type, nil for any: a glob without regard to case or, unless it names
// some, parameters.
func Filter(pattern string) (func(mime string) bool, error) {
	if pattern == "" {
		return nil, nil
	}
	pattern = strings.ToLower(strings.TrimSpace(pattern))
	if _, err := path.Match(pattern, ""); err != nil || len(pattern) > longest {
		return nil, fmt.Errorf("%w: %q", ErrBad, strings.ToValidUTF8(pattern[:min(len(pattern), longest)], ""))
	}
	known := map[string]bool{} // a catalog has few types
	return func(mime string) bool {
		if len(mime) > longest {
			return false
		}
		ok, seen := known[mime]
		if !seen {
			t := strings.ToLower(mime)
			if !strings.Contains(pattern, ";") {
				t, _, _ = strings.Cut(t, ";")
			}
			t = strings.TrimSpace(t)
			ok, _ = path.Match(pattern, t)
			ok = t != "" && (ok || pattern == "*")
			if len(known) < 1000 {
				known[mime] = ok
			}
		}
		return ok
	}, nil
}
