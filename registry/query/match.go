package query

import (
	"context"
	"slices"
	"strings"
	"time"
)

const (
	contextInterval  = 4096 // rows between checks of the context
	maxCachedResults = 1024 // values cached per field and search
)

// Match returns the matching rows, never nil. Parts of a text are separated by NUL, the
// most important first. Rows are ordered by the part that contains their words, then by
// number. In a ranked query, the best match comes first, then by number. The error is
// ctx's, which is checked every 4096 rows.
func (q *Query) Match(ctx context.Context, ix *Index, now time.Time) ([]int32, error) {
	n := ix.Len()
	m := newMatcher(q, ix, now)
	ranked := q.IsRanked()
	found := make([]int32, 0, n)
	var far, parts []uint8
	for from := 0; from < n; from += contextInterval {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := from; i < min(from+contextInterval, n); i++ {
			row := int32(i)
			spread, ok := m.row(row)
			if !ok {
				continue
			}
			found = append(found, row)
			if !ranked && len(q.words) > 0 {
				if parts == nil {
					parts = make([]uint8, 0, n)
				}
				parts = append(parts, m.part(row))
			}
			if ranked {
				if far == nil {
					far = make([]uint8, 0, n)
				}
				far = append(far, uint8(min(spread, 255)))
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(parts, func(part uint8) bool { return part > 0 }) {
		found = bySpread(found, parts)
	}
	if len(found) < cap(found)/2 {
		found = slices.Clone(found) // results live long
	}
	if ranked {
		return q.rank(ctx, ix, found, far)
	}
	return found, nil
}

// Matches reports whether row 0 of the fields matches, with this text. It is for streams
// of rows, which have no index.
func (q *Query) Matches(text string, now time.Time) bool {
	m := newMatcher(q, NewIndex(1, func(int) string { return text }), now)
	_, ok := m.row(0)
	return ok
}

// ExcludingTerm returns the term, as typed, that matches no row at all, to explain an
// empty result. It returns "" if every term alone matches rows, or if ctx ended. Several
// values of one field are one term.
func (q *Query) ExcludingTerm(ctx context.Context, ix *Index, now time.Time) string {
	if ix.Len() == 0 {
		return ""
	}
	var alone []Query
	var sources []string
	for i := range q.conds {
		alone, sources = append(alone, Query{conds: q.conds[i : i+1]}), append(sources, q.conds[i].source)
	}
	for i := range q.words {
		alone, sources = append(alone, Query{words: q.words[i : i+1]}), append(sources, q.words[i].source)
	}
	for i := range q.fuzzies {
		alone, sources = append(alone, Query{fuzzies: q.fuzzies[i : i+1]}), append(sources, q.fuzzies[i].source)
	}
	for i := range alone {
		fits, err := newMatcher(&alone[i], ix, now).any(ctx)
		if err != nil {
			return ""
		}
		if !fits {
			return sources[i]
		}
	}
	return ""
}

type matcher struct {
	q            *Query
	ix           *Index
	now          time.Time
	requiredMask uint64 // letters required in every match
	caches       []cachedTest
	bounds       [][]bound // of the spans of each condition
}

// Fields have few different values, mostly in runs.
type cachedTest struct {
	last     string
	lastFits bool
	results  map[string]bool
}

func newMatcher(q *Query, ix *Index, now time.Time) *matcher {
	m := &matcher{q: q, ix: ix, now: now, caches: make([]cachedTest, len(q.conds))}
	for i := range q.words {
		if !q.words[i].not {
			m.requiredMask |= q.words[i].mask
		}
	}
	for i := range q.fuzzies {
		if !q.fuzzies[i].not {
			m.requiredMask |= q.fuzzies[i].mask
		}
	}
	for i := range q.conds {
		c := &q.conds[i]
		if c.texts != nil && c.field.Kind == Text && !c.field.Costly {
			m.caches[i] = cachedTest{lastFits: c.fits(""), results: make(map[string]bool)}
		}
		if c.spans != nil && m.bounds == nil {
			m.bounds = make([][]bound, len(q.conds))
		}
		for j := range c.spans {
			m.bounds[i] = append(m.bounds[i], c.spans[j].at(now))
		}
	}
	return m
}

func (m *matcher) any(ctx context.Context) (bool, error) {
	for row := range m.ix.Len() {
		if row%contextInterval == 0 {
			if err := ctx.Err(); err != nil {
				return false, err
			}
		}
		if _, ok := m.row(int32(row)); ok {
			return true, nil
		}
	}
	return false, ctx.Err()
}

// row reports whether a row matches, and the number of characters between those of the
// ~words.
func (m *matcher) row(row int32) (spread int, ok bool) {
	mask := m.ix.masks[row]
	if mask&m.requiredMask != m.requiredMask {
		return 0, false
	}
	for i := range m.q.words {
		w := &m.q.words[i]
		has := mask&w.mask == w.mask && (w.byMask || m.contains(row, w))
		if has == w.not {
			return 0, false
		}
	}
	for i := range m.q.conds {
		if m.fits(row, i) == m.q.conds[i].not {
			return 0, false
		}
	}
	for i := range m.q.fuzzies {
		f := &m.q.fuzzies[i]
		far, has := 0, mask&f.mask == f.mask
		if has {
			far, has = f.in(m.ix.folded(row))
		}
		if has == f.not {
			return 0, false
		}
		spread += far
	}
	return spread, true
}

// part returns the last part of the text needed to find all words.
func (m *matcher) part(row int32) (last uint8) {
	low := m.ix.folded(row)
	if strings.IndexByte(low, 0) < 0 {
		return 0
	}
	for i := range m.q.words {
		w := &m.q.words[i]
		if w.not {
			continue
		}
		text, word := low, w.low
		if w.exact {
			text, word = m.ix.original(row), w.text
		}
		if at := strings.Index(text, word); at > 0 {
			last = max(last, uint8(min(strings.Count(text[:at], "\x00"), 255)))
		}
	}
	return last
}

func (m *matcher) contains(row int32, w *word) bool {
	if w.exact {
		return strings.Contains(m.ix.original(row), w.text)
	}
	return strings.Contains(m.ix.folded(row), w.low)
}

func (m *matcher) fits(row int32, i int) bool {
	c, v := &m.q.conds[i], &m.caches[i]
	switch {
	case c.spans != nil:
		at := c.field.Time(int(row))
		return slices.ContainsFunc(m.bounds[i], func(b bound) bool { return b.contains(at) })
	case c.texts == nil:
		for _, fit := range c.tests {
			if fit(int(row), m.now) {
				return true
			}
		}
		return false
	case c.field.Kind == Texts:
		values := c.field.Texts(int(row), c.path)
		return slices.ContainsFunc(values, c.fits) || len(values) == 0 && c.fits("")
	}
	value := c.field.Text(int(row))
	if v.results == nil {
		return c.fits(value)
	}
	if value == v.last {
		return v.lastFits
	}
	fits, known := v.results[value]
	if !known {
		fits = c.fits(value)
		if len(v.results) < maxCachedResults {
			v.results[value] = fits
		}
	}
	v.last, v.lastFits = value, fits
	return fits
}

func (c *cond) fits(value string) bool {
	low, _ := fold(value)
	for i := range c.texts {
		if c.texts[i].fits(low) {
			return true
		}
	}
	return false
}

// in reports whether a part of a folded text contains the characters in order. It returns
// the number of characters between them. A match across parts would not be visible.
func (f *fuzzyWord) in(low string) (spread int, ok bool) {
	for part := range strings.SplitSeq(low, "\x00") {
		if far, has := f.within(part); has && (!ok || far < spread) {
			spread, ok = far, true
		}
	}
	return spread, ok
}

func (f *fuzzyWord) within(low string) (spread int, ok bool) {
	end := 0
	for _, r := range f.runes {
		i := indexRune(low[end:], r)
		if i < 0 {
			return 0, false
		}
		end += i + len(r)
	}
	if strings.Contains(low, f.low) {
		return 0, true
	}
	// The first characters may be much nearer.
	start := end
	for i := len(f.runes) - 1; i >= 0; i-- {
		start = strings.LastIndex(low[:start], f.runes[i])
	}
	return end - start - len(f.low), true
}

func indexRune(s, r string) int {
	if len(r) == 1 {
		return strings.IndexByte(s, r[0])
	}
	return strings.Index(s, r)
}
