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

// Bounds of the readings of one URI.
const (
	maxReadings = 128
	maxBytes    = 64 << 10
)

// steps are the ways in which readers change a URI. templateSteps leave out what would
// take the expressions of a template for a query or a host.
var (
	steps         = []func(string) string{names.UnescapeURI, trim, unwrap, turn, parse, fragmentless, queryless, paramless, dotless, tidy, tidyWhole, schemeless, colonless}
	templateSteps = []func(string) string{names.UnescapeURI, trim, turn, lower, dotless, tidy, tidyWhole}
)

// readings are the ways to read a URI, itself first. It is not ok for one that
// is to be refused.
func readings(uri string, steps []func(string) string) (all []string, ok bool) {
	if simple(uri) {
		return []string{uri}, true
	}
	all, ok = apply(uri, steps)
	return all, ok && !slices.ContainsFunc(all, func(r string) bool { return !clean(r) })
}

// apply applies functions to a text until nothing new comes of it. It is not ok
// beyond the bounds.
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

// sound reports whether all readers agree about a URI's characters.
func sound(uri string) bool {
	for i := 0; i < len(uri); i++ {
		if _, ok := names.ParseTriplet(uri[i:]); uri[i] == '%' && !ok {
			return false
		}
	}
	return clean(uri)
}

// clean reports whether a text is UTF-8 without control characters.
func clean(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// simple reports whether no step changes a URI, as is usual. It may say no.
func simple(uri string) bool {
	name, rest := split(uri)
	body, ok := strings.CutPrefix(rest, "//")
	if !ok || name == "" || name != strings.ToLower(name) || special(name) && !(name == "file" && strings.HasPrefix(body, "/")) {
		return false
	}
	return !strings.HasPrefix(body, ".") && !strings.Contains(body, "//") && !strings.Contains(body, name+":") && !strings.Contains(body, "/.") &&
		!strings.ContainsAny(body, " \"#%;<>?[\\]^`{|}") && !strings.ContainsFunc(body, func(r rune) bool { return r >= utf8.RuneSelf })
}

// special reports whether URL parsers know a scheme, and read what follows in
// a way of its own.
func special(scheme string) bool {
	switch scheme {
	case "file", "ftp", "http", "https", "ws", "wss":
		return true
	}
	return false
}

// split takes a URI apart behind the colon of its scheme. The scheme is "" for
// none; one letter is a drive.
func split(uri string) (scheme, rest string) {
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

// body takes a URI apart into all up to its authority or path, and the rest.
func body(uri string) (head, body string) {
	_, body = split(uri)
	body = strings.TrimPrefix(body, "//")
	return uri[:len(uri)-len(body)], body
}

func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' || r == '\ufeff' || unicode.IsSpace(r) })
}

// unwrap drops what Python and Java overlook around a URI: "<URL:" and ">".
func unwrap(s string) string {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "<"), ">")
	if len(s) > 4 && strings.EqualFold(s[:4], "url:") {
		return s[4:]
	}
	return s
}

func turn(s string) string { return strings.ReplaceAll(s, `\`, "/") }

// parse reads a URI of a known scheme as URL parsers of the WHATWG kind do, those of
// browsers and Node.js; the same if it is none. Of others they leave what the further
// steps leave.
func parse(s string) string {
	if name, _ := split(s); !special(strings.ToLower(name)) {
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

func fragmentless(s string) string {
	s, _, _ = strings.Cut(s, "#")
	return s
}

func queryless(s string) string {
	s, _, _ = strings.Cut(s, "?")
	return s
}

// paramless drops the parameters of segments: ";v=1".
func paramless(s string) string {
	if strings.IndexByte(s, ';') < 0 {
		return s
	}
	segments := strings.Split(s, "/")
	for i, segment := range segments {
		segments[i], _, _ = strings.Cut(segment, ";")
	}
	return strings.Join(segments, "/")
}

// dotless resolves dot segments of the path as RFC 3986 says.
func dotless(s string) string { return inPath(s, false) }

// tidy resolves the path as file systems do.
func tidy(s string) string { return inPath(s, true) }

func inPath(s string, squeeze bool) string {
	head, rest := body(s)
	if strings.HasSuffix(head, "//") { // behind the authority
		at := strings.IndexByte(rest, '/')
		if at < 0 {
			return s
		}
		head, rest = head+rest[:at], rest[at:]
	}
	return resolve(head, rest, squeeze)
}

// tidyWhole is tidy for those who take the authority for a part of the path:
// they only cut the scheme off.
func tidyWhole(s string) string {
	head, rest := body(s)
	return resolve(head, rest, true)
}

// resolve resolves the dot segments of a path; what would lead out of it stays
// in it.
func resolve(head, path string, squeeze bool) string {
	if !strings.Contains(path, "//") && !strings.Contains(path, ".") {
		return head + path
	}
	rooted := strings.HasPrefix(path, "/")
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	kept := segments[:0]
	for i, segment := range segments {
		last := i == len(segments)-1
		switch {
		case segment == ".." && len(kept) > 0:
			kept = kept[:len(kept)-1]
		case segment == "..", segment == ".":
		case segment == "" && squeeze && !last:
			continue
		default:
			kept = append(kept, segment)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	path = strings.Join(kept, "/")
	if rooted {
		path = "/" + path
	}
	return head + path
}

// schemeless takes the scheme out wherever it stands again: some readers cut it off
// by replacing it everywhere. It keeps the first.
func schemeless(s string) string { return without(s, "://") }

// colonless is schemeless for those who replace no more than the colon.
func colonless(s string) string { return without(s, ":") }

func without(s, mark string) string {
	name, _ := split(s)
	if name == "" {
		return s
	}
	head, rest := body(s)
	rest = strings.ReplaceAll(rest, name+mark, "")
	return head + strings.ReplaceAll(rest, strings.ToLower(name)+mark, "")
}

// lower writes the scheme in small letters.
func lower(s string) string {
	name, rest := split(s)
	if name == "" {
		return s
	}
	return strings.ToLower(name) + ":" + rest
}

// local writes file URIs of this machine in one form.
func local(s string) string {
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

// plain is a URI without escapes, with a small scheme, in the one form of file
// URIs.
func plain(s string) string {
	for next := names.UnescapeURI(s); next != s; next = names.UnescapeURI(s) {
		s = next
	}
	return local(lower(s))
}

var overlooked = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[. ](/|$)|::\$`) })

// tail drops what file systems and servers overlook at the end of names:
// slashes, dots and spaces, and the name of a stream.
func tail(s string) string {
	s = strings.TrimRight(norm.NFC.String(s), "/")
	if !overlooked().MatchString(s) {
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

// named reports whether what follows a scheme names a host.
func named(rest string) bool {
	return strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "///")
}

// fold writes what some readers take for the same in one form: the scheme and
// the host in small letters, without a user, and without the slashes between
// them; drives in large ones; a path without a scheme as a file. hostless is that
// without the host, for those who overlook it. Of a glob, it only touches what
// stands before the first *.
func fold(s string, glob bool) (folded, hostless string) {
	scheme, rest := split(s)
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
	if named(rest) {
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
	return scheme + ":" + drive(path), scheme + ":" + drive(hostless)
}

// drive writes the letter of a drive at the beginning of a path in one way.
func drive(path string) string {
	if len(path) < 2 || path[1] != ':' && path[1] != '|' || path[0]|0x20 < 'a' || path[0]|0x20 > 'z' || len(path) > 2 && path[2] != '/' {
		return path
	}
	return strings.ToUpper(path[:1]) + ":" + path[2:]
}
