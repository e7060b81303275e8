package names

import "strings"

// NormalizeURI normalizes a URI like WHATWG URL parsers (pydantic's AnyUrl, Rust's url)
// do for unknown schemes. Clients with such parsers send this form back. It drops outer
// whitespace, tabs and line breaks, resolves dot segments, and percent-encodes invalid
// characters. Scheme and host stay unchanged.
func NormalizeURI(uri string) string {
	if IsCleanURI(uri) {
		return uri
	}
	uri = strings.TrimFunc(uri, func(r rune) bool { return r <= ' ' })
	if strings.ContainsAny(uri, "\t\r\n") {
		uri = strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(uri)
	}
	head, rest := uri, ""
	if i := strings.Index(uri, "://"); i >= 0 {
		at := i + len("://")
		if n := strings.IndexAny(uri[at:], "/?#"); n >= 0 {
			head, rest = uri[:at+n], uri[at+n:]
		}
	}
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	path, query, hasQuery := strings.Cut(rest, "?")
	b := make([]byte, 0, len(uri)+len(uri)/4)
	b = append(b, head...)
	b = appendPath(b, path)
	if hasQuery {
		b = appendEncoded(append(b, '?'), query, "\"<>")
	}
	if hasFragment {
		b = appendEncoded(append(b, '#'), fragment, "\"<>`")
	}
	return string(b)
}

// IsCleanURI reports whether [NormalizeURI] leaves uri unchanged, as for most URIs. It
// has no false positives.
func IsCleanURI(uri string) bool {
	for i := 0; i < len(uri); i++ {
		switch c := uri[i]; {
		case c <= ' ', c > '~', c == '"', c == '<', c == '>', c == '`', c == '{', c == '}':
			return false
		case c == '/' && i+1 < len(uri) && (uri[i+1] == '.' || uri[i+1] == '%'):
			return false
		}
	}
	return true
}

func appendPath(b []byte, path string) []byte {
	if path == "" {
		return b
	}
	start := len(b)
	rest, more := path[1:], true // path begins with a slash
	for more {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch dotSegment(segment) {
		case 2:
			at := len(b)
			for at > start && b[at-1] != '/' {
				at--
			}
			b = b[:max(start, at-1)]
			fallthrough
		case 1:
			if !more {
				b = append(b, '/')
			}
		default:
			b = appendEncoded(append(b, '/'), segment, "\"<>`{}")
		}
	}
	return b
}

// dotSegment returns 1 for a segment that means ".", 2 for "..", otherwise 0.
func dotSegment(s string) int {
	n := 0
	for ; s != ""; n++ {
		switch {
		case s[0] == '.':
			s = s[1:]
		case len(s) >= 3 && s[0] == '%' && s[1] == '2' && s[2]|0x20 == 'e':
			s = s[3:]
		default:
			return 0
		}
	}
	if n > 2 {
		return 0
	}
	return n
}

// appendEncoded percent-encodes the bytes of s that are not graphic ASCII or are in also.
func appendEncoded(b []byte, s, also string) []byte {
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		if c := s[i]; c > ' ' && c <= '~' && strings.IndexByte(also, c) < 0 {
			b = append(b, c)
		} else {
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return b
}

// UnescapeURI decodes percent triplets and keeps invalid ones.
func UnescapeURI(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c, ok := ParseTriplet(s[i:]); ok {
			b = append(b, c)
			i += 2
		} else {
			b = append(b, s[i])
		}
	}
	return string(b)
}

// ParseTriplet decodes a percent triplet at the beginning of s.
func ParseTriplet(s string) (c byte, ok bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	hi, lo := hexValue(s[1]), hexValue(s[2])
	return hi<<4 | lo, hi|lo < 16
}

func hexValue(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 0xff
}

// HasDotDot reports whether a URI has a "." or ".." segment in any escaped form.
func HasDotDot(uri string) bool {
	_, path, _ := strings.Cut(uri, "://")
	for more := true; more; {
		var segment string
		at := strings.IndexAny(path, `/\?#`)
		if more = at >= 0; more {
			segment, path = path[:at], path[at+1:]
		} else {
			segment = path
		}
		segment = strings.ReplaceAll(strings.ReplaceAll(segment, "%2F", "/"), "%2f", "/")
		for _, part := range strings.Split(segment, "/") {
			if dotSegment(part) > 0 {
				return true
			}
		}
	}
	return false
}
