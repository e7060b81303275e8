package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Problem is one mistake or warning. Text is one line, without secrets.
type Problem struct {
	File string // as it was named to Load or Parse
	Line int    // from 1; 0: the file as a whole
	Text string
}

// String is "file:line: text".
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ": " + p.Text
}

// Errors are all mistakes of one file, by line.
type Errors struct {
	Problems []Problem // never empty
	Warnings []Problem // what Config.Warnings would have held
	EnvFile  string    // as in Config
}

// Error has one mistake per line.
func (e *Errors) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Texts are the mistakes of an error of [Parse] without their places, for a text that no
// file has.
func Texts(err error) string {
	mistakes, ok := errors.AsType[*Errors](err)
	if !ok {
		return err.Error()
	}
	texts := make([]string, len(mistakes.Problems))
	for i, p := range mistakes.Problems {
		texts[i] = p.Text
	}
	return strings.Join(texts, "; ")
}

func fileError(name, format string, args ...any) *Errors {
	return lineError(name, 0, format, args...)
}

func lineError(name string, line int, format string, args ...any) *Errors {
	return &Errors{Problems: []Problem{{File: name, Line: line, Text: fmt.Sprintf(format, args...)}}}
}

// sortProblems sorts by line and drops repetitions, which aliases cause.
func sortProblems(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	seen := make(map[Problem]bool, len(ps))
	return slices.DeleteFunc(ps, func(p Problem) bool {
		dup := seen[p]
		seen[p] = true
		return dup
	})
}

// quote makes foreign text safe and short enough for one line on a terminal.
func quote(s string) string {
	const limit = 60
	if r := []rune(s[:min(len(s), 4*limit)]); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return strconv.Quote(s)
}

// quoteKey is quote for a key, of which it leaves out what may be a value: a
// comma or "=" in the place of a colon makes a secret part of one.
func quoteKey(s string) string {
	shown, _, _ := strings.Cut(s, "=")
	if i := strings.IndexFunc(shown, func(c rune) bool { return c == ':' || c == '"' || unicode.IsSpace(c) }); i >= 0 {
		shown = shown[:i]
	}
	if looksRandom(shown) {
		shown = shown[:4]
	}
	if len(shown) < len(s) {
		shown += "…"
	}
	return quote(shown)
}

// keyPath names a value for a message: "args" in server "files".
type keyPath struct {
	name  string // the key, perhaps with an index
	owner string // the mapping it is in; empty at the top level
	self  string // instead of both, for things that have a name of their own
}

func (p keyPath) String() string {
	switch {
	case p.self != "":
		return p.self
	case p.owner == "":
		return quoteKey(p.name)
	}
	return quoteKey(p.name) + " in " + p.owner
}

// inner is how keys within this value name their owner.
func (p keyPath) inner() string {
	switch {
	case p.self != "":
		return p.self
	case p.owner == "":
		return p.name
	}
	return p.name + " of " + p.owner
}

func (p keyPath) key(name string) keyPath { return keyPath{name: name, owner: p.inner()} }

func (p keyPath) item(i int) keyPath {
	return keyPath{name: p.name + "[" + strconv.Itoa(i) + "]", owner: p.owner}
}
