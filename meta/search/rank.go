package search

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	"goblin/registry"
)

// Weights of hits other than the typed word.
const (
	pairShare    = 0.5  // two consecutive words
	prefixShare  = 0.7  // a longer word, times the typed part of it
	meaningShare = 0.75 // a synonym
)

// coverage is the part of a score that depends on the share of the query's words in an
// entry.
const coverage = 0.5

// typoShare is the weight of words by number of edits.
var typoShare = [...]float32{1: 0.6, 2: 0.4}

// poorMatchShare is the minimum score of a good best hit. It is a share of the score of
// an entry with all words of the query in its name. README.md explains the choice.
const poorMatchShare = 0.17

// Search answers a query. It sees every change published before the call, and may read
// changes first. It returns [registry.ErrBadMIME], or an error if ctx is done.
func (x *Index) Search(ctx context.Context, q Query) (found Result, err error) {
	fits, err := registry.MIMEFilter(q.MIME)
	if err != nil {
		return found, err
	}
	fits = q.restrictToView(fits)
	s, err := x.current(ctx)
	if err != nil {
		return found, err
	}
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Offset = max(0, q.Offset)
	words := parse(q.Text)
	if len(words) == 0 {
		found.Hits, found.Total = s.list(q, fits)
		return found, nil
	}
	r := ranking{words: words, maxCompared: x.maxCompared}
	for _, src := range s.sources {
		if !q.covers(src.part.Kind()) || !q.includesList(src.part, words) {
			continue
		}
		if src, err = x.viewSource(ctx, q.View, src); err != nil {
			return found, err
		}
		r.docs += src.part.Len()
		if src.segment != nil {
			r.lists = append(r.lists, src)
		}
	}
	if err := r.plan(ctx); err != nil {
		return found, err
	}
	found = r.best(q, fits)
	if q.View != nil {
		for i := range found.Hits { // the view may rename it
			found.Hits[i].Entry = cmp.Or(q.View.ShownEntry(found.Hits[i].Entry), found.Hits[i].Entry)
		}
	}
	return found, nil
}

func (q *Query) restrictToView(fits func(*registry.Entry) bool) func(*registry.Entry) bool {
	if q.View == nil || q.View.Visibility() == nil {
		return fits
	}
	return func(e *registry.Entry) bool {
		return q.View.IsVisible(e.Server, e.Kind, e.Name) && (fits == nil || fits(e))
	}
}

// includesList includes Goblin's own tools only on request, because clients list them
// already.
func (q *Query) includesList(p registry.Part, words []queryWord) bool {
	if q.Server != "" {
		return q.Server == p.Server()
	}
	return p.Server() != registry.Local || p.Kind() != registry.Tool ||
		slices.ContainsFunc(words, func(w queryWord) bool { return w.text == registry.Local })
}

func (q *Query) covers(k registry.Kind) bool {
	return len(q.Kinds) == 0 || slices.Contains(q.Kinds, k)
}

func (s *state) list(q Query, fits func(*registry.Entry) bool) (hits []Hit, total int) {
	seen := s.snapshot
	if q.View != nil && q.View.Visibility() != nil {
		seen = q.View
	}
	for k := range registry.Kind(registry.Kinds) {
		if !q.covers(k) {
			continue
		}
		entries := seen.All(k)
		if q.Server != "" {
			entries = seen.Server(q.Server, k)
		}
		for e := range entries {
			if fits != nil && !fits(e) {
				continue
			}
			if total >= q.Offset && len(hits) < q.Limit {
				hits = append(hits, Hit{Entry: e})
			}
			total++
		}
	}
	return hits, total
}

type ranking struct {
	words       []queryWord
	lists       []*source
	docs        int
	posted      int
	maxCompared int
	terms       []plannedTerm
	single      int // words that are not pairs
	// maximum score, of an entry with all words
	ideal float32
}

type plannedTerm struct {
	list, word int32
	term       int32
	weight     float32
	single     bool // for a word that is not a pair
}

func (r *ranking) plan(ctx context.Context) error {
	var unknown []int32
	for i := range r.words {
		if err := ctx.Err(); err != nil {
			return err
		}
		from := len(r.terms)
		if !r.word(int32(i)) {
			unknown = append(unknown, int32(i))
			continue
		}
		if !r.words[i].pair {
			r.single++
			r.ideal += r.maxRarity(r.terms[from:])
		}
	}
	for _, i := range unknown {
		if err := ctx.Err(); err != nil {
			return err
		}
		from := len(r.terms)
		r.correct(i, r.maxCompared/len(unknown))
		r.single++
		r.ideal += r.maxRarity(r.terms[from:])
	}
	r.byList()
	return nil
}

// maxRarity returns an upper limit for the rarity of a word's terms. An unknown word
// counts like the rarest.
func (r *ranking) maxRarity(terms []plannedTerm) (worth float32) {
	for i := range terms {
		worth = max(worth, terms[i].weight)
	}
	if len(terms) == 0 {
		return r.rarity(1)
	}
	return worth
}

// byList sorts the terms by list and keeps their order by word.
func (r *ranking) byList() {
	at := make([]int, len(r.lists)+1)
	for i := range r.terms {
		at[r.terms[i].list+1]++
	}
	for i := range r.lists {
		at[i+1] += at[i]
	}
	sorted := make([]plannedTerm, len(r.terms))
	for _, t := range r.terms {
		sorted[at[t.list]] = t
		at[t.list]++
	}
	r.terms = sorted
}

// word plans a word, its synonyms and longer words. It reports false for a word without
// any, which may be misspelled.
func (r *ranking) word(n int32) bool {
	w := &r.words[n]
	found := r.exact(n, w.stem, w.share)
	if w.exact {
		return true
	}
	for _, other := range meanings()[w.stem] {
		r.exact(n, other, w.share*meaningShare)
	}
	return r.prefix(n, w, found) || found > 0 || isKnown(w.stem)
}

// rarity is the inverse document frequency.
func (r *ranking) rarity(docs int) float32 {
	n, d := float64(r.docs), float64(min(docs, r.docs))
	return float32(math.Log(1 + (n-d+0.5)/(d+0.5)))
}

func (r *ranking) exact(word int32, term string, share float32) (docs int) {
	from := len(r.terms)
	hash := hashOf(term)
	for i := range r.lists {
		if t, ok := r.lists[i].find(term, hash); ok {
			docs += r.lists[i].count(t)
			r.terms = append(r.terms, plannedTerm{int32(i), word, int32(t), share, !r.words[word].pair})
		}
	}
	r.value(from, docs)
	return docs
}

func (r *ranking) value(from, docs int) {
	rarity := r.rarity(docs)
	for i := range r.terms[from:] {
		r.terms[from+i].weight *= rarity
	}
}

// prefix plans longer words that begin as typed, and reports whether there are any.
func (r *ranking) prefix(word int32, w *queryWord, exact int) bool {
	if len(w.text) < 3 && int(word) != len(r.words)-1 {
		return false
	}
	from, docs := len(r.terms), exact
	filtered, hash := len(w.text) >= beginning, uint64(0)
	if filtered {
		hash = hashOfBeginning(w.text)
	}
	for i := range r.lists {
		l := r.lists[i]
		if filtered && !l.filter.mayContain(hash) {
			continue
		}
		for t := l.from(w.text); t < len(l.termEnd) && r.posted < maxPosted; t++ {
			term := l.term(t)
			if !strings.HasPrefix(term, w.text) {
				break
			}
			if term == w.stem {
				continue
			}
			n := l.count(t)
			r.posted += n
			docs += n
			share := prefixShare * float32(len(w.text)) / float32(len(term))
			r.terms = append(r.terms, plannedTerm{int32(i), word, int32(t), w.share * share, true})
		}
	}
	r.value(from, docs)
	return len(r.terms) > from
}

// correct plans the likely corrections of a word and their synonyms. It compares at most
// room terms.
func (r *ranking) correct(n int32, room int) {
	w := &r.words[n]
	words, edits := r.corrections(w, room)
	for _, stem := range words {
		share := w.share * typoShare[edits]
		r.exact(n, stem, share)
		for _, other := range meanings()[stem] {
			r.exact(n, other, share*meaningShare)
		}
	}
}

// scoreTable holds the scores of one list's documents. It is zero while not in use.
type scoreTable struct {
	total, word []float32
	matched     []uint8
	found       []int32 // documents with a total
	touched     []int32 // documents with the current word
}

var pool = sync.Pool{New: func() any { return new(scoreTable) }}

func (r *ranking) best(q Query, fits func(*registry.Entry) bool) (answer Result) {
	s := pool.Get().(*scoreTable)
	defer pool.Put(s)
	top := topHits{most: q.Offset + q.Limit, lists: r.lists}
	if top.most < 0 { // overflow
		top.most = math.MaxInt
	}
	var firsts []hit // best of each list
	for at := 0; at < len(r.terms); {
		n := r.terms[at].list
		end := at
		for end < len(r.terms) && r.terms[end].list == n {
			end++
		}
		l := r.lists[n]
		s.read(l, r.terms[at:end])
		at = end
		first := hit{list: n}
		for _, doc := range s.inOrder(l.docs) {
			share := float32(s.matched[doc]) / float32(r.single)
			score := s.total[doc] * (1 - coverage + coverage*share)
			s.total[doc], s.matched[doc] = 0, 0
			i := l.entry(int(doc))
			if i < 0 || fits != nil && !fits(l.part.At(i)) {
				continue
			}
			answer.Total++
			f := hit{score, n, int32(i)}
			if f.score > first.score {
				first = f
			}
			top.offer(f)
		}
		if first.score > 0 {
			firsts = append(firsts, first)
		}
		s.found = s.found[:0]
	}
	top.drop()
	answer.PoorMatch = len(top.hits) == 0 || top.hits[0].score < poorMatchShare*r.ideal
	r.spread(&top, firsts)
	answer.Hits = top.page(q.Offset)
	return answer
}

// inOrder returns the documents with a total, sorted.
func (s *scoreTable) inOrder(docs int) []int32 {
	if len(s.found) < docs/16 {
		slices.Sort(s.found)
		return s.found
	}
	s.found = s.found[:0]
	for doc, total := range s.total[:docs] {
		if total > 0 {
			s.found = append(s.found, int32(doc))
		}
	}
	return s.found
}

// read adds up the weights of one list's terms by document. For each word, a document's
// best term counts.
func (s *scoreTable) read(l *source, terms []plannedTerm) {
	if len(s.total) < l.docs {
		*s = scoreTable{
			total: make([]float32, l.docs), word: make([]float32, l.docs), matched: make([]uint8, l.docs),
			found: s.found, touched: s.touched,
		}
	}
	for i := range terms {
		t := &terms[i]
		n, list := l.postings(int(t.term))
		doc := 0
		for range n {
			var d uint32
			var weight uint8
			d, weight, list = next(list)
			doc += int(d)
			v := t.weight * float32(weight) / 255
			was := s.word[doc]
			if v <= was {
				continue
			}
			if was == 0 {
				s.touched = append(s.touched, int32(doc))
				if s.total[doc] == 0 {
					s.found = append(s.found, int32(doc))
				}
				if t.single {
					s.matched[doc]++
				}
			}
			s.total[doc] += v - was
			s.word[doc] = v
		}
		if i == len(terms)-1 || terms[i+1].word != t.word {
			for _, doc := range s.touched {
				s.word[doc] = 0
			}
			s.touched = s.touched[:0]
		}
	}
}

type hit struct {
	score       float32
	list, entry int32
}

// topHits collects the best hits and drops others periodically.
type topHits struct {
	lists []*source
	hits  []hit
	most  int // number of best hits to keep
	full  bool
	worst hit // the worst of the best hits; set once full
	last  hit // the last rejected one
}

func (t *topHits) compare(a, b hit) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	if a.list == b.list {
		return cmp.Compare(a.entry, b.entry)
	}
	x, y := t.lists[a.list].part.At(int(a.entry)), t.lists[b.list].part.At(int(b.entry))
	return cmp.Or(strings.Compare(x.Listed, y.Listed), strings.Compare(x.Server, y.Server), cmp.Compare(x.Kind, y.Kind))
}

// offer adds a hit. The hits of a list must come in the order of entries.
func (t *topHits) offer(f hit) {
	switch {
	case !t.full:
	case f.list == t.last.list && f.score <= t.last.score: // after a rejected hit that is not worse
		return
	case t.compare(f, t.worst) >= 0:
		t.last = f
		return
	}
	t.hits = append(t.hits, f)
	if len(t.hits)-t.most >= max(t.most, 64) {
		t.drop()
	}
}

func (t *topHits) drop() {
	slices.SortFunc(t.hits, t.compare)
	if len(t.hits) >= t.most {
		t.hits, t.full, t.worst = t.hits[:t.most], true, t.hits[t.most-1]
	}
}

func (t *topHits) page(offset int) []Hit {
	var hits []Hit
	for _, f := range t.hits[min(offset, len(t.hits)):] {
		hits = append(hits, Hit{t.lists[f.list].part.At(int(f.entry)), float64(f.score)})
	}
	return hits
}
