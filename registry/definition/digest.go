package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"goblin/registry/rawjson"
)

// maxSorted is the size, in bytes, up to which the order of nested keys does not count.
const maxSorted = 1 << 20

// Canonical returns the text by which definitions are approved and compared. It has all
// members except icons and _meta, which may change freely, and ignores the order of
// members. Duplicate members and members in other case count too, because some readers use
// them.
func Canonical(item []byte) []byte {
	if rawjson.Valid(item) != nil || !rawjson.IsObject(item) {
		return rawjson.Quote(string(item)) // invalid, but reproducible
	}
	type member struct {
		name  string
		value []byte
	}
	var members []member
	for k, v := range rawjson.Members(item) {
		if name, _ := rawjson.String(k); name != "icons" && name != "_meta" {
			members = append(members, member{name, v})
		}
	}
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	text := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(rawjson.AppendString(text, m.name), ':')
		if len(item) <= maxSorted {
			text = rawjson.AppendCanonical(text, m.value)
		} else {
			text = append(text, m.value...)
		}
	}
	return append(text, '}')
}

// Digest returns the SHA-256 of a definition's canonical text, in hex.
func Digest(item []byte) string {
	sum := sha256.Sum256(Canonical(item))
	return hex.EncodeToString(sum[:])
}
