package query

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type token struct {
	raw    string
	column int    // from 1, in characters
	not    bool   // began with -
	fuzzy  bool   // then with ~
	name   string // before the colon, if it may be a name
	body   string // after - and ~, without quotes
	value  string // after the colon, without quotes; body if there is no name
	quoted bool   // value was in quotes
	open   bool   // the closing quote is missing
}

func (t token) unfinished() bool { return t.value == "" && (!t.quoted || t.open) }

func (t token) closed() string {
	switch {
	case !t.open:
		return t.raw
	case t.value == "": // "" would be a value
		return strings.TrimSuffix(t.raw, `"`)
	}
	return t.raw + `"`
}

// Every text is valid.
func tokens(text string) []token {
	var all []token
	rest := clean(text)
	column := 1
	for {
		before := rest
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		column += utf8.RuneCountInString(before[:len(before)-len(rest)])
		if rest == "" {
			return all
		}
		t, n := first(rest)
		t.raw, t.column = rest[:n], column
		column += utf8.RuneCountInString(t.raw)
		all = append(all, t)
		rest = rest[n:]
	}
}

func first(s string) (t token, n int) {
	if s[n] == '-' {
		t.not = true
		n++
	}
	if n < len(s) && s[n] == '~' {
		t.fuzzy = true
		n++
	}
	if !t.fuzzy {
		if l := nameLen(s[n:]); l > 0 {
			t.name = s[n : n+l]
			n += l + 1
		}
	}
	var used int
	if n < len(s) && s[n] == '"' {
		t.quoted = true
		t.value, used, t.open = unquote(s[n:])
	} else {
		used = strings.IndexFunc(s[n:], unicode.IsSpace)
		if used < 0 {
			used = len(s) - n
		}
		t.value = s[n : n+used]
	}
	n += used
	t.body = t.value
	if t.name != "" {
		t.body = t.name + ":" + t.value
	}
	return t, n
}

// nameLen returns 0 if s does not start with a name and a colon.
func nameLen(s string) int {
	for i, r := range s {
		switch {
		case r == ':':
			return i
		case unicode.IsLetter(r):
		case i > 0 && (unicode.IsDigit(r) || r == '_' || r == '.' || r == '-' || r == '+'):
		default:
			return 0
		}
	}
	return 0
}

func unquote(s string) (value string, used int, open bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 == len(s) || s[i+1] != '"' {
			return b.String(), i + 1, false
		}
		b.WriteByte('"')
		i++
	}
	return b.String(), len(s), true
}

func quote(value string) string {
	value = clean(value)
	if value != "" && value[0] != '"' && strings.IndexFunc(value, unicode.IsSpace) < 0 {
		return value
	}
	return `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
}

// schemes are names that start a URI even without a slash after the colon.
var schemes = map[string]bool{
	"http": true, "https": true, "file": true, "ftp": true, "ssh": true, "git": true, "ws": true, "wss": true,
	"mcp": true, "ui": true, "repo": true, "data": true, "urn": true, "mailto": true, "tel": true, "blob": true,
}

// likeURI reports whether the token looks like a URI, or a path with a drive.
func (t token) likeURI() bool {
	if schemes[strings.ToLower(t.name)] {
		return true
	}
	r, _ := utf8.DecodeRuneInString(t.value)
	return r == '/' || r == '\\' || r == ':' // file:/, C:\, std::
}
