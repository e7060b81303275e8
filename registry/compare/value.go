package compare

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"goblin/registry/rawjson"
)

// value is a parsed JSON value. Values with equal hashes are equal: the seed is secret,
// so that no input can be built with equal hashes.
type value struct {
	kind byte // '{', '[', '"', '0', 't', 'f' or 'n'
	// open reports that the text ended inside of the container.
	open       bool
	ignored    bool
	occurrence int // of a member whose name is not unique: 2, 3, …
	// ignoredBelow is the number of ignored values inside.
	ignoredBelow int
	name         string // of a member
	text         []byte
	kids         []value
	hash         uint64
}

var seed = maphash.MakeSeed()

// errTooLarge is the error of a text with more than MaxValues values.
var errTooLarge = fmt.Errorf("more than %d JSON values", MaxValues)

type parser struct {
	text   []byte
	ignore Patterns
	count  int
	cut    bool
}

// parse parses a JSON text. If cut is true, the text may end anywhere.
func parse(text []byte, ignore Patterns, cut bool) (*value, error) {
	count := 0
	v, err := parseAt(text, ignore, ignore.start(), cut, &count)
	if err == nil && v == nil {
		err = errors.New("no complete JSON value")
	}
	return v, err
}

// parsePart parses the member name of the root. It returns nil if a cut text has no
// complete value. count is the number of values of all parts.
func parsePart(text []byte, ignore Patterns, name string, cut bool, count *int) (*value, error) {
	v, err := parseAt(text, ignore, ignore.member(ignore.start(), name), cut, count)
	if v != nil {
		v.name = name
	}
	return v, err
}

func parseAt(text []byte, ignore Patterns, at states, cut bool, count *int) (*value, error) {
	if err := rawjson.Valid(text); err == nil {
		cut = false
	} else if !cut {
		return nil, err
	}
	p := parser{text: text, ignore: ignore, cut: cut, count: *count}
	v, end, err := p.value(rawjson.AfterSpace(text, 0), at, 0)
	if *count = p.count; err != nil || v == nil {
		return nil, err
	}
	if cut && !v.open && rawjson.AfterSpace(text, end) < len(text) {
		return nil, errors.New("invalid JSON")
	}
	return v, nil
}

// addKid appends a value to a container.
func (v *value) addKid(kid value) {
	v.kids = append(v.kids, kid)
	if v.ignoredBelow += kid.ignoredBelow; kid.ignored {
		v.ignoredBelow++
	}
}

// value parses the value at i. It returns nil if the text ends before the value does and
// the value is no container.
func (p *parser) value(i int, at states, depth int) (*value, int, error) {
	if p.count++; p.count > MaxValues {
		return nil, i, errTooLarge
	}
	if i >= len(p.text) {
		return nil, i, p.atEnd()
	}
	v := &value{kind: p.text[i], ignored: p.ignore.matches(at)}
	var err error
	var end int
	switch v.kind {
	case '{', '[':
		if depth > rawjson.MaxDepth {
			return nil, i, errors.New("nested too deeply")
		}
		end, err = p.container(v, i, at, depth)
	case '"':
		end = rawjson.AfterString(p.text, i)
		if p.cut && (end-i < 2 || p.text[end-1] != '"' || isCutString(p.text[i:end])) {
			return p.cutString(v, i), len(p.text), nil
		}
		s, _ := rawjson.String(p.text[i:end])
		v.hash = hashOf('"', s)
	default:
		for end = i; end < len(p.text) && !strings.ContainsRune(",]} \t\r\n", rune(p.text[end])); {
			end++
		}
		if end == len(p.text) && p.cut || end == i {
			return nil, len(p.text), p.atEnd()
		}
		if c := v.kind; c == '-' || c >= '0' && c <= '9' {
			v.kind = '0'
			v.hash = hashOf('0', Number(string(p.text[i:end])))
		} else {
			v.hash = hashOf('l', string(p.text[i:end]))
		}
	}
	if err != nil {
		return nil, end, err
	}
	v.text = p.text[i:min(end, len(p.text))]
	return v, end, nil
}

// cutString sets the known beginning of a string, without a partial escape or character.
func (p *parser) cutString(v *value, i int) *value {
	known := p.text[i+1:]
	// Any escape near the end may be incomplete, also the first of a surrogate pair.
	for from := max(len(known)-maxEscape, 0); from < len(known); {
		at := bytes.LastIndexByte(known[from:], '\\')
		if at < 0 {
			break
		}
		known = known[:from+at]
	}
	text := append([]byte{'"'}, known...)
	for len(text) > 1 && !utf8.Valid(text[max(len(text)-utf8.UTFMax, 0):]) {
		text = text[:len(text)-1]
	}
	v.open, v.text = true, append(text, '"')
	s, _ := rawjson.String(v.text)
	v.hash = hashOf('p', s)
	return v
}

// maxEscape is the length of the longest escape in a string, a pair of surrogates.
const maxEscape = 12

// isCutString reports whether the last quote of a string is escaped.
func isCutString(s []byte) bool {
	n := 0
	for i := len(s) - 2; i > 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

func (p *parser) atEnd() error {
	if p.cut {
		return nil
	}
	return errors.New("unexpected end of JSON")
}

// container parses an object or array. It sets open if the text ends inside.
func (p *parser) container(v *value, i int, at states, depth int) (int, error) {
	closing := v.kind + 2 // in ASCII, "}" is "{"+2 and "]" is "["+2
	seen := names{}
	var err error
	for i = rawjson.AfterSpace(p.text, i+1); ; {
		if i >= len(p.text) {
			v.open = true
			break
		}
		if p.text[i] == closing {
			i++
			break
		}
		var kid *value
		if v.kind == '{' {
			kid, i, err = p.member(i, at, depth, &seen)
		} else {
			kid, i, err = p.value(i, p.ignore.index(at, len(v.kids)), depth+1)
		}
		if err != nil {
			return i, err
		}
		if kid == nil {
			v.open = true
			break
		}
		v.addKid(*kid)
		if kid.open {
			v.open = true
			break
		}
		if i = rawjson.AfterSpace(p.text, i); i < len(p.text) && p.text[i] == ',' {
			i = rawjson.AfterSpace(p.text, i+1)
		} else if i < len(p.text) && p.text[i] != closing {
			return i, errors.New("invalid JSON")
		}
	}
	v.rehash()
	return i, nil
}

// names counts the members of one object by name.
type names struct{ count map[string]int }

func (n *names) add(name string) int {
	if n.count == nil {
		n.count = make(map[string]int)
	}
	n.count[name]++
	return n.count[name]
}

func (p *parser) member(i int, at states, depth int, seen *names) (*value, int, error) {
	if p.text[i] != '"' {
		return nil, i, errors.New("invalid JSON")
	}
	end := rawjson.AfterString(p.text, i)
	if end >= len(p.text) || end-i < 2 {
		return nil, len(p.text), p.atEnd()
	}
	name, _ := rawjson.String(p.text[i:end])
	if i = rawjson.AfterSpace(p.text, end); i >= len(p.text) {
		return nil, i, p.atEnd()
	}
	if p.text[i] != ':' {
		return nil, i, errors.New("invalid JSON")
	}
	kid, end, err := p.value(rawjson.AfterSpace(p.text, i+1), p.ignore.member(at, name), depth+1)
	if kid != nil {
		kid.name = name
		if n := seen.add(name); n > 1 {
			kid.occurrence = n
		}
	}
	return kid, end, err
}

// rehash computes the hash of a container. The order of members does not count, except
// between members with equal names. Ignored values do not count.
func (v *value) rehash() {
	if v.kind == '[' {
		var h maphash.Hash
		h.SetSeed(seed)
		_ = h.WriteByte('[')
		for i := range v.kids {
			if !v.kids[i].ignored {
				writeUint(&h, v.kids[i].hash)
			}
		}
		v.hash = h.Sum64()
		return
	}
	sum := hashOf('{', "")
	for i := range v.kids {
		if k := &v.kids[i]; !k.ignored {
			var h maphash.Hash
			h.SetSeed(seed)
			_, _ = h.WriteString(k.name)
			writeUint(&h, uint64(k.occurrence))
			writeUint(&h, k.hash)
			sum += h.Sum64()
		}
	}
	v.hash = sum
}

func writeUint(h *maphash.Hash, n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	_, _ = h.Write(b[:])
}

func hashOf(kind byte, text string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_ = h.WriteByte(kind)
	_, _ = h.WriteString(text)
	return h.Sum64()
}

// Number returns a text that equal JSON numbers share: 1, 1.0 and 10e-1 become "1e0". The
// digits are exact.
func Number(text string) string {
	digits, sign := text, ""
	if strings.HasPrefix(digits, "-") {
		digits, sign = digits[1:], "-"
	}
	exponent := int64(0)
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		n, err := strconv.ParseInt(digits[i+1:], 10, 64)
		if err != nil || n > math.MaxInt64/2 || n < math.MinInt64/2 {
			if strings.Trim(digits[:i], "0.") == "" {
				return "0"
			}
			return strings.ToLower(text) // compared as text
		}
		digits, exponent = digits[:i], n
	}
	if whole, fraction, ok := strings.Cut(digits, "."); ok {
		digits, exponent = whole+fraction, exponent-int64(len(fraction))
	}
	digits = strings.TrimLeft(digits, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	return sign + short + "e" + strconv.FormatInt(exponent+int64(len(digits)-len(short)), 10)
}
