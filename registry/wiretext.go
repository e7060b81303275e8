package registry

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of the text of one exchange, and of one header, in bytes.
const (
	MaxWire       = 8 << 10
	maxHeaderLine = 1 << 10
)

// WirePart is the role of a line in a wire text. A wire text describes an exchange on the
// wire, in addition to its params and result: the ids on both sides and the HTTP headers.
// It is compact text without pointers, since the traffic journal keeps thousands. Headers
// with secret names lose their values here; callers must redact secret values elsewhere.
type WirePart byte

// Values of [WirePart]. HTTP parts begin with the request or status line.
const (
	ClientID     WirePart = 'i' // as the client sent it
	ServerID     WirePart = 's' // as sent to the server
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

// AppendWire appends a line of words.
func AppendWire(text []byte, p WirePart, words ...string) []byte {
	return addWords(text, p, " ", words...)
}

// AppendWord appends a word without line breaks: a JSON id, or a name of Goblin's.
func AppendWord[T ~string | ~[]byte](text []byte, p WirePart, word T) []byte {
	if len(word) == 0 || len(text)+len(word)+2 > MaxWire || len(word) > maxHeaderLine {
		return text
	}
	return append(append(append(text, byte(p)), word...), '\n')
}

// AppendHeaders appends headers, without values of secret ones and without queries of
// addresses. It omits long values: callers do not find a secret whose end is cut.
func AppendHeaders(text []byte, p WirePart, headers map[string][]string) []byte {
	for name, values := range headers {
		for _, v := range values {
			switch {
			case isSecretHeader(name):
				v = hiddenValue
			case len(v) > maxHeaderLine:
				v = "[" + strconv.Itoa(len(v)) + " bytes]"
			case isAddressHeader(name):
				v, _, _ = strings.Cut(v, "?")
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

var secretWords = []string{"auth", "cookie", "token", "secret", "key", "passw", "session", "credential", "signature", "jwt"}

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

// isSecretHeader reports whether a header is secret, judged by its name.
func isSecretHeader(name string) bool {
	secret, known := commonHeaders[name]
	if !known {
		secret = containsSecretWord(name)
	}
	return secret
}

func isAddressHeader(name string) bool {
	return strings.EqualFold(name, "Location") || strings.EqualFold(name, "Referer") || strings.EqualFold(name, "Content-Location")
}

func containsSecretWord(name string) bool {
	if strings.EqualFold(name, "WWW-Authenticate") { // a challenge, not a credential
		return false
	}
	var room [64]byte
	lower := room[:0]
	for _, c := range []byte(name) {
		switch {
		case c >= utf8.RuneSelf:
			return true // invalid (RFC 9110, section 5.1)
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

// WireLines returns the lines of a part, sorted except for the first.
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

// WireID returns the only line of a part, or "".
func WireID(text []byte, p WirePart) string {
	if all := WireLines(text, p); len(all) > 0 {
		return all[0]
	}
	return ""
}
