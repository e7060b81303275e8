package cli

import (
	"slices"
	"strings"

	"goblin/registry/suggest"
)

// nearest returns at most three names similar to a wrong one.
func nearest(wrong string, names []string) []string {
	type scored struct {
		name  string
		score float64
	}
	grams := newBigrams(foldName(wrong))
	var best []scored
	for _, name := range names {
		score := grams.likeness(foldName(name))
		if score < 0.5 {
			continue
		}
		i, _ := slices.BinarySearchFunc(best, score, func(s scored, score float64) int {
			if s.score >= score {
				return -1
			}
			return 1
		})
		if i < 3 {
			best = slices.Insert(best, i, scored{name, score})
			best = best[:min(len(best), 3)]
		}
	}
	if len(best) == 0 { // in short words a typing error changes most pairs
		f := suggest.New(foldName(wrong))
		for _, name := range names {
			f.Add(name, foldName(name))
		}
		return f.Best()
	}
	out := make([]string, 0, len(best))
	for _, b := range best {
		if b.score >= 0.75*best[0].score { // all further ones are worse
			out = append(out, b.name)
		}
	}
	return out
}

// NearestSpelling is like nearest. Without a result it compares others, which has another
// spelling of each name at the same index.
func NearestSpelling(wrong string, names, others []string) []string {
	near := nearest(wrong, names)
	if len(near) > 0 {
		return near
	}
	for _, one := range nearest(wrong, others) {
		for i := range others {
			if others[i] == one && len(near) < 3 {
				near = append(near, names[i])
			}
		}
	}
	return near
}

func foldName(name string) string {
	return strings.TrimPrefix(strings.ToLower(name), "mcp://")
}

type bigramCounts struct {
	count [1 << 16]int16
	total int
}

func newBigrams(s string) *bigramCounts {
	g := new(bigramCounts)
	eachBigram(s, func(pair uint16) { g.count[pair]++; g.total++ })
	return g
}

// eachBigram calls do for each pair in s, including one for its start.
func eachBigram(s string, do func(pair uint16)) {
	before := byte('^')
	for i := range min(len(s), 1<<11) {
		do(uint16(before)<<8 | uint16(s[i]))
		before = s[i]
	}
}

// likeness returns the Dice coefficient of both texts' pairs: 1 for equal texts, 0
// without common pairs.
func (g *bigramCounts) likeness(name string) float64 {
	shared, total := 0, g.total
	eachBigram(name, func(pair uint16) {
		total++
		if g.count[pair] > 0 {
			shared++
		}
		g.count[pair]--
	})
	eachBigram(name, func(pair uint16) { g.count[pair]++ })
	if total == 0 {
		return 0
	}
	return 2 * float64(shared) / float64(total)
}

// Suggest returns "; did you mean …?" if a name is similar, otherwise a list of up to 8
// names. It returns none if names is empty.
func Suggest(wrong string, names []string, none string) string {
	near := nearest(wrong, names)
	switch {
	case len(near) > 0:
		return "; did you mean " + QuoteNames(near, " or ") + "?"
	case len(names) > 0 && len(names) <= 8:
		return "; known: " + strings.Join(names, ", ")
	case len(names) == 0:
		return none
	}
	return ""
}

// QuoteNames quotes and joins names.
func QuoteNames(names []string, sep string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = `"` + n + `"`
	}
	return strings.Join(out, sep)
}
