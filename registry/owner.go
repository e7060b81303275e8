package registry

import (
	"strings"

	"goblin/registry/names"
)

// Limits of names and URIs, in requests and lists. Longer ones are unknown.
const (
	MaxName = 4 << 10  // bytes of a tool or prompt name
	MaxURI  = 64 << 10 // bytes of a URI or template
)

// A name with the prefix of a configured server belongs to that server and never reaches
// another one. This holds even if the server is down or disabled, or the tool is
// unapproved or not listed. The longest prefix wins. Other names are found only in the
// table of listed names, which are unique (see [names.Rule]).

// owner returns the server whose prefix a tool or prompt name has, or nil. named reports
// whether the prefix is "server/"; then rest follows it.
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
	if k == Tool && names.HasHashSuffix(name, '_') {
		if cut := s.cutOwner(name); cut > 0 && at < names.PrefixLen(len(name)) {
			n = cut
		}
	}
	if n == 0 {
		return nil, "", false
	}
	return s.tables[n], "", false
}

// cutOwner returns the number of the first server whose prefix may be cut in a suffixed
// tool name, or 0.
func (s *Snapshot) cutOwner(name string) int {
	if len(name) < names.MinNameLen || len(name) > names.MaxNameLen {
		return 0
	}
	head := name[:names.PrefixLen(len(name))]
	for i, t := range s.tables[1:] {
		if t.rule.IsPrefixCut(head) {
			return i + 1
		}
	}
	return 0
}

// prefixed returns the number of the server whose names begin with key and an underscore,
// or 0.
func (d *directory) prefixed(k Kind, key string) int {
	own, sanitized := d.byName[key], d.byTool[key]
	if k == Tool && sanitized > 0 || own == 0 {
		return sanitized
	}
	return own
}

func (s *Snapshot) flatOwner(uri string) (t *table) {
	var room [128]byte
	key := room[:0]
	for i := 0; i < len(uri) && len(key) <= s.dir.longest && names.IsFlatByte(uri[i]); i++ {
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

// located splits a URI with [names.NormalizeAddress] and adds the server's table, or nil.
// Native schemes count only for an existing server. Then bare is true: the whole URI may
// also be the server's own.
func (s *Snapshot) located(uri string) (t *table, server, rest string, ours, bare bool) {
	if server, rest, ours = names.NormalizeAddress(uri); ours {
		return s.table(server), server, rest, true, false
	}
	for _, kept := range names.NativeSchemes {
		if after, ok := names.CutScheme(uri, kept); ok {
			server, rest, ok = names.CutHost(after)
			if t = s.table(server); ok && t != nil {
				return t, server, kept + rest, true, true
			}
		}
	}
	return nil, "", "", false, false
}
