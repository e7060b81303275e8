package replay

import (
	"regexp"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/recording"
)

// anyHidden is the placeholder of a secret without a hash. Unlike others, it need not be
// the same text everywhere.
const anyHidden = "[hidden]"

func hasHidden(text []byte) bool { return recording.HasPlaceholder(string(text)) }

// maxSecrets is the number of placeholders whose text is known.
const maxSecrets = 10_000

// secrets maps placeholders to the texts that the client sent for them. Its owner must
// hold a lock.
type secrets map[string]string

// matchText reports whether text is want with a text for each placeholder. Placeholders
// with a known text match only that; found gets those of new ones.
func (known secrets) matchText(want, text string, found secrets) bool {
	if want == text || !recording.HasPlaceholder(want) {
		return want == text
	}
	var pattern strings.Builder
	pattern.WriteString(`(?s)\A`)
	var names []string
	rest := want
	for {
		start, end := recording.Placeholder(rest)
		if start < 0 {
			break
		}
		name := rest[start:end]
		pattern.WriteString(regexp.QuoteMeta(rest[:start]))
		rest = rest[end:]
		value, ok := known[name]
		if !ok {
			value, ok = found[name]
		}
		if ok {
			pattern.WriteString("(" + regexp.QuoteMeta(value) + "|" + regexp.QuoteMeta(name) + ")")
		} else {
			pattern.WriteString("(.+?)")
		}
		names = append(names, name)
	}
	pattern.WriteString(regexp.QuoteMeta(rest) + `\z`)
	re, err := regexp.Compile(pattern.String())
	if err != nil { // too long
		return false
	}
	parts := re.FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	for i, name := range names {
		value := parts[i+1]
		if before, ok := found[name]; ok && before != value {
			return false
		}
		if _, ok := known[name]; !ok && name != anyHidden && value != name {
			found[name] = value
		}
	}
	return true
}

func (known secrets) add(found secrets) {
	for name, value := range found {
		if len(known) < maxSecrets {
			known[name] = value
		}
	}
}

// restore replaces placeholders in the JSON text of a message by the client's texts.
func (known secrets) restore(text []byte) []byte {
	if len(known) == 0 || !hasHidden(text) {
		return text
	}
	var out []byte
	rest := string(text)
	for {
		start, end := recording.Placeholder(rest)
		if start < 0 {
			return append(out, rest...)
		}
		out = append(out, rest[:start]...)
		if value, ok := known[rest[start:end]]; ok {
			quoted := rawjson.Quote(value)
			out = append(out, quoted[1:len(quoted)-1]...)
		} else {
			out = append(out, rest[start:end]...)
		}
		rest = rest[end:]
	}
}
