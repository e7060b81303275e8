package names

import "strings"

// NormalizeAddress takes a URI apart as URL parsers do: the case of the scheme does not
// count, neither does white space in front of it, nor do tabs and line breaks in
// it and in the host. ours says that the scheme is mcp; server and rest are what
// stands before and behind the first slash, rest as it is.
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

// CutHost splits what stands behind the slashes of a scheme at the end of the host.
// path says that a slash follows, which is not in rest.
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

// CutScheme cuts off what URL parsers take for want, in lower case.
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
