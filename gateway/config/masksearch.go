package config

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// maxWindow is in bytes. Distances fit into a byte.
const maxWindow = 128

// matcher finds any of many patterns in a text. It is immutable. The algorithm is by Wu
// and Manber, "A Fast Algorithm for Multi-Pattern Searching" (TR 94-17, 1994).
//
// A window as wide as the shortest pattern moves over the text. The last two bytes in the
// window select a distance by which it can move without missing a pattern. At distance 0
// the matcher compares the patterns with these two bytes at this place.
//
// All logs and recorded messages pass a matcher, and nearly all contain no pattern.
// strings.Replacer copies each text and takes 2 to 10 times as long for texts without a
// pattern. It also leaves the rest of a pattern that overlaps another one.
type matcher struct {
	patterns   map[string]string   // to their secrets
	key        []byte              // of hashes in placeholders, or nil
	hashes     map[string]string   // placeholders of secrets, if there is a key
	width      int                 // of the window, in bytes
	longest    int                 // length of the longest pattern, in bytes
	distance   [1 << 16]uint8      // by the last two bytes in the window
	candidates map[uint16][]string // by the last two bytes of their first width bytes, the longest first
}

// newMatcher returns a matcher of patterns of two bytes or more. It keeps both arguments.
func newMatcher(patterns map[string]string, key []byte) *matcher {
	m := &matcher{patterns: patterns, key: key, width: maxWindow, candidates: make(map[uint16][]string)}
	if key != nil {
		m.hashes = make(map[string]string)
		for _, secret := range patterns {
			if m.hashes[secret] == "" {
				m.hashes[secret] = hashPlaceholder(key, secret)
			}
		}
	}
	for p := range patterns {
		m.width, m.longest = min(m.width, len(p)), max(m.longest, len(p))
	}
	for i := range m.distance {
		m.distance[i] = uint8(m.width - 1) // for two bytes that are in no pattern
	}
	for p := range patterns {
		for i := 1; i < m.width; i++ {
			d := &m.distance[twoBytes(p[i-1], p[i])]
			*d = min(*d, uint8(m.width-1-i))
		}
		last := twoBytes(p[m.width-2], p[m.width-1])
		m.candidates[last] = append(m.candidates[last], p)
	}
	for _, same := range m.candidates {
		slices.SortFunc(same, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
		})
	}
	return m
}

// placeholder returns the replacement of a match, which may be several patterns.
func (m *matcher) placeholder(match []byte) string {
	switch secret, ok := m.patterns[string(match)]; {
	case m.key == nil:
		return masked
	case ok:
		return m.hashes[secret]
	}
	return hashPlaceholder(m.key, string(match))
}

func hashPlaceholder(key []byte, secret string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(secret))
	return masked[:len(masked)-1] + ":" + hex.EncodeToString(h.Sum(nil)[:hashLen]) + "]"
}

func twoBytes(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// find returns the position of the first pattern in text[from:], start -1 for none.
// Overlapping patterns count as one.
func find[T ~string | ~[]byte](m *matcher, text T, from int) (start, end int) {
	start = -1
	for i := from + m.width - 1; i < len(text) && (start < 0 || i-m.width+1 < end); {
		last := twoBytes(text[i-1], text[i])
		if d := m.distance[last]; d > 0 {
			i += int(d)
			continue
		}
		at := i - m.width + 1
		if n := matchAt(m.candidates[last], text[at:]); n > 0 {
			if start < 0 {
				start = at
			}
			end = max(end, at+n)
		}
		i++
	}
	return start, end
}

func matchAt[T ~string | ~[]byte](candidates []string, text T) int {
	for _, c := range candidates {
		if len(text) >= len(c) && string(text[:len(c)]) == c {
			return len(c)
		}
	}
	return 0
}
