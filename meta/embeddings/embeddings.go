package embeddings

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"goblin/meta/search"
	"goblin/registry"
)

const (
	maxTools      = 20_000
	maxBytes      = 128 << 20 // of all vectors
	maxText       = 2 << 10   // bytes sent per tool
	batch         = 32        // texts per request
	batchTime     = time.Minute
	queryTime     = 2 * time.Second
	failurePause  = 30 * time.Second // of queries after a failure
	minRetryDelay = time.Minute      // of Run after a failure
	maxRetryDelay = 10 * time.Minute
	gatherDelay   = 100 * time.Millisecond // for collecting changes
)

// Options sets the catalog to search and the service. OnFailure receives the error of
// each failed request; it may be nil.
type Options struct {
	URL, Model, Token string // of the API; no URL disables it
	Registry          *registry.Registry
	Index             *search.Index
	OnFailure         func(error)
}

// Searcher searches by words and, for tools, by vector similarity.
type Searcher struct {
	o           Options
	client      *client // nil without a URL
	vectors     atomic.Pointer[vectors]
	pausedUntil atomic.Int64 // in Unix nanoseconds
}

type vectors struct {
	byEntry map[*registry.Entry][]float32
	byText  map[[sha256.Size]byte][]float32
	length  int // elements per vector; 0 without vectors
}

// New returns a Searcher.
func New(o Options) *Searcher {
	s := &Searcher{o: o}
	if o.URL != "" {
		s.client = newClient(o.URL, o.Model, o.Token)
	}
	s.vectors.Store(&vectors{})
	return s
}

// Run keeps the vectors of the catalog's tools up to date until ctx is done.
func (s *Searcher) Run(ctx context.Context) {
	if s.client == nil {
		return
	}
	wait := minRetryDelay
	changes := s.o.Registry.Watch(ctx, registry.Tools)
	for {
		err := s.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		var again <-chan time.Time
		if err != nil {
			s.handleFailure(err)
			again, wait = time.After(wait), min(2*wait, maxRetryDelay)
			select { // even if the catalog changes
			case <-again:
			case <-ctx.Done():
				return
			}
			continue
		}
		wait = minRetryDelay
		if _, more := <-changes; !more {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(gatherDelay):
		}
	}
}

func (s *Searcher) handleFailure(err error) {
	if s.o.OnFailure != nil {
		s.o.OnFailure(err)
	}
}

// follow requests missing vectors. It keeps those received before an error.
func (s *Searcher) follow(ctx context.Context) error {
	old := s.vectors.Load()
	next := &vectors{byEntry: make(map[*registry.Entry][]float32), byText: make(map[[sha256.Size]byte][]float32)}
	var (
		texts  []string
		asking = make(map[[sha256.Size]byte][]*registry.Entry)
		keys   [][sha256.Size]byte
	)
	for _, e := range selectTools(s.o.Registry.Load()) {
		text := toolText(e)
		key := sha256.Sum256([]byte(text))
		if v := old.byText[key]; v != nil {
			next.byText[key], next.byEntry[e] = v, v
			next.length = len(v)
			continue
		}
		if asking[key] == nil {
			texts, keys = append(texts, text), append(keys, key)
		}
		asking[key] = append(asking[key], e)
	}
	defer s.vectors.Store(next)
	for from := 0; from < len(texts); from += batch {
		to := min(from+batch, len(texts))
		found, err := s.ask(ctx, batchTime, texts[from:to])
		if err != nil {
			return err
		}
		for i, v := range found {
			if 4*len(v)*(len(next.byText)+1) > maxBytes {
				return nil
			}
			next.byText[keys[from+i]] = v
			next.length = len(v)
			for _, e := range asking[keys[from+i]] {
				next.byEntry[e] = v
			}
		}
	}
	return nil
}

// selectTools returns at most maxTools tools for vectors. It takes one tool of each
// server in turn, so that a server with many tools cannot displace others.
func selectTools(now *registry.Snapshot) []*registry.Entry {
	var names []string
	of := make(map[string][]*registry.Entry)
	total := 0
	for e := range now.All(registry.Tool) {
		if e.Server == registry.Local {
			continue
		}
		if of[e.Server] == nil {
			names = append(names, e.Server)
		}
		of[e.Server] = append(of[e.Server], e)
		total++
	}
	tools := make([]*registry.Entry, 0, min(total, maxTools))
	for turn := 0; len(tools) < cap(tools); turn++ {
		for _, name := range names {
			if turn < len(of[name]) && len(tools) < cap(tools) {
				tools = append(tools, of[name][turn])
			}
		}
	}
	return tools
}

func (s *Searcher) ask(ctx context.Context, most time.Duration, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return s.client.requestVectors(ctx, texts)
}

func toolText(e *registry.Entry) string {
	text := e.Server + " " + e.ClientName()
	for _, more := range []string{e.Title, e.Description} {
		if more != "" && more != e.ClientName() {
			text += ": " + more
		}
	}
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// Limits of tools found by words, and by vectors alone.
const (
	maxWordHits    = 1000
	maxMeaningHits = 100
)

const meaningShare = 0.5

// Search is [search.Index.Search]. The score of a tool with vectors has two halves: words
// and vectors, each relative to the best hit. PoorMatch is then never set.
func (s *Searcher) Search(ctx context.Context, q search.Query) (search.Result, error) {
	query := s.vectorOf(ctx, q)
	if query == nil {
		return s.o.Index.Search(ctx, q)
	}
	all := q
	all.Offset, all.Limit = 0, maxWordHits
	words, err := s.o.Index.Search(ctx, all)
	if err != nil {
		return words, err
	}
	near := s.nearestTools(query, q)
	if len(near) == 0 {
		return s.o.Index.Search(ctx, q)
	}
	return blend(words.Hits, near, q), nil
}

// vectorOf returns the vector of a query, or nil if the query is not for tools or has
// none.
func (s *Searcher) vectorOf(ctx context.Context, q search.Query) []float32 {
	if s.client == nil || strings.TrimSpace(q.Text) == "" || q.MIME != "" || !slices.Equal(q.Kinds, []registry.Kind{registry.Tool}) {
		return nil
	}
	if len(s.vectors.Load().byEntry) == 0 || time.Now().UnixNano() < s.pausedUntil.Load() {
		return nil
	}
	found, err := s.ask(ctx, queryTime, []string{strings.ToValidUTF8(q.Text[:min(len(q.Text), search.MaxText)], "")})
	if length := s.vectors.Load().length; err == nil && len(found[0]) != length {
		err = fmt.Errorf("the query's vector has %d elements, the tools' vectors have %d", len(found[0]), length)
	}
	if err != nil {
		if ctx.Err() == nil { // otherwise the caller cancelled
			s.pausedUntil.Store(time.Now().Add(failurePause).UnixNano())
			s.handleFailure(err)
		}
		return nil
	}
	return found[0]
}

// nearestTools returns the tools with vectors that the query includes, nearest first.
// Scores range from 0 for the average distance to 1 for the nearest.
func (s *Searcher) nearestTools(query []float32, q search.Query) []search.Hit {
	known, now := s.vectors.Load().byEntry, s.o.Registry.Load()
	var hits []search.Hit
	sum := 0.0
	for e := range now.All(registry.Tool) {
		v := known[e]
		if len(v) != len(query) || q.Server != "" && q.Server != e.Server ||
			q.View != nil && q.View.Visibility() != nil && !q.View.IsVisible(e.Server, e.Kind, e.Name) {
			continue
		}
		cosine := float32(0)
		if q.View != nil {
			e = cmp.Or(q.View.ShownEntry(e), e) // as hits of the view
		}
		for i := range v {
			cosine += v[i] * query[i]
		}
		hits = append(hits, search.Hit{Entry: e, Score: float64(cosine)})
		sum += float64(cosine)
	}
	slices.SortStableFunc(hits, byScore)
	if len(hits) == 0 {
		return nil
	}
	usual, best := sum/float64(len(hits)), hits[0].Score
	for i := range hits {
		if best > usual {
			hits[i].Score = max(0, (hits[i].Score-usual)/(best-usual))
		} else {
			hits[i].Score = 0
		}
	}
	return hits
}

func byScore(a, b search.Hit) int {
	switch {
	case a.Score > b.Score:
		return -1
	case a.Score < b.Score:
		return 1
	}
	return strings.Compare(a.Entry.Listed, b.Entry.Listed)
}

func blend(words, near []search.Hit, q search.Query) (found search.Result) {
	scores := make(map[*registry.Entry]float64, len(words)+maxMeaningHits)
	for _, h := range words {
		scores[h.Entry] = (1 - meaningShare) * h.Score / words[0].Score
	}
	for i, h := range near {
		if _, both := scores[h.Entry]; both || i < maxMeaningHits && h.Score > 0 {
			scores[h.Entry] += meaningShare * h.Score
		}
	}
	all := make([]search.Hit, 0, len(scores))
	for e, score := range scores {
		all = append(all, search.Hit{Entry: e, Score: score})
	}
	slices.SortFunc(all, byScore)
	found.Total = len(all)
	limit := q.Limit
	if limit <= 0 {
		limit = search.DefaultLimit
	}
	from := min(max(0, q.Offset), len(all))
	found.Hits = all[from:min(from+limit, len(all))]
	return found
}
