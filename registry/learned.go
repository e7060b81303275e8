package registry

import (
	"container/list"
	"slices"
	"strings"
	"sync"

	"goblin/registry/uriform"
)

// Bounds of a server's learned links.
const (
	maxLearned      = 4096
	maxLearnedBytes = 4 << 20
	maxLearnedURI   = 8 << 10
)

// learned is the LRU of URIs that a server returned without listing them. It
// outlives snapshots. Besides the URIs themselves it knows their aliases: the
// flat id and, where it differs, the alias key.
type learned struct {
	server string

	mu      sync.Mutex
	recent  *list.List // of string, most recent first
	uris    map[string]*list.Element
	aliases map[string]*alias // by alias key or flat key
	bytes   int
}

// alias holds the URIs with one alias. A server can give all of its URIs the same,
// so no more than maxCandidates are kept, and the others counted.
type alias struct {
	uris []string
	more int // that are not in uris
}

func newLearned(server string) *learned {
	return &learned{
		server:  server,
		recent:  list.New(),
		uris:    map[string]*list.Element{},
		aliases: map[string]*alias{},
	}
}

func (l *learned) add(uri string) {
	if uri == "" || len(uri) > maxLearnedURI {
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
		if len(x.uris) < maxCandidates {
			x.uris = append(x.uris, uri)
		} else {
			x.more++
		}
	}
	l.bytes += len(uri)
	for len(l.uris) > maxLearned || l.bytes > maxLearnedBytes {
		l.drop(l.recent.Back())
	}
}

func (l *learned) drop(e *list.Element) {
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

// aliasesOf returns the keys beside the URI itself. The two kinds cannot be
// mixed up: only alias keys have a scheme.
func (l *learned) aliasesOf(uri string) []string {
	plain := strings.TrimLeft(flatten(uri), "_")
	short, long := tails(uri, '~')
	keys := []string{plain, plain + short, plain + long}
	if exact := namespaced(l.server, uri); uriform.Norm(exact) != exact {
		keys = append(keys, uriform.Norm(exact))
	}
	return keys
}

// has reports whether the server returned exactly this URI.
func (l *learned) has(uri string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.uris[uri]
	if ok {
		l.recent.MoveToFront(e)
	}
	return ok
}

// alias returns what the alias key or flat key stands for, at most maxCandidates
// of it; nothing if it is not known which of several.
func (l *learned) alias(key string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.aliases[key]
	if x == nil || x.more > 0 && len(x.uris) < 2 {
		return nil
	}
	return slices.Clone(x.uris)
}

func (l *learned) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent.Init()
	clear(l.uris)
	clear(l.aliases)
	l.bytes = 0
}
