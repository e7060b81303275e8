package registry

import "goblin/registry/mime"

// ErrBadMIME is returned for a MIME pattern that is not a glob, or too long.
var ErrBadMIME = mime.ErrBad

// MIMEFilter is [mime.Filter] for the types of entries.
func MIMEFilter(pattern string) (func(*Entry) bool, error) {
	fits, err := mime.Filter(pattern)
	if fits == nil {
		return nil, err
	}
	return func(e *Entry) bool { return fits(e.MIME) }, nil
}
