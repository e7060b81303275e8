package registry

import (
	"hash/maphash"
	"slices"
)

// notes is a list of the last notifications, by sequence number. Equal ones share a record.
// Adding one reads all of the at most [maxNotifications] records.
type notes struct {
	seed    maphash.Seed
	all     []*stored
	has     map[string]int // records of each server
	dropped uint64         // evicted notifications
}

// put adds a notification, or counts it in an equal record.
func (n *notes) put(next stored, params []byte) *stored {
	if n.has == nil {
		n.has, n.seed = make(map[string]int), maphash.MakeSeed()
	}
	next.sum, next.times, next.first, next.last = n.sum(&next, params), 1, next.seq, next.at
	s := new(stored)
	at := slices.IndexFunc(n.all, func(s *stored) bool { return s.sum == next.sum })
	switch {
	case at >= 0:
		s = n.all[at]
		next.times, next.first, next.at = s.times+1, s.first, s.at
	case len(n.all) == maxNotifications:
		at = n.oldestOfMost()
		s = n.all[at]
		n.dropped += uint64(s.times)
		if n.has[s.server]--; n.has[s.server] == 0 {
			delete(n.has, s.server)
		}
		n.has[next.server]++
	default:
		n.has[next.server]++
	}
	if at >= 0 {
		n.all = slices.Delete(n.all, at, at+1)
	}
	*s = next
	n.all = append(n.all, s)
	return s
}

// sum hashes the fields and params that equal notifications share.
func (n *notes) sum(s *stored, params []byte) uint64 {
	return maphash.Comparable(n.seed, struct {
		origin
		name      string
		direction Direction
		receivers int32
		size      int
		params    uint64
	}{*s.origin, s.name, s.direction, s.receivers, s.reqSize, maphash.Bytes(n.seed, params)})
}

// oldestOfMost returns the index of the oldest record of the server with the most records.
func (n *notes) oldestOfMost() int {
	most := 0
	for _, count := range n.has {
		most = max(most, count)
	}
	return slices.IndexFunc(n.all, func(s *stored) bool { return n.has[s.server] == most })
}

// oldest returns the number of a server's oldest record, or 0 if it has no record.
func (n *notes) oldest(server string) uint64 {
	for _, s := range n.all {
		if s.server == server {
			return s.seq
		}
	}
	return 0
}

// from returns the records with number seq or later.
func (n *notes) from(seq uint64) []*stored {
	at, _ := slices.BinarySearchFunc(n.all, seq, func(s *stored, seq uint64) int {
		if s.seq < seq {
			return -1
		}
		return 1
	})
	return n.all[at:]
}

// find returns the record with number seq, or nil if it was evicted.
func (n *notes) find(seq uint64) *stored {
	if rest := n.from(seq); len(rest) > 0 && rest[0].seq == seq {
		return rest[0]
	}
	return nil
}
