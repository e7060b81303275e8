package replay

import (
	"errors"
	"strings"
	"unicode/utf8"

	"goblin/registry/rawjson"
	"goblin/registry/recording"
)

// anyHidden is the placeholder of a secret without a hash. Unlike others, it need not be
// the same text everywhere.
const anyHidden = "[hidden]"

func hasHidden(text []byte) bool { return recording.HasPlaceholder(string(text)) }

const (
	// maxSecrets is the number of placeholders whose text is known. maxSecret is the size of
	// a text that is kept, in bytes.
	maxSecrets = 10_000
	maxSecret  = 16 << 10
	// maxWork limits the comparison of a request with recorded ones, in bytes.
	maxWork = 256 << 20
	// maxRestored limits what the client's texts add to a recorded message, in bytes.
	maxRestored = 16 << 20
)

var errRestored = errors.New("the client's texts in place of hidden secrets make the message too large")

// secrets maps placeholders to the texts that the client sent for them. Its owner must
// hold a lock.
type secrets map[string]string

func (known secrets) add(found secrets) {
	for name, value := range found {
		if len(known) < maxSecrets && len(value) <= maxSecret {
			known[name] = strings.Clone(value)
		}
	}
}

// restore replaces placeholders in the JSON text of a message by the client's texts.
func (known secrets) restore(text []byte) ([]byte, error) {
	if len(known) == 0 || !hasHidden(text) {
		return text, nil
	}
	var out []byte
	rest := string(text)
	for {
		start, end := recording.Placeholder(rest)
		if start < 0 {
			return append(out, rest...), nil
		}
		out = append(out, rest[:start]...)
		if value, ok := known[rest[start:end]]; ok {
			quoted := rawjson.Quote(value)
			out = append(out, quoted[1:len(quoted)-1]...)
		} else {
			out = append(out, rest[start:end]...)
		}
		rest = rest[end:]
		if len(out)+len(rest) > len(text)+maxRestored {
			return nil, errRestored
		}
	}
}

// textMatcher matches texts against recorded ones with placeholders. It stops when work
// is used up.
type textMatcher struct {
	known, found secrets
	work         *int // bytes that may still be compared
}

// spend reports whether n more bytes may be compared.
func (m *textMatcher) spend(n int) bool {
	*m.work = max(0, *m.work-n-1)
	return *m.work > 0
}

// part is a piece of a recorded text: a placeholder or other text.
type part struct {
	text   string
	hidden bool
}

func partsOf(want string) (parts []part) {
	for {
		start, end := recording.Placeholder(want)
		if start < 0 {
			start, end = len(want), len(want)
		}
		if start > 0 {
			parts = append(parts, part{want[:start], false})
		}
		if want = want[start:]; want == "" {
			return parts
		}
		parts = append(parts, part{want[:end-start], true})
		want = want[end-start:]
	}
}

// match reports whether text is want with a text for each placeholder. Placeholders with
// a known text match that or themselves. New ones match one or more characters; found
// gets their texts.
func (m *textMatcher) match(want, text string) bool {
	if !m.spend(min(len(want), len(text))) {
		return false
	}
	if want == text || !hasHidden([]byte(want)) {
		return want == text
	}
	found := secrets{}
	parts := partsOf(want)
	parts, text, ok := m.skipFixed(parts, text, found)
	for ok && len(parts) > 0 {
		parts, text, ok = m.matchNew(parts, text, found)
	}
	if !ok || text != "" {
		return false
	}
	for name, value := range found {
		if value != name {
			m.found[name] = value
		}
	}
	return true
}

// skipFixed matches the parts before the first new placeholder with the start of text. It
// returns the rest of both.
func (m *textMatcher) skipFixed(parts []part, text string, found secrets) (restParts []part, rest string, ok bool) {
	for i, p := range parts {
		value := p.text
		if p.hidden {
			if value, ok = m.value(p.text, found); !ok {
				return parts[i:], text, true
			}
			if len(p.text) > len(value) && strings.HasPrefix(text, p.text) || !strings.HasPrefix(text, value) {
				value = p.text
			}
		}
		if !m.spend(min(len(value), len(text))) || !strings.HasPrefix(text, value) {
			return nil, "", false
		}
		text = text[len(value):]
	}
	return nil, text, true
}

func (m *textMatcher) value(name string, found secrets) (value string, ok bool) {
	for _, texts := range []secrets{m.known, m.found, found} {
		if value, ok = texts[name]; ok {
			return value, true
		}
	}
	return "", false
}

// matchNew matches a new placeholder and the fixed parts that follow it. The shortest
// text counts.
func (m *textMatcher) matchNew(parts []part, text string, found secrets) (restParts []part, rest string, ok bool) {
	name, parts := parts[0].text, parts[1:]
	_, size := utf8.DecodeRuneInString(text)
	for at := size; at > 0 && at <= len(text); {
		switch {
		case len(parts) == 0:
			at = len(text)
		case !parts[0].hidden:
			next := strings.Index(text[at:], parts[0].text)
			if next < 0 {
				m.spend(len(text) - at)
				return nil, "", false
			}
			m.spend(next)
			at += next
		}
		if name != anyHidden {
			found[name] = text[:at]
		}
		restParts, rest, ok = m.skipFixed(parts, text[at:], found)
		if ok && (len(restParts) > 0 || rest == "") {
			return restParts, rest, true
		}
		if !m.spend(0) || at == len(text) {
			break
		}
		_, size = utf8.DecodeRuneInString(text[at:])
		at += size
	}
	delete(found, name)
	return nil, "", false
}
