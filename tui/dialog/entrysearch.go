package dialog

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sahilm/fuzzy"

	"goblin/registry"
	"goblin/registry/query"
)

// EntrySearch finds entries of one state of the catalog by name.
type EntrySearch struct {
	rows  [registry.Kinds][]*registry.Entry
	index [registry.Kinds]*query.Index
}

// MaxFoundEntries is the limit of found entries per kind.
const MaxFoundEntries = 50

// NewEntrySearch indexes names only; the panes' own indexes also contain descriptions.
func NewEntrySearch(s *registry.Snapshot) *EntrySearch {
	p := &EntrySearch{}
	for k := range registry.Kind(registry.Kinds) {
		rows := slices.AppendSeq(make([]*registry.Entry, 0, s.Count(k)), s.All(k))
		p.rows[k] = rows
		p.index[k] = query.NewIndex(len(rows), func(i int) string { return rows[i].Listed + "\x00" + rows[i].Label })
	}
	return p
}

// Search returns the best matches of a text, or nil if ctx ended.
func (p *EntrySearch) Search(ctx context.Context, text string, now time.Time) []*registry.Entry {
	var words []string
	for w := range strings.FieldsSeq(text) {
		words = append(words, `~"`+strings.ReplaceAll(w, `"`, `""`)+`"`)
	}
	q := query.Parse(strings.Join(words, " "), nil)
	var found []*registry.Entry
	for k := range p.index {
		rows, err := q.Match(ctx, p.index[k], now)
		if err != nil {
			return nil
		}
		for _, i := range rows[:min(len(rows), MaxFoundEntries)] {
			found = append(found, p.rows[k][i])
		}
	}
	low := strings.ToLower(strings.Join(strings.Fields(text), ""))
	score := make(map[*registry.Entry]int, len(found))
	for _, m := range fuzzy.FindFromNoSort(low, entries(found)) {
		score[found[m.Index]] = m.Score
	}
	slices.SortStableFunc(found, func(x, y *registry.Entry) int { return cmp.Compare(score[y], score[x]) })
	return found
}

type entries []*registry.Entry

func (l entries) String(i int) string { return strings.ToLower(l[i].Listed) }
func (l entries) Len() int            { return len(l) }
