package registry

import (
	"strings"

	"goblin/registry/cache"
	"goblin/registry/names"
)

// ListedURI returns the form in which clients see a server's URI. O(1).
func (r *Registry) ListedURI(server, original string) string {
	return r.Load().ListedURI(server, original)
}

// ListedURI returns the form of a server's URI in this catalog, as [Registry.ListedURI].
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
	for t.whole != nil { // names do not depend on what is chosen
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

// hasPlain reports whether a listed URI has the plain flat id already.
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

// newLinkCache returns an empty cache of a server's links. Their aliases are the flat id and, where
// it differs, the alias key; these cannot be confused because only alias keys have a scheme.
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

// RecordLink notes a URI that the server itself returned (a link in a result, the
// URI of contents or of an update), which makes it readable. It is kept in a
// bounded LRU per server, and ignored when the server lists it.
func (r *Registry) RecordLink(server, original string) {
	t := r.Load().table(server)
	if t == nil || t.rule == nil || t.runs[Resource].name(hashKey(original), original) != nil {
		return
	}
	t.links.Add(original)
}
