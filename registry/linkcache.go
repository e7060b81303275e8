// Learned remembers URIs that a server returned without listing them, so that
// clients can read them. It knows their other spellings only as it is told.

package registry

import (
	"container/list"
	"slices"
	"strings"
	"sync"
)

// Bounds of a server's links.
const (
	Max        = 4096
	MaxBytes   = 4 << 20
	MaxLinkURI = 8 << 10
	MaxAlike   = 20 // that are kept of those with one alias
)

// LinkCache is the LRU of URIs that a server returned without listing them. Besides the URIs
// themselves it knows their aliases. Make it with [New].
type LinkCache struct {
	aliasesOf func(uri string) []string

	mu      sync.Mutex
	recent  *list.List // of string, most recent first
	uris    map[string]*list.Element
	aliases map[string]*alias // by key
	bytes   int
}

// alias holds the URIs with one alias. A server can give all of its URIs the same,
// so no more than MaxAlike are kept, and the others counted.
type alias struct {
	uris []string
	more int // that are not in uris
}

// NewLinkCache is empty. aliasesOf returns the other keys by which a URI is found.
func NewLinkCache(aliasesOf func(uri string) []string) *LinkCache {
	return &LinkCache{
		aliasesOf: aliasesOf,
		recent:    list.New(),
		uris:      map[string]*list.Element{},
		aliases:   map[string]*alias{},
	}
}

// Add notes a URI, which is used last for now.
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
	uri = strings.Clone(uri) // the caller's may be part of a large frame
	l.uris[uri] = l.recent.PushFront(uri)
	for _, a := range l.aliasesOf(uri) {
		x := l.aliases[a]
		if x == nil {
			x = &alias{}
			l.aliases[a] = x
		}
		if len(x.uris) < MaxAlike {
			x.uris = append(x.uris, uri)
		} else {
			x.more++
		}
	}
	l.bytes += len(uri)
	for len(l.uris) > Max || l.bytes > MaxBytes {
		l.drop(l.recent.Back())
	}
}

func (l *LinkCache) drop(e *list.Element) {
	uri := l.recent.Remove(e).(string)
	delete(l.uris, uri)
	l.bytes -= len(uri)
	for _, a := range l.aliasesOf(uri) {
		x := l.aliases[a]
		if i := slices.Index(x.uris, uri); i >= 0 {
			x.uris = slices.Delete(x.uris, i, i+1)
		} else {
			x.more--
		}
		if len(x.uris)+x.more == 0 {
			delete(l.aliases, a)
		}
	}
}

// Has reports whether the server returned exactly this URI.
func (l *LinkCache) Has(uri string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.uris[uri]
	if ok {
		l.recent.MoveToFront(e)
	}
	return ok
}

// Alias returns what an alias stands for, at most MaxAlike
// of it; nothing if it is not known which of several.
func (l *LinkCache) Alias(key string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.aliases[key]
	if x == nil || x.more > 0 && len(x.uris) < 2 {
		return nil
	}
	return slices.Clone(x.uris)
}

// Clear forgets all.
func (l *LinkCache) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent.Init()
	clear(l.uris)
	clear(l.aliases)
	l.bytes = 0
}

// Size is how many URIs there are, of how many bytes, and how many have an alias.
func (l *LinkCache) Size(of string) (uris, bytes, alike int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.aliases[of]; a != nil {
		alike = len(a.uris) + a.more
	}
	return len(l.uris), l.bytes, alike
}
