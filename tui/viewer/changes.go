package viewer

import "hash/maphash"

// Mark marks the lines that are missing in old; a [View] draws a mark at their edge. It
// compares source lines, so the widths may differ. Equal lines match regardless of order,
// in linear time and memory. Call it before the document is shown.
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

func (d *Doc) hashes(seed maphash.Seed) []hash {
	out := make([]hash, 0, len(d.lines))
	for i := 0; i < len(d.lines); {
		from, to, next := d.sourceLine(i)
		out = append(out, hash{maphash.Bytes(seed, d.arena[from:to]), i, next})
		i = next
	}
	return out
}
