package names

import "math"

// Parse parses s, a flat spelling. It returns the number of possible expansions, where 2
// means several, and the expansion if there is exactly one.
func (f *FlatTemplate) Parse(s string) (uri string, ways int) {
	budget := MatchBudget(math.MaxInt)
	return f.parse(s, &budget)
}

// Match reports whether uri is an expansion of the template. Variables of simple and
// reserved expressions ({v}, {+v}) must not be empty. Those of the other operators may be
// undefined.
func (t *Template) Match(uri string) bool {
	budget := MatchBudget(math.MaxInt)
	return t.match(uri, &budget)
}
