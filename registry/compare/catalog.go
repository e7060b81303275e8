package compare

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"goblin/registry/definition"
	"goblin/registry/rawjson"
)

// Entry is a definition of a catalog.
type Entry struct {
	Server string
	// Kind is "tool", "prompt", "resource", "template" or "skill".
	Kind       string
	Name       string // or URI
	Definition []byte // JSON
	State      string // visibility for clients, or ""
}

// EntryChange is a difference of two catalogs.
type EntryChange struct {
	Op                 Op
	Server, Kind, Name string
	What               []string // meaning of a change
	Result             *Result  // of Changed, unless only the state differs
}

type entryKey struct {
	server, kind, name string
	occurrence         int
}

// Catalogs compares two catalogs by server, kind and name, ordered by these. same is the
// number of equal definitions. Paths of o apply to definitions.
func Catalogs(a, b []Entry, o Options) (changes []EntryChange, same int, err error) {
	left, right := keyed(a), keyed(b)
	for key, x := range left {
		y, ok := right[key]
		if !ok {
			changes = append(changes, EntryChange{Op: Removed, Server: key.server, Kind: key.kind, Name: key.name})
			continue
		}
		c, err := Definitions(x, y, o)
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("%s %s %s: %w", key.server, key.kind, key.name, err)
		case c == nil:
			same++
		default:
			changes = append(changes, *c)
		}
	}
	for key := range right {
		if left[key] == nil {
			changes = append(changes, EntryChange{Op: Added, Server: key.server, Kind: key.kind, Name: key.name})
		}
	}
	slices.SortFunc(changes, func(x, y EntryChange) int {
		return cmp.Or(strings.Compare(x.Server, y.Server), strings.Compare(x.Kind, y.Kind), strings.Compare(x.Name, y.Name))
	})
	return changes, same, nil
}

func keyed(entries []Entry) map[entryKey]*Entry {
	all := make(map[entryKey]*Entry, len(entries))
	for i := range entries {
		e := &entries[i]
		key := entryKey{e.Server, e.Kind, e.Name, 0}
		for all[key] != nil {
			key.occurrence++
		}
		all[key] = e
	}
	return all
}

// Definitions compares two definitions. It returns nil if they are equal.
func Definitions(a, b *Entry, o Options) (*EntryChange, error) {
	r, err := Values(a.Definition, b.Definition, o)
	if err != nil {
		return nil, err
	}
	c := &EntryChange{Op: Changed, Server: b.Server, Kind: b.Kind, Name: b.Name}
	if a.State != b.State {
		c.What = append(c.What, fmt.Sprintf("state: %s → %s", cmp.Or(a.State, "unknown"), cmp.Or(b.State, "unknown")))
	}
	if !r.IsEqual() {
		c.Result = r
		c.What = append(c.What, definition.Meaning(b.Kind, a.Definition, b.Definition)...)
	}
	if c.Result == nil && len(c.What) == 0 {
		return nil, nil //nolint:nilnil // documented
	}
	return c, nil
}

// maxHashed is the largest definition that DefinitionHash reads, in bytes.
const maxHashed = 1 << 20

// DefinitionHash returns four digits that identify a definition for users, or "" if it is
// missing or too large. The order of members does not count.
func DefinitionHash(text []byte) string {
	if len(text) == 0 || len(text) > maxHashed || rawjson.Valid(text) != nil {
		return ""
	}
	sum := sha256.Sum256(rawjson.AppendCanonical(nil, text))
	return hex.EncodeToString(sum[:2])
}
