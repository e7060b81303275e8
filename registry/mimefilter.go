package registry

// MIMEFilter is [matchMIME] for the types of entries.
func MIMEFilter(pattern string) (func(*Entry) bool, error) {
	fits, err := matchMIME(pattern)
	if fits == nil {
		return nil, err
	}
	return func(e *Entry) bool { return fits(e.MIME) }, nil
}
