package policy

import (
	"regexp"
	"strings"
	"sync"

	"goblin/registry/names"

	"golang.org/x/text/unicode/norm"
)

// What a pattern of the config becomes, so that it fits the readings of the URIs
// that it was written for. sameSteps change how it is written, looseSteps also
// what it says, as readers do who drop something.
var (
	sameSteps  = []func(string) string{decodeGlob, turnGlob, lower, local}
	looseSteps = append(sameSteps[:len(sameSteps):len(sameSteps)], norm.NFC.String, squeezeGlob, paramless, pathGlob, parseGlob, dotlessGlob)
)

// decodeGlob is decode for a glob: what an escape stands for is literal.
func decodeGlob(s string) string {
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

// turnGlob is turn for a glob, in which a backslash is written twice.
func turnGlob(s string) string { return strings.ReplaceAll(s, `\\`, "/") }

// parseGlob is parse for the literal beginning of a glob.
func parseGlob(s string) string { return inFront(s, parse) }

// dotlessGlob is dotless for it.
func dotlessGlob(s string) string { return inFront(s, dotless) }

// inFront applies f to what stands before the first wildcard, in whole segments and
// behind the authority.
func inFront(s string, f func(string) string) string {
	at := len(s)
	if wild := strings.IndexAny(s, `*?[\`); wild >= 0 {
		at = strings.LastIndexByte(s[:wild], '/') + 1
	}
	head, rest := body(s[:at])
	if named("//"+rest) && strings.HasSuffix(head, "//") && strings.IndexByte(rest, '/') < 0 {
		return s // the authority goes on
	}
	return f(s[:at]) + s[at:]
}

// squeezeGlob takes several slashes in a path for one.
func squeezeGlob(s string) string {
	head, rest := body(s)
	for strings.Contains(rest, "//") {
		rest = strings.ReplaceAll(rest, "//", "/")
	}
	return head + rest
}

// beyond is where the path of a glob ends: at a query or fragment that it names. A question mark is usually any character, but not before a
// name and "=".
var beyond = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\\?|\[\?\]|\?[A-Za-z0-9_.~-]+=|#`) })

// pathGlob drops query and fragment.
func pathGlob(s string) string {
	if at := beyond().FindStringIndex(s); at != nil {
		return s[:at[0]]
	}
	return s
}
