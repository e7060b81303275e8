package registry

import (
	"strings"

	"goblin/registry/cache"
	"goblin/registry/names"
)

// ListedURI returns a server's URI as clients see it, in O(1).
func (r *Registry) ListedURI(server, original string) string {
	return r.Load().ListedURI(server, original)
}

// ListedURI returns a server's URI as clients of this snapshot see it.
func (s *Snapshot) ListedURI(server, original string) string {
	if t := s.table(server); t != nil {
		return s.listedURI(t, original)
	}
	if s.flat && names.NativeScheme(original) == "" {
		return names.FlatID(server, original)
	}
	return names.NamespacedURI(server, original)
}

func (s *Snapshot) listedURI(t *table, original string) string {
	if t.rule == nil {
		return original
	}
	for t.whole != nil { // names do not depend on visibility
		t = t.whole
	}
	run := t.runs[Resource]
	if e := run.name(hashKey(original), original); e != nil {
		return e.Listed
	}
	if !s.flat || names.NativeScheme(original) != "" {
		return names.NamespacedURI(t.name, original)
	}
	plain := names.Flatten(original)
	if t.rule.FlatSuffixReason(plain) != names.NoSuffix || run.hasPlain(plain) {
		return t.name + "_" + plain + t.rule.FlatSuffix(original, plain)
	}
	return t.name + "_" + plain
}

func (r *run) hasPlain(plain string) bool {
	if r == nil {
		return false
	}
	plain = strings.TrimLeft(plain, "_")
	hash := hashKey(plain)
	if first, _ := r.byFlat.find(r.entries, hash, plain, byFlat); first != nil {
		return true
	}
	first, _ := r.byPlain.find(r.entries, hash, plain, byPlain)
	return first != nil
}

// The aliases of a link are its flat id and, if it differs, its alias key. They cannot
// collide: only alias keys have a scheme.
func newLinkCache(server string) *cache.LinkCache {
	return cache.NewLinkCache(func(uri string) []string {
		plain := strings.TrimLeft(names.Flatten(uri), "_")
		short, long := names.HashSuffixes(uri, '~')
		keys := []string{plain, plain + short, plain + long}
		if exact := names.NamespacedURI(server, uri); names.NormalizeURI(exact) != exact {
			keys = append(keys, names.NormalizeURI(exact))
		}
		return keys
	})
}

// RecordLink makes an unlisted URI readable that the server itself returned, in a result,
// contents or an update. Each server has an LRU of such links.
func (r *Registry) RecordLink(server, original string) {
	t := r.Load().table(server)
	if t == nil || t.rule == nil || t.runs[Resource].name(hashKey(original), original) != nil {
		return
	}
	t.links.Add(original)
}
