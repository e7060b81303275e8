package policy

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"goblin/registry/names"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/text/unicode/norm"
)

// Limits of the readings of one URI.
const (
	maxReadings = 128
	maxBytes    = 64 << 10 // of all readings together
)

// uriSteps lists the ways in which servers change a URI before they use it.
var uriSteps = []func(string) string{
	names.UnescapeURI, // %73ecret to secret; some do it twice
	trimSpace,         // around the URI
	dropBrackets,      // <URL:file:///a> to file:///a
	slashes,           // \ to /
	parseWHATWG,       // http:/0x7f.1 to http://127.0.0.1/
	dropFragment,      // file:///a#b to file:///a
	dropQuery,         // file:///a?b to file:///a
	dropParams,        // file:///a;v=1/b to file:///a/b
	resolveDots,       // x://h/a/../b to x://h/b
	cleanPath,         // x://h/a//b to x://h/a/b
	cleanAll,          // the same, treating the host as part of the path
	dropSchemes,       // file:///sefile://cret to file:///secret
	dropSchemeNames,   // file:///sefile:cret to file:///secret
}

// templateSteps omits the steps that would mistake a template expression for a query or
// host.
var templateSteps = []func(string) string{names.UnescapeURI, trimSpace, slashes, lowerScheme, resolveDots, cleanPath, cleanAll}

// readings returns the possible readings of a URI, starting with the URI itself. ok is
// false if the URI must be refused: too many readings, or one that is not text.
func readings(uri string, steps []func(string) string) (all []string, ok bool) {
	if hasOneReading(uri) {
		return []string{uri}, true
	}
	all, ok = apply(uri, steps)
	return all, ok && !slices.ContainsFunc(all, func(r string) bool { return !isText(r) })
}

// apply repeats the steps on a text and all results until nothing new appears. This
// covers every order of the steps. ok is false beyond the limits.
func apply(text string, steps []func(string) string) (all []string, ok bool) {
	all = []string{text}
	size := len(text)
	for i := 0; i < len(all) && size <= maxBytes; i++ {
		for _, step := range steps {
			next := step(all[i])
			if next == all[i] || slices.Contains(all, next) {
				continue
			}
			if size += len(next); len(all) == maxReadings || size > maxBytes {
				return nil, false
			}
			all = append(all, next)
		}
	}
	return all, size <= maxBytes
}

func isUnambiguous(uri string) bool {
	for i := 0; i < len(uri); i++ {
		if _, ok := names.ParseTriplet(uri[i:]); uri[i] == '%' && !ok {
			return false
		}
	}
	return isText(uri)
}

func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// hasOneReading is a fast path that reports whether no step changes a URI. It may return
// false for a URI with one reading.
func hasOneReading(uri string) bool {
	name, rest := splitScheme(uri)
	body, ok := strings.CutPrefix(rest, "//")
	if !ok || name == "" || name != strings.ToLower(name) || isSpecial(name) && !(name == "file" && strings.HasPrefix(body, "/")) {
		return false
	}
	return !strings.HasPrefix(body, ".") && !strings.Contains(body, "//") && !strings.Contains(body, name+":") && !strings.Contains(body, "/.") &&
		!strings.ContainsAny(body, " \"#%;<>?[\\]^`{|}") && !strings.ContainsFunc(body, func(r rune) bool { return r >= utf8.RuneSelf })
}

// isSpecial reports whether the WHATWG URL standard gives a scheme its own syntax.
func isSpecial(scheme string) bool {
	switch scheme {
	case "file", "ftp", "http", "https", "ws", "wss":
		return true
	}
	return false
}

// splitScheme splits a URI after the colon of its scheme. The scheme is "" if missing. A
// single letter is a drive.
func splitScheme(uri string) (scheme, rest string) {
	for i := 0; i < len(uri); i++ {
		switch c := uri[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 1 && c == ':':
			return uri[:i], uri[i+1:]
		default:
			return "", uri
		}
	}
	return "", uri
}

// splitPath splits a URI before its authority or, if it has none, before its path.
func splitPath(uri string) (head, body string) {
	_, body = splitScheme(uri)
	body = strings.TrimPrefix(body, "//")
	return uri[:len(uri)-len(body)], body
}

// trimSpace removes white space, control characters and byte order marks at both ends.
func trimSpace(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' || r == '\ufeff' || unicode.IsSpace(r) })
}

// dropBrackets removes "<URL:" and ">", which Python and Java ignore around a URI.
func dropBrackets(s string) string {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "<"), ">")
	if len(s) > 4 && strings.EqualFold(s[:4], "url:") {
		return s[4:]
	}
	return s
}

func slashes(s string) string { return strings.ReplaceAll(s, `\`, "/") }

// parseWHATWG parses a URI of a special scheme as browsers and Node.js do. It returns s
// unchanged on failure and for other schemes.
func parseWHATWG(s string) string {
	if name, _ := splitScheme(s); !isSpecial(strings.ToLower(name)) {
		return s
	}
	u, err := url.Parse(s)
	if err != nil {
		return s
	}
	parsed := u.Href(false)
	if u.Pathname() == "/" && !strings.HasSuffix(s, "/") {
		parsed = strings.TrimSuffix(parsed, "/")
	}
	return parsed
}

func dropFragment(s string) string {
	s, _, _ = strings.Cut(s, "#")
	return s
}

func dropQuery(s string) string {
	s, _, _ = strings.Cut(s, "?")
	return s
}

// dropParams removes the parameters of path segments, such as ";v=1".
func dropParams(s string) string {
	if strings.IndexByte(s, ';') < 0 {
		return s
	}
	segments := strings.Split(s, "/")
	for i, segment := range segments {
		segments[i], _, _ = strings.Cut(segment, ";")
	}
	return strings.Join(segments, "/")
}

// resolveDots resolves the dot segments of the path by RFC 3986.
func resolveDots(s string) string { return resolvePath(s, false) }

// cleanPath resolves dot segments and repeated slashes of the path as file systems do.
func cleanPath(s string) string { return resolvePath(s, true) }

func resolvePath(s string, squeeze bool) string {
	head, rest := splitPath(s)
	if strings.HasSuffix(head, "//") {
		at := strings.IndexByte(rest, '/')
		if at < 0 {
			return s
		}
		head, rest = head+rest[:at], rest[at:]
	}
	return resolveSegments(head, rest, squeeze)
}

// cleanAll is cleanPath for servers that strip only the scheme and treat the authority as
// part of the path.
func cleanAll(s string) string {
	head, rest := splitPath(s)
	return resolveSegments(head, rest, true)
}

// resolveSegments resolves dot segments of path, and empty ones if squeeze is set. It
// drops segments that lead above the root.
func resolveSegments(head, path string, squeeze bool) string {
	if !strings.Contains(path, "//") && !strings.Contains(path, ".") {
		return head + path
	}
	rooted := strings.HasPrefix(path, "/")
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	resolved := segments[:0]
	for i, segment := range segments {
		last := i == len(segments)-1
		switch {
		case segment == ".." && len(resolved) > 0:
			resolved = resolved[:len(resolved)-1]
		case segment == "..", segment == ".":
		case segment == "" && squeeze && !last:
			continue
		default:
			resolved = append(resolved, segment)
			continue
		}
		if last {
			resolved = append(resolved, "")
		}
	}
	path = strings.Join(resolved, "/")
	if rooted {
		path = "/" + path
	}
	return head + path
}

// dropSchemes imitates servers that remove the scheme and "://" everywhere. It keeps the
// first one.
func dropSchemes(s string) string { return dropRepeated(s, "://") }

func dropSchemeNames(s string) string { return dropRepeated(s, ":") }

// dropRepeated removes the scheme and mark everywhere except at the beginning.
func dropRepeated(s, mark string) string {
	name, _ := splitScheme(s)
	if name == "" {
		return s
	}
	head, rest := splitPath(s)
	rest = strings.ReplaceAll(rest, name+mark, "")
	return head + strings.ReplaceAll(rest, strings.ToLower(name)+mark, "")
}

func lowerScheme(s string) string {
	name, rest := splitScheme(s)
	if name == "" {
		return s
	}
	return strings.ToLower(name) + ":" + rest
}

// canonicalFile rewrites local file URIs as file:///path.
func canonicalFile(s string) string {
	rest, ok := strings.CutPrefix(s, "file:")
	if !ok {
		return s
	}
	switch {
	case strings.HasPrefix(rest, "///"):
	case len(rest) >= 12 && strings.EqualFold(rest[:12], "//localhost/"):
		return "file://" + rest[11:]
	case strings.HasPrefix(rest, "//"), rest == "", strings.ContainsRune(`*?[\`, rune(rest[0])):
	default:
		return "file:///" + strings.TrimPrefix(rest, "/")
	}
	return s
}

// decoded returns a URI without escapes, with a lower-case scheme and local files as
// file:///path.
func decoded(s string) string {
	for next := names.UnescapeURI(s); next != s; next = names.UnescapeURI(s) {
		s = next
	}
	return canonicalFile(lowerScheme(s))
}

// ignoredEnd matches name endings that some file systems ignore.
var ignoredEnd = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[. ](/|$)|::\$`) })

// trimNames removes name endings that file systems and servers ignore: slashes, dots,
// spaces and NTFS stream names. It also normalizes to NFC.
func trimNames(s string) string {
	s = strings.TrimRight(norm.NFC.String(s), "/")
	if !ignoredEnd().MatchString(s) {
		return s
	}
	segments := strings.Split(s, "/")
	for i, segment := range segments {
		segment, _, _ = strings.Cut(segment, "::$")
		if bare := strings.TrimRight(segment, ". "); bare != "" {
			segments[i] = bare
		}
	}
	return strings.Join(segments, "/")
}

func hasHost(rest string) bool {
	return strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "///")
}

// foldHost normalizes forms that some servers treat as equal. It lower-cases scheme and
// host, drops the user and extra slashes, and upper-cases drive letters. A path without a
// scheme is a file. hostless omits the host, for servers that ignore it. In a glob, only
// the part before the first * changes.
func foldHost(s string, glob bool) (folded, hostless string) {
	scheme, rest := splitScheme(s)
	switch {
	case scheme != "":
		scheme = strings.ToLower(scheme)
	case glob && !strings.HasPrefix(s, "/"):
		return s, s
	default:
		scheme = "file"
	}
	path := strings.TrimLeft(rest, "/")
	hostless = path
	if hasHost(rest) {
		at := strings.IndexByte(path, '/')
		if at < 0 {
			at = len(path)
		}
		hostless = strings.TrimLeft(path[at:], "/")
		if glob && strings.IndexByte(path[:at], '*') >= 0 {
			at = strings.IndexByte(path, '*')
		}
		host := strings.ToLower(path[:at])
		host = strings.TrimSuffix(host[strings.LastIndexByte(host, '@')+1:], ":")
		path = strings.TrimSuffix(host, ".") + path[at:]
	}
	return scheme + ":" + foldDrive(path), scheme + ":" + foldDrive(hostless)
}

func foldDrive(path string) string {
	if len(path) < 2 || path[1] != ':' && path[1] != '|' || path[0]|0x20 < 'a' || path[0]|0x20 > 'z' || len(path) > 2 && path[2] != '/' {
		return path
	}
	return strings.ToUpper(path[:1]) + ":" + path[2:]
}
