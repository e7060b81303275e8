package config

import (
	"net/url"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// escaping is a way to escape a JSON string (RFC 8259, section 7).
type escaping struct {
	ascii  bool   // \uXXXX for non-ASCII characters
	upper  bool   // hexadecimal digits A to F
	slash  bool   // \/
	hidden string // ASCII characters as \uXXXX
}

// maxEscaped is in bytes. A longer secret is a file, for which the first ways suffice.
const maxEscaped = 4 << 10

var escapings = sync.OnceValue(func() (all []escaping) {
	for _, hidden := range []string{"", "<>&", "<>&='", "<>&'\"+`"} { // Go/Ruby/PHP, Gson, .NET
		for _, ascii := range []bool{false, true} {
			for _, upper := range []bool{false, true} {
				for _, slash := range []bool{false, true} {
					all = append(all, escaping{ascii, upper, slash, hidden})
				}
			}
		}
	}
	return all
})

// addForms adds the spellings of a secret. One that is a secret itself keeps its own.
func addForms(forms map[string]string, secret string) {
	add := func(form string) {
		if forms[form] == "" {
			forms[form] = secret
		}
	}
	forms[secret] = secret
	quoted := strconv.Quote(secret)
	add(quoted[1 : len(quoted)-1])
	add(url.QueryEscape(secret))
	add(url.PathEscape(secret))
	plain := 0
	for plain < len(secret) && unescaped(secret[plain]) {
		plain++
	}
	if plain == len(secret) {
		return
	}
	ways := escapings()
	if len(secret) > maxEscaped {
		ways = ways[:4]
	}
	// Only escapings that differ for this secret count. Many tools return JSON within a
	// text, which another encoder may escape again.
	differ := make(map[string]escaping)
	for _, e := range ways {
		differ[e.escape(secret)] = e
	}
	for once := range differ {
		add(once)
		for _, e := range differ {
			add(e.escape(once))
		}
	}
}

// unescaped reports whether no encoder escapes a character.
func unescaped(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == '~'
}

func (e escaping) escape(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	for i, w := 0, 0; i < len(s); i += w {
		plain := i
		for i < len(s) && unescaped(s[i]) {
			i++
		}
		b.WriteString(s[plain:i])
		if i == len(s) {
			break
		}
		var r rune
		r, w = utf8.DecodeRuneInString(s[i:])
		if short := strings.IndexRune("\"\\\b\f\n\r\t", r); short >= 0 && !strings.ContainsRune(e.hidden, r) {
			b.WriteByte('\\')
			b.WriteByte(`"\bfnrt`[short])
			continue
		}
		switch {
		case r == '/' && e.slash:
			b.WriteString(`\/`)
		case r == utf8.RuneError && w == 1 && !e.ascii:
			b.WriteByte(s[i])
		case r > 0xffff && e.ascii:
			r -= 0x10000
			e.hex(&b, 0xd800+r>>10)
			e.hex(&b, 0xdc00+r&0x3ff)
		case r < ' ', r >= utf8.RuneSelf && e.ascii, strings.ContainsRune(e.hidden, r),
			e.hidden != "" && (r == '\u2028' || r == '\u2029'):
			e.hex(&b, r)
		default:
			b.WriteString(s[i : i+w])
		}
	}
	return b.String()
}

func (e escaping) hex(b *strings.Builder, r rune) {
	digits := "0123456789abcdef"
	if e.upper {
		digits = "0123456789ABCDEF"
	}
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(digits[r>>shift&15])
	}
}
