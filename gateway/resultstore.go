package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"goblin/gateway/memlimit"
	"goblin/registry"
)

const resultURIPrefix = "goblin://results/"

// isResultURI reports whether a URI may be of a stored text.
func isResultURI(uri string) bool { return strings.HasPrefix(uri, resultURIPrefix) }

// Limits of stored texts. The oldest is evicted first.
const (
	ResultLifetime  = time.Hour // after the last read
	maxResultBytes  = 16 << 20  // per result
	maxOwnerBytes   = 32 << 20  // per owner
	maxTotalBytes   = 128 << 20
	maxOwnerResults = 256 // per owner
	maxTotalResults = 1024
)

// ResultStore stores texts cut from long results, which clients read page by page. An
// owner is a session, or a profile's stateless clients, which need the unguessable URI.
// All methods are safe for concurrent use and never block.
type ResultStore struct {
	memory *memlimit.Owner

	mu    sync.Mutex
	all   []*storedText // oldest first
	bytes int
}

type storedText struct {
	id          string
	owner       string // "": everyone with the id
	text        string
	page        int // bytes
	reservation memlimit.Reservation
	timer       *time.Timer
}

// NewResultStore counts its bytes in a pool, which may be nil.
func NewResultStore(a *memlimit.Pool) *ResultStore { return &ResultStore{memory: a.NewOwner()} }

// add stores what fits of a text, or returns nil.
func (s *ResultStore) add(owner, text string, page int) *storedText {
	if len(text) > maxResultBytes {
		text = text[:charBoundary(text, maxResultBytes)]
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	k := &storedText{id: hex.EncodeToString(id[:]), owner: owner, text: text, page: page}
	k.reservation.SetOwner(s.memory)
	s.mu.Lock()
	defer s.mu.Unlock()
	own, bytes := s.ownerBytesLocked(owner)
	for own >= maxOwnerResults || bytes+len(text) > maxOwnerBytes {
		bytes -= s.evictLocked(func(k *storedText) bool { return k.owner == owner })
		own--
	}
	for len(s.all) >= maxTotalResults || s.bytes+len(text) > maxTotalBytes {
		s.evictLocked(func(*storedText) bool { return true })
	}
	for !k.reservation.Resize(int64(len(text))) {
		if s.evictLocked(func(k *storedText) bool { return k.reservation.IsCounted() }) == 0 {
			return nil
		}
	}
	s.all = append(s.all, k)
	s.bytes += len(text)
	k.timer = time.AfterFunc(ResultLifetime, func() { s.drop(func(o *storedText) bool { return o == k }) })
	return k
}

func (s *ResultStore) ownerBytesLocked(owner string) (count, bytes int) {
	for _, k := range s.all {
		if k.owner == owner {
			count++
			bytes += len(k.text)
		}
	}
	return count, bytes
}

// evictLocked removes the oldest matching text and returns its bytes, or 0.
func (s *ResultStore) evictLocked(fits func(*storedText) bool) int {
	at := slices.IndexFunc(s.all, fits)
	if at < 0 {
		return 0
	}
	k := s.all[at]
	s.all = slices.Delete(s.all, at, at+1)
	s.bytes -= len(k.text)
	k.reservation.Resize(0)
	k.timer.Stop()
	return len(k.text)
}

func (s *ResultStore) drop(fits func(*storedText) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for slices.ContainsFunc(s.all, fits) {
		s.evictLocked(fits)
	}
}

// Drop removes the texts of an owner.
func (s *ResultStore) Drop(owner string) {
	s.drop(func(k *storedText) bool { return k.owner == owner })
}

func (s *ResultStore) find(owner, uri string) (*storedText, int, error) {
	id, number, paged := strings.Cut(strings.TrimPrefix(uri, resultURIPrefix), "/")
	page := 1
	if paged {
		page, _ = strconv.Atoi(number) // 0 is invalid
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.all {
		if k.id != id || k.owner != "" && k.owner != owner {
			continue
		}
		if page < 1 || page > k.pages() || paged && strconv.Itoa(page) != number {
			return nil, 0, missing(uri, "The result has "+strconv.Itoa(k.pages())+" pages")
		}
		k.timer.Reset(ResultLifetime)
		return k, page, nil
	}
	return nil, 0, missing(uri, "No such result: it is kept for one hour in the session that got it; call the tool again")
}

func missing(uri, reason string) error {
	return &registry.NotFoundError{Kind: registry.Resource, Name: uri, Reason: reason}
}

// step is the distance between pages, in bytes. Pages begin and end at characters, so it
// is shorter than the maximum page.
func (k *storedText) step() int { return k.page - utf8.UTFMax }

func (k *storedText) pages() int { return max(1, (len(k.text)+k.step()-1)/k.step()) }

func (k *storedText) uri(page int) string {
	if page == 1 {
		return resultURIPrefix + k.id
	}
	return resultURIPrefix + k.id + "/" + strconv.Itoa(page)
}

func (k *storedText) slice(page int) string {
	return k.text[charBoundary(k.text, (page-1)*k.step()):charBoundary(k.text, page*k.step())]
}

// charBoundary returns the start of the character at a position, or the end of text.
func charBoundary(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	for back := range utf8.UTFMax {
		if at-back <= 0 {
			return 0
		}
		if utf8.RuneStart(text[at-back]) {
			return at - back
		}
	}
	return at // not UTF-8
}
