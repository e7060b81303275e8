package search

import "hash/maphash"

// filter is a Bloom filter of hashes. With hundreds of lists, it saves most look-ups of a
// word in the lists without it.
type filter []uint64

const (
	filterBits = 16 // per term
	beginning  = 3  // bytes of a term that are filtered too
)

var seed = maphash.MakeSeed()

func hashOf(term string) uint64 { return maphash.String(seed, term) }

// hashOfBeginning returns the hash of the first bytes of a term. No term is that short.
func hashOfBeginning(term string) uint64 { return ^hashOf(term[:beginning]) }

// newFilter returns a filter for n terms.
func newFilter(n int) filter { return make(filter, n*filterBits/64+1) }

// at returns the place of a hash and its two bits.
func (f filter) at(hash uint64) (place int, bits uint64) {
	return int(hash >> 32 * uint64(len(f)) >> 32), 1<<(hash&63) | 1<<(hash>>6&63)
}

func (f filter) add(hash uint64) {
	place, bits := f.at(hash)
	f[place] |= bits
}

func (f filter) mayContain(hash uint64) bool {
	place, bits := f.at(hash)
	return f[place]&bits == bits
}
