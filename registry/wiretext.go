// Wire writes down how an exchange went over the wire, beside its params and
// result: the ids that it had on both sides, and what HTTP said where that carried it.
//
// It is text, short and without pointers, since records of traffic are kept by the
// thousand; writing it allocates nothing but the text. Headers that hold secrets by their
// name lose their values here, before anything is kept; secrets known by their value are
// the caller's to hide. A leaf: it knows no transport.

package registry

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Most is how many bytes are kept of an exchange, and mostLine of one header.
const (
	MaxWire       = 8 << 10
	maxHeaderLine = 1 << 10
)

// WirePart names the role of a line of the text.
type WirePart byte

// The parts. That of HTTP begin with the line of the request, or of the status.
const (
	ClientID     WirePart = 'i' // as the client wrote it: JSON
	ServerID     WirePart = 's' // as the server got it
	Transport    WirePart = 't' // of the client
	FromClient   WirePart = 'a'
	WireToClient WirePart = 'b'
	WireToServer WirePart = 'c'
	FromServer   WirePart = 'd'
)

const (
	hiddenValue = "[hidden]"
	cutMark     = "…"
)

// AppendWire adds a line of some words.
func AppendWire(text []byte, p WirePart, words ...string) []byte {
	return addWords(text, p, " ", words...)
}

// AppendWord adds a word without line breaks: an id as it stands in JSON, or a name of ours.
func AppendWord[T ~string | ~[]byte](text []byte, p WirePart, word T) []byte {
	if len(word) == 0 || len(text)+len(word)+2 > MaxWire || len(word) > maxHeaderLine {
		return text
	}
	return append(append(append(text, byte(p)), word...), '\n')
}

// AppendHeaders adds headers.
func AppendHeaders(text []byte, p WirePart, headers map[string][]string) []byte {
	for name, values := range headers {
		for _, v := range values {
			if IsSecretHeader(name) {
				v = hiddenValue
			}
			if v == "" {
				text = AppendWire(text, p, name)
			} else {
				text = addWords(text, p, ": ", name, v)
			}
		}
	}
	return text
}

// addWords adds a line of parts with something between them, if there is room.
func addWords(text []byte, p WirePart, between string, parts ...string) []byte {
	size := len(text) + len("p\n")
	for _, s := range parts {
		size += min(len(s), maxHeaderLine) + len(cutMark) + len(between)
	}
	if size > MaxWire {
		return text
	}
	text = append(text, byte(p))
	for i, s := range parts {
		if i > 0 {
			text = append(text, between...)
		}
		text = line(text, s)
	}
	return append(text, '\n')
}

// line adds a text of one line.
func line(text []byte, s string) []byte {
	cut := len(s) > maxHeaderLine
	s = s[:min(len(s), maxHeaderLine)]
	from := len(text)
	text = append(text, s...)
	for i := bytes.IndexByte(text[from:], '\n'); i >= 0; i = bytes.IndexByte(text[from:], '\n') {
		from += i
		text[from] = ' '
	}
	if cut {
		text = append(text, cutMark...)
	}
	return text
}

// secretWords are parts of the names of headers with secret values.
var secretWords = []string{"auth", "cookie", "token", "secret", "key", "passw", "session", "credential", "signature", "jwt"}

// commonHeaders maps the names of common headers to whether their values are secret.
var commonHeaders = func() map[string]bool {
	all := make(map[string]bool)
	for _, name := range []string{
		"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Connection", "Content-Length", "Content-Type", "Date", "Origin", "User-Agent",
		"Authorization", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id",
	} {
		all[name] = containsSecretWord(name)
	}
	return all
}()

// IsSecretHeader reports whether the value of a header is one by its name.
func IsSecretHeader(name string) bool {
	secret, known := commonHeaders[name]
	if !known {
		secret = containsSecretWord(name)
	}
	return secret
}

// containsSecretWord is IsSecretHeader without the table of common headers.
func containsSecretWord(name string) bool {
	if strings.EqualFold(name, "WWW-Authenticate") { // a question, not an answer
		return false
	}
	var room [64]byte
	lower := room[:0]
	for _, c := range []byte(name) {
		switch {
		case c >= utf8.RuneSelf:
			return true // no name of a header (RFC 9110, section 5.1), so nobody knows
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		lower = append(lower, c)
	}
	for _, t := range secretWords {
		if bytes.Contains(lower, []byte(t)) {
			return true
		}
	}
	return false
}

// WireLines are those of a part, sorted but for the first of a part of HTTP.
func WireLines(text []byte, p WirePart) (all []string) {
	for l := range strings.Lines(string(text)) {
		if l[0] == byte(p) && strings.HasSuffix(l, "\n") {
			all = append(all, l[1:len(l)-1])
		}
	}
	if len(all) > 1 {
		slices.Sort(all[1:])
	}
	return all
}

// WireID is a line of a part that has only one, "" for none.
func WireID(text []byte, p WirePart) string {
	if all := WireLines(text, p); len(all) > 0 {
		return all[0]
	}
	return ""
}
