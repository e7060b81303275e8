package registry

import (
	"hash/maphash"
	"math/bits"

	"goblin/registry/names"
)

var seed = maphash.MakeSeed()

// hashIndex finds entries by a key that is stored only in the entries. At 8 bytes per
// slot it is much smaller than a map with string keys.
type hashIndex struct {
	slots []uint64 // upper half of the key's hash, then the entry's number + 1
}

func newHashIndex(n int) hashIndex {
	if n == 0 {
		return hashIndex{}
	}
	return hashIndex{make([]uint64, 1<<bits.Len(uint(2*n)))}
}

func hashKey(key string) uint64 { return maphash.String(seed, key) }

func (x *hashIndex) put(h uint64, i int) {
	mask := uint64(len(x.slots) - 1)
	at := h & mask
	for x.slots[at] != 0 {
		at = (at + 1) & mask
	}
	x.slots[at] = h&^(1<<32-1) | uint64(i+1)
}

const tombstone = 1 << 32

// reordered returns the index for reordered entries without hashing keys again. places
// maps old numbers to new ones; a negative number removes the entry.
func (x *hashIndex) reordered(places []int32) hashIndex {
	to := hashIndex{make([]uint64, len(x.slots))}
	for i, slot := range x.slots {
		switch {
		case slot == 0:
		case slot == tombstone || places[uint32(slot)-1] < 0:
			to.slots[i] = tombstone
		default:
			to.slots[i] = slot&^(1<<32-1) | uint64(places[uint32(slot)-1]+1)
		}
	}
	return to
}

// find returns up to two entries of es with the given key. of returns the key of an
// entry.
func (x *hashIndex) find(es []Entry, h uint64, key string, of func(*Entry) string) (first, second *Entry) {
	if len(x.slots) == 0 {
		return nil, nil
	}
	mask := uint64(len(x.slots) - 1)
	for at := h & mask; x.slots[at] != 0; at = (at + 1) & mask {
		slot := x.slots[at]
		if slot>>32 != h>>32 || slot == tombstone {
			continue
		}
		e := &es[uint32(slot)-1]
		if of(e) != key {
			continue
		}
		if first != nil {
			return first, e
		}
		first = e
	}
	return first, nil
}

// add adds entry i under key unless two entries have that key: two are enough to be
// ambiguous, a third would only lengthen the chain.
func (x *hashIndex) add(es []Entry, i int, key string, of func(*Entry) string) {
	h := hashKey(key)
	if _, second := x.find(es, h, key, of); second == nil {
		x.put(h, i)
	}
}

func byName(e *Entry) string   { return e.Name }
func byListed(e *Entry) string { return e.Listed }
func byNorm(e *Entry) string   { return names.NormalizeURI(names.NamespacedURI(e.Server, e.Name)) }

// The server is the same for a whole table and is not part of the key.
func byFlat(e *Entry) string {
	rest := e.Flat[len(e.Server)+1:]
	if rest != "" && rest[0] == '_' {
		rest = rest[1:]
	}
	return rest
}

func byPlain(e *Entry) string {
	rest := byFlat(e)
	return rest[:len(rest)-int(e.suffixLen)]
}
