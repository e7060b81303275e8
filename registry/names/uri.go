package names

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Scheme is the scheme of most listed URIs.
const Scheme = "mcp://"

// Schemes of apps and skills. Listed URIs keep them, followed by the server, because
// clients recognize both by the scheme.
const (
	appScheme   = "ui://"
	SkillScheme = "skill://"
)

// NativeSchemes lists the schemes that listed URIs keep.
var NativeSchemes = [...]string{appScheme, SkillScheme}

// IsApp reports whether a server's URI belongs to an app.
func IsApp(original string) bool { return strings.HasPrefix(original, appScheme) }

// NativeScheme returns the scheme that a URI keeps when listed, or "".
func NativeScheme(original string) string {
	for _, s := range NativeSchemes {
		if strings.HasPrefix(original, s) {
			return s
		}
	}
	return ""
}

// NamespacedURI returns the listed form of a server's URI with namespace: uri, and of
// apps and skills with any namespace. It keeps the hierarchy of folders and files.
func NamespacedURI(server, original string) string {
	kept := NativeScheme(original)
	if kept == "" {
		return Scheme + server + "/" + original
	}
	return kept + server + "/" + original[len(kept):]
}

// OwnURIs replaces a server's listed URIs after quotation marks in JSON by its own URIs.
// This includes JSON that is quoted inside of texts.
func OwnURIs(text []byte, server string) []byte {
	text = bytes.ReplaceAll(text, []byte(`"`+Scheme+server+"/"), []byte(`"`))
	for _, kept := range NativeSchemes {
		text = bytes.ReplaceAll(text, []byte(`"`+kept+server+"/"), []byte(`"`+kept))
	}
	return text
}

// SplitURI splits mcp://server/rest at the first slash, and ui://server/path and
// skill://server/path into server and ui://path or skill://path. ours is false for other
// URIs. Malformed ones have an empty server or rest. The server may not exist: a server's
// own app may have the same form.
func SplitURI(uri string) (server, rest string, ours bool) {
	if rest, ours = strings.CutPrefix(uri, Scheme); ours {
		server, rest, _ = strings.Cut(rest, "/")
		return server, rest, true
	}
	kept := NativeScheme(uri)
	if kept == "" {
		return "", "", false
	}
	if server, rest, ours = strings.Cut(uri[len(kept):], "/"); !ours {
		return "", "", false
	}
	return server, kept + rest, true
}

// Lengths of suffixes with separators, in bytes.
const (
	SuffixLen     = 9
	longSuffixLen = 2 * SuffixLen
)

// HashSuffixes returns suffixes that depend only on of: 8 hex digits, or twice 8 for
// names where collisions could be searched for.
func HashSuffixes(of string, separator byte) (short, long string) {
	h := sha256.Sum256([]byte(of))
	b := make([]byte, 0, longSuffixLen)
	b = hex.AppendEncode(append(b, separator), h[:4])
	b = hex.AppendEncode(append(b, separator), h[4:8])
	return string(b[:SuffixLen]), string(b)
}

// HasHashSuffix reports whether a name looks suffixed.
func HasHashSuffix(s string, separator byte) bool {
	at := len(s) - SuffixLen
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

// IsFlatByte reports whether flat ids keep a byte.
func IsFlatByte(c byte) bool { return flatByte[c] }

// FlatID returns the plain flat id of a server's URI. Every run of bytes outside of
// [A-Za-z0-9.~-] becomes one underscore. Only the registry's tables can reverse it.
func FlatID(server, original string) string {
	return server + "_" + Flatten(original)
}

// Flatten replaces bytes that are invalid in flat ids and collapses underscores.
func Flatten(s string) string { return string(AppendFlat(nil, s)) }

// AppendFlat appends Flatten(s) to b.
func AppendFlat(b []byte, s string) []byte {
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

// FlatKey collapses runs of underscores, so that every spelling of a flat id becomes the
// same key. ok is false if id cannot be a flat id.
func FlatKey(id string) (key string, ok bool) {
	for i := 0; i < len(id); i++ {
		if !flatByte[id[i]] {
			return "", false
		}
	}
	if strings.Contains(id, "__") {
		id = Flatten(id)
	}
	return id, true
}
