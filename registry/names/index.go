package names

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// TemplateIndex finds the templates of a list that match a URI. It tries only those whose
// literal prefix fits.
type TemplateIndex struct {
	templates []*Template
	prefixes  prefixes
}

// NewTemplateIndex returns the index of a list. It keeps the slice.
func NewTemplateIndex(list []*Template) *TemplateIndex {
	x := &TemplateIndex{templates: list}
	x.prefixes = newPrefixes(len(list), func(i int) string { return list[i].Prefix() })
	for _, g := range x.prefixes.groups {
		slices.SortFunc(g.members, func(a, b int32) int {
			return cmp.Or(cmp.Compare(list[b].literals, list[a].literals), cmp.Compare(a, b))
		})
	}
	return x
}

// Match returns the index of the most specific template for uri: the one with the most
// literal bytes, then with the longest literal prefix, then the first. It returns -1 if
// there is none or the budget is spent.
func (x *TemplateIndex) Match(uri string, budget *MatchBudget) int {
	if len(uri) > MaxURI {
		return -1
	}
	best := -1
	for g := x.prefixes.longest(uri, budget); g >= 0; g = x.prefixes.groups[g].parent {
		for _, i := range x.prefixes.groups[g].members {
			t := x.templates[i]
			if best >= 0 && t.literals <= x.templates[best].literals {
				break
			}
			if t.match(uri, budget) {
				best = int(i)
				break
			}
			if budget.IsSpent() {
				return -1
			}
		}
	}
	return best
}

// FlatTemplateIndex is a [TemplateIndex] for flat ids.
type FlatTemplateIndex struct {
	flats    []*FlatTemplate // nil for templates without a flat form
	prefixes prefixes
}

// NewFlatTemplateIndex returns the index of a list's flat forms.
func NewFlatTemplateIndex(list []*Template, flatten func(string) string) *FlatTemplateIndex {
	x := &FlatTemplateIndex{flats: make([]*FlatTemplate, len(list))}
	var with []int32
	for i, t := range list {
		if f, ok := t.Flatten(flatten); ok {
			x.flats[i] = f
			with = append(with, int32(i))
		}
	}
	x.prefixes = newPrefixes(len(with), func(i int) string { return x.flats[with[i]].Prefix() })
	for _, g := range x.prefixes.groups {
		for j, m := range g.members {
			g.members[j] = with[m]
		}
	}
	return x
}

// Parse calls yield for every template that can have the flat id s. It passes the index
// in the list, the number of ways (2 for several) and, for one way, the expansion. It
// stops when yield returns false or the budget is spent.
func (x *FlatTemplateIndex) Parse(s string, budget *MatchBudget, yield func(i, ways int, uri string) bool) {
	if len(s) > MaxURI {
		return
	}
	for g := x.prefixes.longest(s, budget); g >= 0; g = x.prefixes.groups[g].parent {
		for _, i := range x.prefixes.groups[g].members {
			if uri, ways := x.flats[i].parse(s, budget); budget.IsSpent() || ways > 0 && !yield(int(i), ways, uri) {
				return
			}
		}
	}
}

type prefixes struct {
	groups []group // sorted by prefix
}

type group struct {
	prefix  string
	parent  int // group with the longest proper prefix of prefix, or -1
	members []int32
}

func newPrefixes(n int, of func(int) string) prefixes {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return strings.Compare(of(int(a)), of(int(b))) })
	var x prefixes
	for _, i := range order {
		p := of(int(i))
		last := len(x.groups) - 1
		if last < 0 || x.groups[last].prefix != p {
			parent := last
			for parent >= 0 && !strings.HasPrefix(p, x.groups[parent].prefix) {
				parent = x.groups[parent].parent
			}
			x.groups = append(x.groups, group{prefix: p, parent: parent})
			last++
		}
		x.groups[last].members = append(x.groups[last].members, i)
	}
	return x
}

// longest returns the group with the longest prefix of s; its parents have the shorter
// ones. It returns -1 if there is none or the budget is spent.
func (x *prefixes) longest(s string, budget *MatchBudget) int {
	g := sort.Search(len(x.groups), func(i int) bool { return x.groups[i].prefix > s }) - 1
	for g >= 0 && !strings.HasPrefix(s, x.groups[g].prefix) {
		if !budget.spend(compareCost(x.groups[g].prefix)) {
			return -1
		}
		g = x.groups[g].parent
	}
	return g
}
