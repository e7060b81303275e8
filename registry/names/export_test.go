package names

import "math"

// Parse reads s, a flat spelling. It returns in how many ways the template
// can have given it, where 2 means several, and for 1 the expansion.
func (f *FlatTemplate) Parse(s string) (uri string, ways int) {
	budget := MatchBudget(math.MaxInt)
	return f.parse(s, &budget)
}

// Match reports whether uri is an expansion of the template. Variables of
// simple and reserved expressions ({v}, {+v}) must not be empty; those of the
// other operators may be undefined.
func (t *Template) Match(uri string) bool {
	budget := MatchBudget(math.MaxInt)
	return t.match(uri, &budget)
}
