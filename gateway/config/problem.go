package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"goblin/registry/secrettext"
)

// Problem is a mistake or a warning. Text is one line without secrets.
type Problem struct {
	File string // as passed to Load or Parse
	Line int    // from 1; 0 means the whole file
	Text string
}

// String returns "file:line: text".
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ": " + p.Text
}

// Errors contains all mistakes of a file, sorted by line.
type Errors struct {
	Problems []Problem // never empty
	Warnings []Problem // see Config.Warnings
	EnvFile  string    // as in Config
}

// Error returns one mistake per line.
func (e *Errors) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Texts returns the mistakes in an error of [Parse] without positions, for a text that is
// not in a file.
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

// sortProblems also removes duplicates, which aliases cause.
func sortProblems(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	seen := make(map[Problem]bool, len(ps))
	return slices.DeleteFunc(ps, func(p Problem) bool {
		dup := seen[p]
		seen[p] = true
		return dup
	})
}

// quote makes untrusted text safe and short enough for one line on a terminal.
func quote(s string) string {
	const limit = 60
	if r := []rune(s[:min(len(s), 4*limit)]); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return strconv.Quote(s)
}

// quoteKey omits the part of a key that may be a value. A comma or "=" instead of a colon
// makes a secret part of the key.
func quoteKey(s string) string {
	shown, _, _ := strings.Cut(s, "=")
	if i := strings.IndexFunc(shown, func(c rune) bool { return c == ':' || c == '"' || unicode.IsSpace(c) }); i >= 0 {
		shown = shown[:i]
	}
	if secrettext.IsRandomPart(shown) {
		shown = shown[:4]
	}
	if len(shown) < len(s) {
		shown += "…"
	}
	return quote(shown)
}

// keyPath names a value in messages: "args" in server "files".
type keyPath struct {
	name  string // the key, with an index for list items
	outer string // the keys around it, joined by dots
	owner string // the thing that has all of them, such as a server; "" for the file
	self  string // replaces the others for things with their own name
}

func (p keyPath) String() string {
	if p.self != "" {
		return p.self
	}
	where := p.outer
	switch {
	case where == "":
		where = p.owner
	case p.owner != "":
		where += " of " + p.owner
	}
	if where == "" {
		return quoteKey(p.name)
	}
	return quoteKey(p.name) + " in " + where
}

func (p keyPath) path() string {
	if p.outer == "" {
		return p.name
	}
	return p.outer + "." + p.name
}

func (p keyPath) inner() string {
	switch {
	case p.self != "":
		return p.self
	case p.owner == "":
		return p.path()
	}
	return p.path() + " of " + p.owner
}

func (p keyPath) key(name string) keyPath {
	switch {
	case p.self != "":
		return keyPath{name: name, owner: p.self}
	case p == (keyPath{}):
		return keyPath{name: name}
	}
	return keyPath{name: name, outer: p.path(), owner: p.owner}
}

func (p keyPath) item(i int) keyPath {
	p.name += "[" + strconv.Itoa(i) + "]"
	return p
}
