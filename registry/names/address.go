package names

import "strings"

// NormalizeAddress splits a URI like URL parsers do. It ignores the case of the scheme,
// leading whitespace, and tabs and line breaks in scheme and host. ours reports whether
// the scheme is mcp. server and rest are the parts around the first slash.
func NormalizeAddress(uri string) (server, rest string, ours bool) {
	rest, ours = strings.CutPrefix(uri, Scheme)
	if !ours {
		if rest, ours = CutScheme(uri, Scheme); !ours {
			return "", "", false
		}
	}
	server, rest, _ = CutHost(rest)
	return server, rest, true
}

// CutHost splits the text after a scheme's slashes at the end of the host. path reports
// whether a slash follows the host; rest does not include it.
func CutHost(uri string) (host, rest string, path bool) {
	end := strings.IndexAny(uri, "/?#")
	if end < 0 {
		end = len(uri)
	}
	if host = uri[:end]; strings.ContainsAny(host, "\t\r\n") {
		host = strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(host)
	}
	if rest = uri[end:]; rest != "" && rest[0] == '/' {
		return host, rest[1:], true
	}
	return host, "", false
}

// CutScheme removes the scheme want, which must be lower case, in any spelling that URL
// parsers accept.
func CutScheme(uri, want string) (rest string, ok bool) {
	for uri != "" && uri[0] <= ' ' {
		uri = uri[1:]
	}
	for i := 0; i < len(want); {
		if uri == "" {
			return "", false
		}
		c := uri[0]
		uri = uri[1:]
		switch {
		case c == '\t' || c == '\r' || c == '\n':
			continue
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		}
		if c != want[i] {
			return "", false
		}
		i++
	}
	return uri, true
}
