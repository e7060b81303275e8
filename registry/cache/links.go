package cache

import (
	"container/list"
	"slices"
	"strings"
	"sync"
)

// Limits of [LinkCache].
const (
	MaxLinks     = 4096
	MaxLinkBytes = 4 << 20 // of all URIs
	MaxLinkURI   = 8 << 10 // bytes of one URI
	MaxAliases   = 20      // stored URIs per alias
)

// LinkCache is an LRU cache of URIs that a server returned without listing them. It also
// finds them by alias. It is safe for concurrent use.
type LinkCache struct {
	aliasesOf func(uri string) []string

	mu      sync.Mutex
	recent  *list.List // of string, most recent first
	uris    map[string]*list.Element
	aliases map[string]*alias // by key
	bytes   int
}

// alias holds the URIs of one alias. A server can give all its URIs the same alias.
type alias struct {
	uris     []string
	unstored int // counted only
}

// NewLinkCache returns an empty cache. aliasesOf returns the aliases of a URI and must be
// pure.
func NewLinkCache(aliasesOf func(uri string) []string) *LinkCache {
	return &LinkCache{
		aliasesOf: aliasesOf,
		recent:    list.New(),
		uris:      map[string]*list.Element{},
		aliases:   map[string]*alias{},
	}
}

// Add stores a URI as the most recently used.
func (l *LinkCache) Add(uri string) {
	if uri == "" || len(uri) > MaxLinkURI {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.uris[uri]; ok {
		l.recent.MoveToFront(e)
		return
	}
	uri = strings.Clone(uri) // the argument may be part of a large frame
	l.uris[uri] = l.recent.PushFront(uri)
	for _, a := range l.aliasesOf(uri) {
		x := l.aliases[a]
		if x == nil {
			x = &alias{}
			l.aliases[a] = x
		}
		if len(x.uris) < MaxAliases {
			x.uris = append(x.uris, uri)
		} else {
			x.unstored++
		}
	}
	l.bytes += len(uri)
	for len(l.uris) > MaxLinks || l.bytes > MaxLinkBytes {
		l.removeElement(l.recent.Back())
	}
}

func (l *LinkCache) removeElement(e *list.Element) {
	uri := l.recent.Remove(e).(string)
	delete(l.uris, uri)
	l.bytes -= len(uri)
	for _, a := range l.aliasesOf(uri) {
		x := l.aliases[a]
		if i := slices.Index(x.uris, uri); i >= 0 {
			x.uris = slices.Delete(x.uris, i, i+1)
		} else {
			x.unstored--
		}
		if len(x.uris)+x.unstored == 0 {
			delete(l.aliases, a)
		}
	}
}

// Has reports whether a URI is stored. It counts as a use.
func (l *LinkCache) Has(uri string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.uris[uri]
	if ok {
		l.recent.MoveToFront(e)
	}
	return ok
}

// Alias returns the URIs of an alias, at most MaxAliases. It returns nil if only one of
// several is stored, because the alias is ambiguous.
func (l *LinkCache) Alias(key string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.aliases[key]
	if x == nil || x.unstored > 0 && len(x.uris) < 2 {
		return nil
	}
	return slices.Clone(x.uris)
}

// Clear removes all URIs.
func (l *LinkCache) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent.Init()
	clear(l.uris)
	clear(l.aliases)
	l.bytes = 0
}

// Size returns the number of URIs, their bytes, and the number of URIs with an alias.
func (l *LinkCache) Size(key string) (uris, bytes, alike int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.aliases[key]; a != nil {
		alike = len(a.uris) + a.unstored
	}
	return len(l.uris), l.bytes, alike
}
