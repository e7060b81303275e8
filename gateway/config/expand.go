package config

import (
	"slices"
	"strings"

	"goblin/registry/termtext"
)

const (
	maxExpanded  = 1 << 20  // bytes of one value that has variables
	maxExpansion = 16 << 20 // bytes of all such values together
	maxNesting   = 8        // of ${A:-${B:-…}}
)

var variable = pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expansion replaces ${NAME} and ${NAME:-default} in one value. The default applies to
// unset and empty variables and may contain variables. $${ stands for a literal ${, and
// any other $ for itself. All other ${…} are references.
type expansion struct {
	env     func(string) (string, bool)
	project bool                                                               // ${project} stays, see Server.InProject
	used    bool                                                               // a variable occurred
	other   []string                                                           // set variables outside of the base set
	unset   []string                                                           // variables without value and default
	refers  func(e *expansion, body string, depth int) (value string, ok bool) // ok is false if body is no reference
	plain   []string                                                           // reference kinds that are plain text here
	late    []string                                                           // references, as shown to users
	failed  [][2]string                                                        // unresolved references with reasons
	wrong   string                                                             // complaint about syntax or size
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
			end := termtext.ClosingBrace(s)
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
			e.wrong = "is longer than 1 MiB with its variables expanded"
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
		e.wrong = "has too deeply nested defaults"
		return ""
	case hasFallback:
		return e.expand(fallback, depth+1)
	}
	if len(e.unset) < maxProblems && !slices.Contains(e.unset, name) {
		e.unset = append(e.unset, name)
	}
	return ""
}
