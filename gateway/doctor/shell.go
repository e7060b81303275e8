package doctor

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"goblin/gateway/upstream/stderr"
	"goblin/registry/termtext"
)

// maxLine is the maximum size of a printed command, in bytes.
const maxLine = 4000

// line returns the server's command as a shell reads it, in the environment and the folder
// that Goblin gives it. Secrets are references to variables of the shell.
func (p *serverCheck) line() string {
	words := append(p.environment(), p.word(p.s.Command))
	for _, arg := range p.s.Args {
		words = append(words, p.word(arg))
	}
	line := strings.Join(words, " ")
	if p.s.Cwd != "" && p.s.Cwd != filepath.Dir(p.Config.Path) {
		line = "cd " + p.word(p.s.Cwd) + " && " + line
	}
	return short(p.Redact(line), maxLine)
}

// runByHandFix returns the fix for an error whose cause only the whole output shows.
func (p *serverCheck) runByHandFix() string {
	line := p.line()
	where := "in a terminal"
	if len(p.unsetVariables) > 0 {
		where += " where " + strings.Join(p.unsetVariables, " and ") + " is set"
		if len(p.unsetVariables) > 1 {
			where = strings.TrimSuffix(where, "is set") + "are set"
		}
	}
	return where + ", run it yourself to see the full error: " + line
}

// environment returns the words that run a command with the server's variables alone.
func (p *serverCheck) environment() []string {
	if runtime.GOOS == "windows" {
		return nil // there is no env
	}
	words := []string{"env"}
	if !p.s.InheritEnv.All {
		words = append(words, "-i")
	}
	for _, entry := range p.s.Environ(os.LookupEnv, os.Environ()) {
		name, value, _ := strings.Cut(entry, "=")
		own, configured := p.s.Env[name]
		switch here, ok := os.LookupEnv(name); {
		case ok && here == value && p.s.InheritEnv.All && !configured:
		case ok && here == value:
			words = append(words, termtext.QuoteWord(name)+`="$`+name+`"`)
		case configured && own == value && p.isSecret(value):
			words = append(words, termtext.QuoteWord(name)+"="+p.reference(p.source(name, value)))
		case p.s.FileEnv[name] == value && p.isSecret(value):
			words = append(words, termtext.QuoteWord(name)+"="+p.reference(name))
		default:
			words = append(words, termtext.QuoteWord(name)+"="+p.word(value))
		}
	}
	if len(words) == 1 {
		return nil
	}
	return words
}

// reference returns the reference to a variable of the shell, and notes it if it is not set.
func (p *serverCheck) reference(name string) string {
	name = strings.Map(func(r rune) rune { // a shell runs what other characters hold
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	if _, ok := os.LookupEnv(name); !ok && !slices.Contains(p.unsetVariables, name) {
		p.unsetVariables = append(p.unsetVariables, name)
	}
	return `"$` + name + `"`
}

// isSecret reports whether a value must not be printed.
func (p *serverCheck) isSecret(value string) bool { return p.Redact(value) != value }

// source returns the variable of the shell with the value of the server's variable name, or
// name itself: the user sets it before.
func (p *serverCheck) source(name, value string) string {
	for _, entry := range slices.Sorted(slices.Values(os.Environ())) {
		if of, has, _ := strings.Cut(entry, "="); has == value && termtext.QuoteWord(of) == of {
			return of
		}
	}
	return name
}

// word quotes a word for a shell. The value of a variable in it that must not be printed is
// a reference to that variable.
func (p *serverCheck) word(s string) string {
	for _, name := range slices.Sorted(maps.Keys(p.s.Variables)) {
		value := p.s.Variables[name]
		if value == "" || !p.isSecret(value) {
			continue
		}
		if before, after, ok := strings.Cut(s, value); ok {
			return p.part(before) + p.reference(name) + p.part(after)
		}
	}
	return termtext.Portable(termtext.QuoteWord(p.Redact(s)))
}

// part is word for a part of a word, which may be empty.
func (p *serverCheck) part(s string) string {
	if s == "" {
		return ""
	}
	return p.word(s)
}

// missingVariables returns which variables the server lacks by its own words, and the fix.
func (p *serverCheck) missingVariables(words []string) (cause, fix string) {
	missing, mentioned := stderr.Variables(words)
	return stderr.MissingVariables(p.s, missing, mentioned, p.s.Environ(os.LookupEnv, os.Environ()), os.LookupEnv, p.Config.EnvNames)
}

// warnUnexpanded warns of texts that a shell would expand, but Goblin does not.
func (p *serverCheck) warnUnexpanded() {
	for _, u := range p.s.Unexpanded() {
		p.AddWarning(u.Key, u.Text, u.Fix)
	}
}
