package config

import (
	"slices"
	"unicode/utf8"
)

// Filter selects names by globs. * matches any run of characters including "/", and ?
// matches one character. [a-z] and [^a-z] are classes, and \ makes the next character
// literal.
type Filter struct{ Allow, Deny []string }

// Match reports whether an original name or URI passes: it matches Allow, or Allow is
// empty, and it does not match Deny.
func (f Filter) Match(original string) bool {
	fits := func(glob string) bool { return Glob(glob, original) }
	return (len(f.Allow) == 0 || slices.ContainsFunc(f.Allow, fits)) && !slices.ContainsFunc(f.Deny, fits)
}

// Glob reports whether s matches one glob, see [Filter]. Its time is at most proportional
// to the product of both lengths, since only the last * backtracks.
func Glob(glob, s string) bool {
	star, mark := "", "" // the glob after the last *, and the rest of s at its match
	starred := false
	for {
		if glob != "" && glob[0] == '*' {
			glob = glob[1:]
			star, mark, starred = glob, s, true
			continue
		}
		if s == "" {
			return glob == ""
		}
		r, size := utf8.DecodeRuneInString(s)
		if rest, ok, valid := globOne(glob, r); valid && ok && glob != "" {
			glob, s = rest, s[size:]
			continue
		}
		if !starred || mark == "" {
			return false
		}
		_, size = utf8.DecodeRuneInString(mark)
		mark = mark[size:]
		glob, s = star, mark
	}
}

// globOne matches one character. rest is the remaining glob. valid is false if a class or
// escape is incomplete.
func globOne(glob string, r rune) (rest string, ok, valid bool) {
	if glob == "" {
		return "", false, true
	}
	switch glob[0] {
	case '?':
		return glob[1:], true, true
	case '[':
		return globClass(glob[1:], r)
	}
	c, rest, valid := globChar(glob)
	return rest, c == r, valid
}

func globClass(glob string, r rune) (rest string, ok, valid bool) {
	negated := glob != "" && glob[0] == '^'
	if negated {
		glob = glob[1:]
	}
	found := false
	for first := true; ; first = false {
		if glob == "" {
			return "", false, false
		}
		if glob[0] == ']' && !first {
			return glob[1:], found != negated, true
		}
		lo, rest, valid := globChar(glob)
		hi := lo
		if valid && len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			hi, rest, valid = globChar(rest[1:])
		}
		if !valid {
			return "", false, false
		}
		found = found || lo <= r && r <= hi
		glob = rest
	}
}

func globChar(glob string) (c rune, rest string, valid bool) {
	if glob != "" && glob[0] == '\\' {
		glob = glob[1:]
	}
	if glob == "" {
		return 0, "", false
	}
	c, size := utf8.DecodeRuneInString(glob)
	return c, glob[size:], true
}

func globComplaint(glob string) string {
	if glob == "" {
		return "is an empty pattern"
	}
	for glob != "" {
		if glob[0] == '*' {
			glob = glob[1:]
			continue
		}
		rest, _, valid := globOne(glob, 0)
		if !valid {
			return `is not a valid pattern: "[" needs a closing "]", and "\" a character after it`
		}
		glob = rest
	}
	return ""
}
