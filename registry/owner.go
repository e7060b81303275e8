package registry

import "strings"

// Bounds of names and URIs, in requests as in lists: longer ones are nobody's.
const (
	MaxName = 4 << 10  // bytes of the name of a tool or prompt
	MaxURI  = 64 << 10 // bytes of a URI or template
)

// A name below the prefix of a configured server is that server's for good,
// whether it lists it, is down or disabled, or has it withheld: nobody else can
// be reached by it. The longest prefix counts, and no more of a name is looked
// at. Besides that only the table of listed names is asked, in which no server
// can have another's name (see rule).

// owner is the server whose prefix the name of a tool or prompt has, nil for
// none. named says that the prefix is "server/", behind which rest stands.
func (s *Snapshot) owner(k Kind, name string) (t *table, rest string, named bool) {
	d := s.dir
	head := name[:min(len(name), d.longest+1)]
	if i := strings.IndexByte(head, '/'); i >= 0 {
		if n, ok := d.byName[head[:i]]; ok {
			return s.tables[n], name[i+1:], true
		}
	}
	n, at := 0, strings.LastIndexByte(head, '_')
	for ; at > 0; at = strings.LastIndexByte(head[:at], '_') {
		if n = d.prefixed(k, head[:at]); n > 0 {
			break
		}
	}
	if k == Tool && endsInTail(name, '_') {
		if cut := s.cutOwner(name); cut > 0 && at < headLen(len(name)) {
			n = cut
		}
	}
	if n == 0 {
		return nil, "", false
	}
	return s.tables[n], "", false
}

// cutOwner is the number of the first server whose prefix the name of a tool with a
// tail may have been cut within, whatever its length, 0 for none.
func (s *Snapshot) cutOwner(name string) int {
	if len(name) < leastToolName || len(name) > mostToolName {
		return 0
	}
	head := name[:headLen(len(name))]
	for i, t := range s.tables[1:] {
		if len(t.rule.tool) >= len(head) && strings.HasPrefix(t.rule.tool, head) {
			return i + 1
		}
	}
	return 0
}

// prefixed is the number of the server whose names begin with key and an
// underscore, 0 for none.
func (d *directory) prefixed(k Kind, key string) int {
	own, sanitized := d.byName[key], d.byTool[key]
	if k == Tool && sanitized > 0 || own == 0 {
		return sanitized
	}
	return own
}

// flatOwner is the server whose flat ids begin as uri does, nil for none.
func (s *Snapshot) flatOwner(uri string) (t *table) {
	var room [128]byte
	key := room[:0]
	for i := 0; i < len(uri) && len(key) <= s.dir.longest && flatByte[uri[i]]; i++ {
		under := uri[i] == '_'
		if under && len(key) > 0 && key[len(key)-1] == '_' {
			continue
		}
		if under {
			if found := s.dir.byFlat[string(key)]; len(found) > 0 {
				t = s.tables[found[0]]
			}
		}
		key = append(key, uri[i])
	}
	return t
}

// address takes a URI apart as URL parsers do: the case of the scheme does not
// count, neither does white space in front of it, nor do tabs and line breaks in
// it and in the host. ours says that the scheme is mcp; server and rest are what
// stands before and behind the first slash, rest as it is.
func address(uri string) (server, rest string, ours bool) {
	rest, ours = strings.CutPrefix(uri, scheme)
	if !ours {
		if rest, ours = cutScheme(uri, scheme); !ours {
			return "", "", false
		}
	}
	server, rest, _ = cutHost(rest)
	return server, rest, true
}

// cutHost splits what stands behind the slashes of a scheme at the end of the host.
// path says that a slash follows, which is not in rest.
func cutHost(uri string) (host, rest string, path bool) {
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

// located is address with the table of the server, nil for none. A URI with a scheme
// that listed ones keep is ours only below a server that there is; then bare says that
// it may be that server's own as well.
func (s *Snapshot) located(uri string) (t *table, server, rest string, ours, bare bool) {
	if server, rest, ours = address(uri); ours {
		return s.table(server), server, rest, true, false
	}
	for _, kept := range keptSchemes {
		if after, ok := cutScheme(uri, kept); ok {
			server, rest, ok = cutHost(after)
			if t = s.table(server); ok && t != nil {
				return t, server, kept + rest, true, true
			}
		}
	}
	return nil, "", "", false, false
}

// cutScheme cuts off what URL parsers take for want, in lower case.
func cutScheme(uri, want string) (rest string, ok bool) {
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
