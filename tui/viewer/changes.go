package viewer

import "hash/maphash"

// Mark marks the lines that are not in old, which a [View] then shows with a
// mark at the edge. It compares lines of the original, so the widths may
// differ. Time and memory are linear: what is equal at the beginning and at
// the end is left out, and of the rest each line of old makes up for one equal
// line wherever it stands. It must be called before the document is shown.
func (d *Doc) Mark(old *Doc) {
	d.changed = nil
	if old == nil {
		return
	}
	seed := maphash.MakeSeed()
	was, now := old.hashes(seed), d.hashes(seed)
	for len(was) > 0 && len(now) > 0 && was[0].sum == now[0].sum {
		was, now = was[1:], now[1:]
	}
	for len(was) > 0 && len(now) > 0 && was[len(was)-1].sum == now[len(now)-1].sum {
		was, now = was[:len(was)-1], now[:len(now)-1]
	}
	if len(now) == 0 {
		return
	}
	left := make(map[uint64]int, len(was))
	for _, h := range was {
		left[h.sum]++
	}
	d.changed = make([]bool, len(d.lines))
	for _, h := range now {
		if left[h.sum] > 0 {
			left[h.sum]--
			continue
		}
		for i := h.first; i < h.next; i++ {
			d.changed[i] = true
		}
	}
	for _, part := range d.unmarked {
		clear(d.changed[part[0]:part[1]])
	}
}

type hash struct {
	sum         uint64
	first, next int
}

// hashes are those of the lines of the original.
func (d *Doc) hashes(seed maphash.Seed) []hash {
	out := make([]hash, 0, len(d.lines))
	for i := 0; i < len(d.lines); {
		from, to, next := d.sourceLine(i)
		out = append(out, hash{maphash.Bytes(seed, d.arena[from:to]), i, next})
		i = next
	}
	return out
}
