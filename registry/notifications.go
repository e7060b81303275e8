package registry

import (
	"hash/maphash"
	"slices"
)

// notificationLog holds the last notifications by sequence number. Equal ones share a
// record. Adding one scans all records, at most
// TrafficLimits.Notifications.
type notificationLog struct {
	seed          maphash.Seed
	all           []*trafficEntry
	countByServer map[string]int
	dropped       uint64 // evicted notifications
}

func (n *notificationLog) put(next trafficEntry, params []byte, most int) *trafficEntry {
	if n.countByServer == nil {
		n.countByServer, n.seed = make(map[string]int), maphash.MakeSeed()
	}
	next.contentHash, next.count, next.first, next.last = n.hash(&next, params), 1, next.seq, next.at
	s := new(trafficEntry)
	at := slices.IndexFunc(n.all, func(s *trafficEntry) bool { return s.contentHash == next.contentHash })
	switch {
	case at >= 0:
		s = n.all[at]
		next.count, next.first, next.at = s.count+1, s.first, s.at
	case len(n.all) == most:
		at = n.oldestOfMost()
		s = n.all[at]
		n.dropped += uint64(s.count)
		if n.countByServer[s.server]--; n.countByServer[s.server] == 0 {
			delete(n.countByServer, s.server)
		}
		n.countByServer[next.server]++
	default:
		n.countByServer[next.server]++
	}
	if at >= 0 {
		n.all = slices.Delete(n.all, at, at+1)
	}
	*s = next
	n.all = append(n.all, s)
	return s
}

// hash covers exactly the fields that equal notifications share.
func (n *notificationLog) hash(s *trafficEntry, params []byte) uint64 {
	return maphash.Comparable(n.seed, struct {
		recordOrigin
		name      string
		direction Direction
		receivers int32
		size      int
		params    uint64
	}{*s.recordOrigin, s.name, s.direction, s.receivers, s.reqSize, maphash.Bytes(n.seed, params)})
}

func (n *notificationLog) oldestOfMost() int {
	most := 0
	for _, count := range n.countByServer {
		most = max(most, count)
	}
	return slices.IndexFunc(n.all, func(s *trafficEntry) bool { return n.countByServer[s.server] == most })
}

func (n *notificationLog) oldest(server string) uint64 {
	for _, s := range n.all {
		if s.server == server {
			return s.seq
		}
	}
	return 0
}

func (n *notificationLog) from(seq uint64) []*trafficEntry {
	at, _ := slices.BinarySearchFunc(n.all, seq, func(s *trafficEntry, seq uint64) int {
		if s.seq < seq {
			return -1
		}
		return 1
	})
	return n.all[at:]
}

func (n *notificationLog) find(seq uint64) *trafficEntry {
	if rest := n.from(seq); len(rest) > 0 && rest[0].seq == seq {
		return rest[0]
	}
	return nil
}
