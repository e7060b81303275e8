package savedcall

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"

	"goblin/registry/termtext"
)

const (
	maxNesting  = 8       // of ${A:-${B:-…}}
	maxExpanded = 1 << 20 // bytes of one text with its variables
)

// Variables are the values of variables. Captures override the environment.
type Variables struct {
	Captures map[string]json.RawMessage // JSON
	Env      func(name string) (value string, ok bool)
}

// pattern returns a function that compiles a pattern once.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var (
	errVariable = errors.New(`a "${…}" is neither ${NAME} nor ${NAME:-default}; write "$${" for a literal "${"`)
	errUnclosed = errors.New(`"${" has no "}"; write "$${" for a literal "${"`)
	errNested   = errors.New("defaults of variables are nested too deeply")
	errExpanded = errors.New("a text is longer than 1 MiB with its variables")
)

// expand replaces ${NAME} and ${NAME:-default} as in Goblin's config. $${ stands for a
// literal ${, and any other $ for itself. lookup reports ok to replace the variable; it
// reports the missing ones itself. A default may hold variables.
func expand(s string, depth int, lookup func(name string, hasDefault bool) (value string, ok bool)) (string, error) {
	if depth > maxNesting {
		return "", errNested
	}
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || out.Len() > maxExpanded {
			break
		}
		out.WriteString(s[:i])
		s = s[i:]
		switch {
		case strings.HasPrefix(s, "$${"):
			out.WriteString("${")
			s = s[3:]
		case strings.HasPrefix(s, "${"):
			end := termtext.ClosingBrace(s)
			if end < 0 {
				return "", errUnclosed
			}
			name, fallback, hasDefault := strings.Cut(s[2:end], ":-")
			if !captureName().MatchString(name) {
				return "", errVariable
			}
			value, ok := lookup(name, hasDefault)
			if !ok && hasDefault {
				var err error
				if value, err = expand(fallback, depth+1, lookup); err != nil {
					return "", err
				}
			}
			out.WriteString(value)
			s = s[end+1:]
		default:
			out.WriteByte('$')
			s = s[1:]
		}
	}
	if out.Len()+len(s) > maxExpanded {
		return "", errExpanded
	}
	out.WriteString(s)
	return out.String(), nil
}

// loneVariable returns the name of the variable if s is nothing else.
func loneVariable(s string) (name string, ok bool) {
	if !strings.HasPrefix(s, "${") || termtext.ClosingBrace(s) != len(s)-1 {
		return "", false
	}
	name, _, _ = strings.Cut(s[2:len(s)-1], ":-")
	return name, captureName().MatchString(name)
}

// checkVariables reports a mistake in the variables of a text, also in unused defaults.
func (p *parser) checkVariables(line int, s string) {
	if _, err := expand(s, 0, func(string, bool) (string, bool) { return "", false }); err != nil {
		p.failf(line, "%v", err)
	}
}
