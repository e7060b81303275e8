package registry

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// MIMEFilter returns a function that matches an entry's MIME type with a pattern. It is
// nil for an empty pattern. Invalid patterns return [ErrBadMIME].
func MIMEFilter(pattern string) (func(*Entry) bool, error) {
	fits, err := matchMIME(pattern)
	if fits == nil {
		return nil, err
	}
	return func(e *Entry) bool { return fits(e.MIME) }, nil
}

// ErrBadMIME reports a MIME pattern that is not a glob or is too long.
var ErrBadMIME = errors.New("bad MIME type pattern")

// maxMIME is the maximum length of a MIME type or pattern, in bytes. Matching takes time
// proportional to the product of both.
const maxMIME = 256

// A pattern is a case-insensitive glob. It ignores parameters unless it contains some.
func matchMIME(pattern string) (func(mime string) bool, error) {
	if pattern == "" {
		return nil, nil
	}
	pattern = strings.ToLower(strings.TrimSpace(pattern))
	if _, err := path.Match(pattern, ""); err != nil || len(pattern) > maxMIME {
		return nil, fmt.Errorf("%w: %q", ErrBadMIME, strings.ToValidUTF8(pattern[:min(len(pattern), maxMIME)], ""))
	}
	known := map[string]bool{} // a catalog has few types
	return func(mime string) bool {
		if len(mime) > maxMIME {
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
