package definition

import (
	"errors"
	"regexp"
	"regexp/syntax"
)

// maxPattern is the maximum size of the patterns of a schema. Compiling them takes a few
// milliseconds.
const maxPattern = 10_000

var errPattern = errors.New("the pattern is too complex")

// CompilePattern compiles a regular expression of a server. It returns an error for one
// that takes long.
func CompilePattern(expr string) (*regexp.Regexp, error) {
	if size, err := PatternSize(expr); err != nil {
		return nil, err
	} else if size > maxPattern {
		return nil, errPattern
	}
	return regexp.Compile(expr)
}

// PatternSize returns the approximate number of instructions of a regular expression
// (RE2). Compiling takes this number of steps, and matching up to as many per character.
func PatternSize(expr string) (int, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return patternSize(re), nil
}

func patternSize(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += patternSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return n
}

// SchemaPatterns returns the size of all patterns in a decoded schema. Invalid patterns
// don't count.
func SchemaPatterns(doc any) (n int) {
	switch v := doc.(type) {
	case []any:
		for _, item := range v {
			n += SchemaPatterns(item)
		}
	case map[string]any:
		for key, value := range v {
			n += SchemaPatterns(value)
			if text, ok := value.(string); ok && key == "pattern" {
				size, _ := PatternSize(text)
				n += size
			}
			if members, ok := value.(map[string]any); ok && key == "patternProperties" {
				for pattern := range members {
					size, _ := PatternSize(pattern)
					n += size
				}
			}
		}
	}
	return n
}
