// Results makes long results of tools short: the head and the tail of the text go
// to the client, and what is between them is kept for a while as a resource that is read
// page by page.
//
// It owns what is left out, what is said of that, and the URIs by which it is read. What
// is kept is bounded in number, bytes and time, and belongs to an owner: a session, with
// which it ends, or clients without one that share a name. Such clients have it if they
// know the URI, which cannot be guessed. It must not know what bounds results. Nothing here
// blocks; all methods may be called from any goroutine.

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

// resultURIPrefix begins the URIs of stored texts.
const resultURIPrefix = "goblin://results/"

// IsResultURI reports whether a URI is one of what was left out, now or ever.
func IsResultURI(uri string) bool { return strings.HasPrefix(uri, resultURIPrefix) }

// Bounds of what is kept; the oldest makes room.
const (
	ResultLifetime  = time.Hour // since it was last read
	maxResultBytes  = 16 << 20  // bytes of one result
	maxOwnerBytes   = 32 << 20  // bytes of one owner
	maxTotalBytes   = 128 << 20
	maxOwnerResults = 256 // results of one owner
	maxTotalResults = 1024
)

// ResultStore stores the parts that were cut from results. Create it with [NewResultStore].
type ResultStore struct {
	memory *memlimit.Owner

	mu    sync.Mutex
	all   []*storedText // the oldest first
	bytes int
}

// storedText is the part that was cut from one result.
type storedText struct {
	id          string
	owner       string // "": every client that knows the id
	text        string
	page        int // bytes
	reservation memlimit.Reservation
	timer       *time.Timer
}

// NewResultStore returns a store whose bytes count in a pool, which may be nil.
func NewResultStore(a *memlimit.Pool) *ResultStore { return &ResultStore{memory: a.NewOwner()} }

// add stores a text for an owner, or as much of it as fits. It returns nil if nothing fits.
func (s *ResultStore) add(owner, text string, page int) *storedText {
	if len(text) > maxResultBytes {
		text = text[:charBoundary(text, maxResultBytes)]
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
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

// ownerBytesLocked returns the number of bytes stored for an owner.
func (s *ResultStore) ownerBytesLocked(owner string) (count, bytes int) {
	for _, k := range s.all {
		if k.owner == owner {
			count++
			bytes += len(k.text)
		}
	}
	return count, bytes
}

// evictLocked removes the oldest text that matches, and returns its bytes, or 0 if none
// matches.
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

// Drop forgets what an owner has.
func (s *ResultStore) Drop(owner string) {
	s.drop(func(k *storedText) bool { return k.owner == owner })
}

// find returns what a URI stands for to an owner, and which page of it.
func (s *ResultStore) find(owner, uri string) (*storedText, int, error) {
	id, number, paged := strings.Cut(strings.TrimPrefix(uri, resultURIPrefix), "/")
	page := 1
	if paged {
		page, _ = strconv.Atoi(number) // 0 is no page
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
	return nil, 0, missing(uri, "No such result: what was left out of one is kept for an hour and for the session that got it; call the tool again")
}

func missing(uri, reason string) error {
	return &registry.NotFoundError{Kind: registry.Resource, Name: uri, Reason: reason}
}

// step is how far the pages begin apart, so that none is longer than one may be.
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

// charBoundary is the place in a text at or shortly before at where a character begins, or the
// text's end.
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
	return at // it is no text
}
