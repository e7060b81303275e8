package registry

import (
	"container/list"
	"strings"
	"sync"
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
	aliases map[string][]string // alias key or flat key → URIs
	bytes   int
}

func newLearned(server string) *learned {
	return &learned{
		server:  server,
		recent:  list.New(),
		uris:    map[string]*list.Element{},
		aliases: map[string][]string{},
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
		l.aliases[a] = append(l.aliases[a], uri)
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
		kept := l.aliases[a][:0]
		for _, u := range l.aliases[a] {
			if u != uri {
				kept = append(kept, u)
			}
		}
		if len(kept) == 0 {
			delete(l.aliases, a)
		} else {
			l.aliases[a] = kept
		}
	}
}

// aliasesOf returns the keys beside the URI itself. The two kinds cannot be
// mixed up: only alias keys begin with mcp://.
func (l *learned) aliasesOf(uri string) []string {
	plain := strings.TrimLeft(flatten(uri), "_")
	keys := []string{plain, plain + "~" + flatHash(uri)}
	if exact := namespaced(l.server, uri); Norm(exact) != exact {
		keys = append(keys, Norm(exact))
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

// alias returns what the alias key or flat key stands for, at most
// maxCandidates of it.
func (l *learned) alias(key string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.aliases[key]
	return append([]string(nil), found[:min(len(found), maxCandidates)]...)
}

func (l *learned) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent.Init()
	clear(l.uris)
	clear(l.aliases)
	l.bytes = 0
}
