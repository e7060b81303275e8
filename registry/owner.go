package registry

import (
	"strings"

	"goblin/registry/names"
)

// Bounds of names and URIs, in requests as in lists: longer ones are nobody's.
const (
	MaxName = 4 << 10  // bytes of the name of a tool or prompt
	MaxURI  = 64 << 10 // bytes of a URI or template
)

// A name below the prefix of a configured server is that server's for good,
// whether it lists it, is down or disabled, or has it withheld: nobody else can
// be reached by it. The longest prefix counts, and no more of a name is looked
// at. Besides that only the table of listed names is asked, in which no server
// can have another's name (see [names.Rule]).

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

// cutOwner is the number of the first server whose prefix the name of a tool with a
// tail may have been cut within, whatever its length, 0 for none.
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

// located is [names.NormalizeAddress] with the table of the server, nil for none. A URI with a scheme
// that listed ones keep is ours only below a server that there is; then bare says that
// it may be that server's own as well.
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
