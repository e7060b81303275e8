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

// line returns the server's command for a shell, with the environment and folder that
// Goblin uses. Secrets are replaced by references to shell variables.
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

// ByHand is the start of a fix that is a command with the server's environment.
const ByHand = "run it yourself to see the full error"

func (p *serverCheck) runByHandFix() string {
	line := p.line()
	where := ""
	if len(p.unsetVariables) > 0 {
		where = ", with " + strings.Join(p.unsetVariables, " and ") + " set"
	}
	return ByHand + where + ": " + line
}

func (p *serverCheck) environment() []string {
	if runtime.GOOS == "windows" {
		return nil // Windows has no env command
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

// reference also records unset variables.
func (p *serverCheck) reference(name string) string {
	name = strings.Map(func(r rune) rune { // a shell could execute other characters
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

func (p *serverCheck) isSecret(value string) bool { return p.Redact(value) != value }

// source returns the shell variable with the same value, or name, which the user must
// then set.
func (p *serverCheck) source(name, value string) string {
	for _, entry := range slices.Sorted(slices.Values(os.Environ())) {
		if of, has, _ := strings.Cut(entry, "="); has == value && termtext.QuoteWord(of) == of {
			return of
		}
	}
	return name
}

// word quotes a word for a shell. It replaces secret values of variables by references.
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

// part is like word, but s may be empty.
func (p *serverCheck) part(s string) string {
	if s == "" {
		return ""
	}
	return p.word(s)
}

// missingVariables returns the variables that the server reports as missing, and the fix.
func (p *serverCheck) missingVariables(words []string) (cause, fix string) {
	missing, mentioned := stderr.Variables(words)
	return stderr.MissingVariables(p.s, missing, mentioned, p.s.Environ(os.LookupEnv, os.Environ()), os.LookupEnv, p.Config.EnvNames)
}

func (p *serverCheck) warnUnexpanded() {
	for _, u := range p.s.Unexpanded() {
		p.AddWarning(u.Key, u.Text, u.Fix)
	}
}
