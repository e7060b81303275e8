package savedcall

import (
	"errors"
	"math"
	"regexp"
	"strings"

	"goblin/registry/definition"
	"goblin/registry/rawjson"
)

const (
	// maxCost limits the comparisons of a path with filters.
	maxCost = 64 << 20
	// maxPattern limits the size of a pattern in a file. A capture may make it longer.
	maxPattern = 10_000
	// maxMatching limits the product of a pattern's size and the length of the texts.
	maxMatching = 2 << 30
	// maxAnswer is the size, in bytes, of answers that have patterns of match and search.
	maxAnswer = 1 << 20
	// maxCompiling limits the same for a path, which compiles its patterns for each value.
	maxCompiling = 4 << 20
)

var (
	errCost    = errors.New("the answer is too large or too deep for this path")
	errPattern = errors.New("the pattern is too complex for this answer")
)

// compilePattern compiles a pattern for a text.
func compilePattern(expr, text string) (*regexp.Regexp, error) {
	if size, err := definition.PatternSize(expr); err != nil {
		return nil, err
	} else if size > maxMatching/max(1, len(text)) || size > maxDocument {
		return nil, errPattern
	}
	return regexp.Compile(expr)
}

// pathCost has the parts of a path that multiply its steps.
type pathCost struct {
	copies   float64 // of a value, as [0,0] selects it twice
	filters  float64 // queries in filters
	roots    float64 // queries that start at the root
	nested   bool    // a filter is inside of a filter
	patterns int     // size of the quoted patterns of match and search
	variable bool    // the answer has patterns of match and search
}

// costOf reads a valid path.
func costOf(path string) pathCost {
	cost := pathCost{copies: 1}
	bare, texts := withoutTexts(path)
	var open []int    // selectors of each bracket; parentheses count as -1
	var filters []int // length of open at each filter
	for i, c := range []byte(bare) {
		last := len(open) - 1
		switch {
		case c == '[':
			open = append(open, 1)
		case c == '(':
			open = append(open, -1)
		case (c == ']' || c == ')') && last >= 0:
			cost.copies *= float64(max(1, open[last]))
			open = open[:last]
			for len(filters) > 0 && filters[len(filters)-1] > last {
				filters = filters[:len(filters)-1]
			}
		case c == '?':
			cost.nested = cost.nested || len(filters) > 0 && filters[0] <= last
			filters = append(filters, len(open))
		case c == ',' && last >= 0 && open[last] > 0:
			open[last]++
		case c == '@':
			cost.filters++
		case c == '$' && i > 0:
			cost.filters++
			cost.roots++
		}
	}
	if n := strings.Count(bare, "match(") + strings.Count(bare, "search("); n > 0 {
		cost.variable = n > len(literalPattern().FindAllStringIndex(bare, -1))
		for _, text := range texts {
			size, _ := definition.PatternSize(text)
			cost.patterns += size
		}
	}
	return cost
}

// largestPattern returns the size of the largest text of a decoded answer as a pattern.
func largestPattern(v any) (n int) {
	switch v := v.(type) {
	case string:
		n, _ = definition.PatternSize(v)
	case []any:
		for _, item := range v {
			n = max(n, largestPattern(item))
		}
	case map[string]any:
		for _, item := range v {
			n = max(n, largestPattern(item))
		}
	}
	return n
}

// literalPattern matches the last argument of match and search after [withoutTexts].
var literalPattern = pattern(`,\s*"\s*\)`)

// withoutTexts replaces each quoted text of a path by one quotation mark.
func withoutTexts(path string) (bare string, texts []string) {
	var out strings.Builder
	for i := 0; i < len(path); i++ {
		quote := path[i]
		if quote != '\'' && quote != '"' {
			out.WriteByte(quote)
			continue
		}
		out.WriteByte('"')
		start := i + 1
		for i++; i < len(path) && path[i] != quote; i++ {
			if path[i] == '\\' {
				i++
			}
		}
		text := path[start:min(i, len(path))]
		if quote == '\'' { // as a JSON string
			text = strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `"`, `\"`).Replace(text)
		}
		text, _ = rawjson.String([]byte(`"` + text + `"`))
		texts = append(texts, text)
	}
	return out.String(), texts
}

// permits returns an error if a path takes long. A selected value may be visited once per
// "..", selector and filter, and a filter may read the whole document.
func (d *document) permits(cost pathCost, descents int) error {
	walk := float64(d.values)
	if descents > 0 {
		walk = float64(d.steps)
	}
	if descents > 1 {
		walk *= float64(d.depth)
	}
	if cost.variable {
		if d.size > maxAnswer {
			return errPattern
		}
		cost.patterns += largestPattern(d.root)
	}
	roots := cost.roots * walk
	if cost.nested && cost.roots > 0 {
		roots = math.Pow(walk, cost.roots)
	}
	switch {
	case cost.copies > 1 && walk*cost.copies > maxSteps:
		return errCost
	case cost.filters > 0 && walk*cost.copies*(1+cost.filters+roots) > maxCost:
		return errCost
	case cost.patterns > 0 && (d.values > maxCompiling/cost.patterns || d.size > maxMatching/cost.patterns):
		return errPattern
	}
	return nil
}
