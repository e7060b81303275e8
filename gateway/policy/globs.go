package policy

import (
	"regexp"
	"strings"
	"sync"

	"goblin/registry/names"

	"golang.org/x/text/unicode/norm"
)

// sameSteps and looseSteps rewrite a config pattern to match the readings of a URI.
// sameSteps keep its meaning. looseSteps also drop parts, as some servers do.
var (
	sameSteps  = []func(string) string{unescapeGlob, slashGlob, lowerScheme, canonicalFile}
	looseSteps = append(sameSteps[:len(sameSteps):len(sameSteps)], norm.NFC.String, squeezeGlob, dropParams, dropGlobQuery, parseGlob, resolveGlobDots)
)

// unescapeGlob decodes percent-escapes in a glob. Decoded characters are literal.
func unescapeGlob(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		c, ok := names.ParseTriplet(s[i:])
		if !ok {
			out.WriteByte(s[i])
			continue
		}
		if strings.IndexByte(`*?[\`, c) >= 0 {
			out.WriteByte('\\')
		}
		out.WriteByte(c)
		i += 2
	}
	return out.String()
}

// slashGlob is slashes for globs, where a backslash is escaped.
func slashGlob(s string) string { return strings.ReplaceAll(s, `\\`, "/") }

func parseGlob(s string) string { return inLiteralPrefix(s, parseWHATWG) }

func resolveGlobDots(s string) string { return inLiteralPrefix(s, resolveDots) }

// inLiteralPrefix applies f to the whole segments before the first wildcard, if they
// include the authority.
func inLiteralPrefix(s string, f func(string) string) string {
	at := len(s)
	if wild := strings.IndexAny(s, `*?[\`); wild >= 0 {
		at = strings.LastIndexByte(s[:wild], '/') + 1
	}
	head, rest := splitPath(s[:at])
	if hasHost("//"+rest) && strings.HasSuffix(head, "//") && strings.IndexByte(rest, '/') < 0 {
		return s
	}
	return f(s[:at]) + s[at:]
}

func squeezeGlob(s string) string {
	head, rest := splitPath(s)
	for strings.Contains(rest, "//") {
		rest = strings.ReplaceAll(rest, "//", "/")
	}
	return head + rest
}

// queryMark matches the start of a query or fragment in a glob. A question mark is a
// wildcard unless a name and "=" follow.
var queryMark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\\?|\[\?\]|\?[A-Za-z0-9_.~-]+=|#`) })

func dropGlobQuery(s string) string {
	if at := queryMark().FindStringIndex(s); at != nil {
		return s[:at[0]]
	}
	return s
}
