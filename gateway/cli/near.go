package cli

import (
	"slices"
	"strings"

	"goblin/registry/suggest"
)

// Nearest are the names most like a wrong one, at most three.
func Nearest(wrong string, names []string) []string {
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
	if len(best) == 0 { // short words have few pairs, and a slip changes most of them
		f := suggest.New(foldName(wrong))
		for _, name := range names {
			f.Add(name, foldName(name))
		}
		return f.Best()
	}
	out := make([]string, 0, len(best))
	for _, b := range best {
		if b.score >= 0.75*best[0].score { // the rest was not meant
			out = append(out, b.name)
		}
	}
	return out
}

// NearestSpelling are the names most like a wrong one; where none is, those that have another
// spelling like it, at the same place in others.
func NearestSpelling(wrong string, names, others []string) []string {
	near := Nearest(wrong, names)
	if len(near) > 0 {
		return near
	}
	for _, one := range Nearest(wrong, others) {
		for i := range others {
			if others[i] == one && len(near) < 3 {
				near = append(near, names[i])
			}
		}
	}
	return near
}

// foldName reduces a name to the characters that tell names apart.
func foldName(name string) string {
	return strings.TrimPrefix(strings.ToLower(name), "mcp://")
}

// bigramCounts counts the pairs of neighbours in a text, by their two bytes.
type bigramCounts struct {
	count [1 << 16]int16
	total int
}

func newBigrams(s string) *bigramCounts {
	g := new(bigramCounts)
	eachBigram(s, func(pair uint16) { g.count[pair]++; g.total++ })
	return g
}

// eachBigram gives the pairs of s, of which the first begins before it.
func eachBigram(s string, do func(pair uint16)) {
	before := byte('^')
	for i := range min(len(s), 1<<11) {
		do(uint16(before)<<8 | uint16(s[i]))
		before = s[i]
	}
}

// likeness is the Dice coefficient of the pairs of both texts: 1 for equal
// ones, 0 for texts that share nothing.
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

// Suggest is "; did you mean …?" if something is near, else the names if they
// are few, else none.
func Suggest(wrong string, names []string, none string) string {
	near := Nearest(wrong, names)
	switch {
	case len(near) > 0:
		return "; did you mean " + QuoteNames(near, " or ") + "?"
	case len(names) > 0 && len(names) <= 8:
		return "; there are " + QuoteNames(names, ", ")
	case len(names) == 0:
		return none
	}
	return ""
}

// QuoteNames puts names in quotes.
func QuoteNames(names []string, sep string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = `"` + n + `"`
	}
	return strings.Join(out, sep)
}
