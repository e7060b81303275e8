package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const scheme = "mcp://"

// The schemes of apps and skills stay in front when their URIs are listed, with the
// server behind them: hosts tell both by the scheme.
const (
	appScheme   = "ui://"
	skillScheme = "skill://"
)

var keptSchemes = [...]string{appScheme, skillScheme}

// IsApp reports whether a server's URI is that of an app.
func IsApp(original string) bool { return strings.HasPrefix(original, appScheme) }

// keeps returns the scheme that a URI keeps when it is listed, "" for none.
func keeps(original string) string {
	for _, s := range keptSchemes {
		if strings.HasPrefix(original, s) {
			return s
		}
	}
	return ""
}

// namespaced returns the URI mode's listed form of a server's URI.
func namespaced(server, original string) string {
	kept := keeps(original)
	if kept == "" {
		return scheme + server + "/" + original
	}
	return kept + server + "/" + original[len(kept):]
}

// splitNamespaced takes mcp://server/rest apart at the first slash, and
// ui://server/path and skill://server/path into server and ui://path. ours is false
// for other URIs. Malformed ones have an empty server or rest, and whether there is
// such a server is not known: a server's own app may have the same form.
func splitNamespaced(uri string) (server, rest string, ours bool) {
	if rest, ours = strings.CutPrefix(uri, scheme); ours {
		server, rest, _ = strings.Cut(rest, "/")
		return server, rest, true
	}
	kept := keeps(uri)
	if kept == "" {
		return "", "", false
	}
	if server, rest, ours = strings.Cut(uri[len(kept):], "/"); !ours {
		return "", "", false
	}
	return server, kept + rest, true
}

// Lengths of tails with their separators.
const (
	tailLen     = 9
	longTailLen = 2 * tailLen
)

// tails tell apart names that would else be one, by nothing but what they are
// made from: 8 hex digits, or twice 8 where those could be looked for.
func tails(of string, separator byte) (short, long string) {
	h := sha256.Sum256([]byte(of))
	b := make([]byte, 0, longTailLen)
	b = hex.AppendEncode(append(b, separator), h[:4])
	b = hex.AppendEncode(append(b, separator), h[4:8])
	return string(b[:tailLen]), string(b)
}

// endsInTail reports whether a name looks like one with a tail.
func endsInTail(s string, separator byte) bool {
	at := len(s) - tailLen
	if at < 0 || s[at] != separator {
		return false
	}
	for i := at + 1; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// trimControl drops what URL parsers drop at both ends.
func trimControl(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}

// Norm returns what URL parsers of the WHATWG kind (pydantic's AnyUrl, Rust's
// url) make of a URI with a scheme that they do not know: outer white space
// and inner tabs and line breaks dropped, dot segments resolved, and what may
// not stand in a URI percent-encoded. Scheme and host stay as they are.
// Clients that parse the URIs they are given send this form back.
func Norm(uri string) string {
	if clean(uri) {
		return uri
	}
	uri = trimControl(uri)
	if strings.ContainsAny(uri, "\t\r\n") {
		uri = strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(uri)
	}
	head, rest := uri, ""
	if i := strings.Index(uri, "://"); i >= 0 {
		at := i + len("://")
		if n := strings.IndexAny(uri[at:], "/?#"); n >= 0 {
			head, rest = uri[:at+n], uri[at+n:]
		}
	}
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	path, query, hasQuery := strings.Cut(rest, "?")
	b := make([]byte, 0, len(uri)+len(uri)/4)
	b = append(b, head...)
	b = appendPath(b, path)
	if hasQuery {
		b = appendEncoded(append(b, '?'), query, "\"<>")
	}
	if hasFragment {
		b = appendEncoded(append(b, '#'), fragment, "\"<>`")
	}
	return string(b)
}

// clean reports whether nothing in uri can be changed by [Norm], without
// false positives; most URIs pass.
func clean(uri string) bool {
	for i := 0; i < len(uri); i++ {
		switch c := uri[i]; {
		case c <= ' ', c > '~', c == '"', c == '<', c == '>', c == '`', c == '{', c == '}':
			return false
		case c == '/' && i+1 < len(uri) && (uri[i+1] == '.' || uri[i+1] == '%'):
			return false
		}
	}
	return true
}

func appendPath(b []byte, path string) []byte {
	if path == "" {
		return b
	}
	start := len(b)
	rest, more := path[1:], true // path begins with a slash
	for more {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch dots(segment) {
		case 2:
			at := len(b)
			for at > start && b[at-1] != '/' {
				at--
			}
			b = b[:max(start, at-1)]
			fallthrough
		case 1:
			if !more {
				b = append(b, '/')
			}
		default:
			b = appendEncoded(append(b, '/'), segment, "\"<>`{}")
		}
	}
	return b
}

// dots returns 1 for a segment that means ".", 2 for "..", else 0.
func dots(s string) int {
	n := 0
	for ; s != ""; n++ {
		switch {
		case s[0] == '.':
			s = s[1:]
		case len(s) >= 3 && s[0] == '%' && s[1] == '2' && s[2]|0x20 == 'e':
			s = s[3:]
		default:
			return 0
		}
	}
	if n > 2 {
		return 0
	}
	return n
}

// appendEncoded percent-encodes the bytes of s that are no graphic ASCII and
// those in also.
func appendEncoded(b []byte, s, also string) []byte {
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		if c := s[i]; c > ' ' && c <= '~' && strings.IndexByte(also, c) < 0 {
			b = append(b, c)
		} else {
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return b
}

// unescape resolves percent triplets; what is none stays.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi|lo < 16 {
				b = append(b, hi<<4|lo)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// unhex is the value of a hex digit, more than 15 for other bytes.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 0xff
}

// flatByte marks the bytes that stand for themselves in flat ids.
var flatByte = func() (t [256]bool) {
	for c := range t {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '.', c == '_', c == '~', c == '-':
			t[c] = true
		}
	}
	return t
}()

// FlatID returns the plain flat id of a server's URI: every run of bytes
// outside of [A-Za-z0-9.~-] is one underscore. It does not say which URI it
// came from; that takes the registry's tables.
func FlatID(server, original string) string {
	return server + "_" + flatten(original)
}

// flatten spells s with the bytes of flat ids, runs of underscores collapsed.
func flatten(s string) string { return string(appendFlat(nil, s)) }

func appendFlat(b []byte, s string) []byte {
	under := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !flatByte[c] {
			c = '_'
		}
		if c != '_' || !under {
			b = append(b, c)
		}
		under = c == '_'
	}
	return b
}

// flatKey collapses runs of underscores, which makes every spelling of a flat
// id the one that the tables have; ok is false for what cannot be a flat id.
func flatKey(id string) (key string, ok bool) {
	for i := 0; i < len(id); i++ {
		if !flatByte[id[i]] {
			return "", false
		}
	}
	if strings.Contains(id, "__") {
		id = flatten(id)
	}
	return id, true
}
