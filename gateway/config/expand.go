package config

import (
	"slices"
	"strings"
)

const (
	maxExpanded  = 1 << 20  // bytes of one value with variables in it
	maxExpansion = 16 << 20 // bytes of all such values
	maxNesting   = 8        // of ${A:-${B:-…}}
)

var variable = pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expansion replaces ${NAME} and ${NAME:-default} in one value. A default
// stands for an unset and for an empty variable and may hold variables itself;
// $${ is a literal ${; any other $ is itself. What else stands in ${…} is a reference, see
// references.go.
type expansion struct {
	env     func(string) (string, bool)
	project bool                                                               // ${project} stays, see Server.InProject
	used    bool                                                               // a variable was named
	other   []string                                                           // those with a value that not every child gets
	unset   []string                                                           // variables without value or default
	refers  func(e *expansion, body string, depth int) (value string, ok bool) // a reference; not ok for what is none
	plain   []string                                                           // kinds of references that are plain text in this file
	late    []string                                                           // references, as they are told
	failed  [][2]string                                                        // references without a value, and why
	wrong   string                                                             // a complaint about the syntax, or about the size
}

func (e *expansion) expand(s string, depth int) string {
	if !strings.Contains(s, "${") {
		return s
	}
	var out strings.Builder
	for e.wrong == "" {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			break
		}
		out.WriteString(s[:i])
		s = s[i:]
		switch {
		case strings.HasPrefix(s, "$${"):
			out.WriteString("${")
			s = s[3:]
		case strings.HasPrefix(s, "${"):
			end := ClosingBrace(s)
			if end < 0 {
				e.wrong = `has "${" without "}"; write "$${" for a literal "${"`
				return ""
			}
			out.WriteString(e.lookup(s[2:end], depth))
			s = s[end+1:]
		default:
			out.WriteByte('$')
			s = s[1:]
		}
		if out.Len() > maxExpanded && e.used {
			e.wrong = "becomes longer than 1 MiB by its variables"
		}
	}
	out.WriteString(s)
	return out.String()
}

func (e *expansion) lookup(body string, depth int) string {
	if e.refers != nil {
		if value, ok := e.refers(e, body, depth); ok {
			return value
		}
	}
	name, fallback, hasFallback := strings.Cut(body, ":-")
	if !variable().MatchString(name) {
		e.wrong = `has a "${…}" that is neither ${NAME} nor ${NAME:-default}; write "$${" for a literal "${"`
		if n, ok := strings.CutPrefix(body, "env:"); ok && variable().MatchString(n) {
			e.wrong = "has ${env:" + n + "}; write ${" + n + "}"
		}
		return ""
	}
	if e.project && name == "project" {
		return projectVariable
	}
	e.used = true
	value, ok := e.env(name)
	switch {
	case ok && (value != "" || !hasFallback):
		if !slices.Contains(baseEnv, name) && !slices.Contains(e.other, name) {
			e.other = append(e.other, name)
		}
		return value
	case hasFallback && depth >= maxNesting:
		e.wrong = "nests its defaults too deeply"
		return ""
	case hasFallback:
		return e.expand(fallback, depth+1)
	}
	if len(e.unset) < maxProblems && !slices.Contains(e.unset, name) {
		e.unset = append(e.unset, name)
	}
	return ""
}

// ClosingBrace is the index of the "}" that ends the "${" which s begins with, -1 if
// there is none.
func ClosingBrace(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			depth++
			i++
		case s[i] == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
