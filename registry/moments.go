package registry

import "time"

// maxMoments bounds what is remembered of a server.
const maxMoments = 4096

// moments remember when something happened to names, so that an answer which
// was on the way then can be judged. Of more than maxMoments names, those that
// were noted first are forgotten. Names are kept by their hash alone: one that
// shares it only makes an answer look older than it is. The zero value is empty.
type moments struct {
	at    map[uint64]time.Time
	order []uint64 // a ring of what is in at, once it is full
	next  int
	// gone is the newest moment that is forgotten.
	gone time.Time
}

func (m *moments) note(hash uint64, now time.Time) {
	if _, known := m.at[hash]; known {
		m.at[hash] = now
		return
	}
	if m.at == nil {
		m.at = map[uint64]time.Time{}
	}
	if len(m.order) < maxMoments {
		m.order = append(m.order, hash)
	} else {
		oldest := m.order[m.next]
		if t := m.at[oldest]; t.After(m.gone) {
			m.gone = t
		}
		delete(m.at, oldest)
		m.order[m.next] = hash
		m.next = (m.next + 1) % maxMoments
	}
	m.at[hash] = now
}

// since reports whether a name was noted after a moment, as far as is known.
func (m *moments) since(hash uint64, asked time.Time) bool { return m.at[hash].After(asked) }

// past is what happened to a server's entries lately.
type past struct {
	left    moments // entries that left a list, by entryHash
	updated moments // URIs that the server said had changed, and those above them, by hashKey
	// unlisted is when a list lost an entry last, by kind.
	unlisted [Kinds]time.Time
}

func entryHash(kind Kind, name string) uint64 {
	return hashKey(name) ^ uint64(kind+1)*0x9e3779b97f4a7c15
}
