// Moments remembers when something happened to names, within bounds.

package registry

import "time"

// MaxLastSeen bounds what is remembered of a server.
const MaxLastSeen = 4096

// LastSeen remember when something happened to names, so that an answer which
// was on the way then can be judged. Of more than Max names, those that
// were noted first are forgotten. Names are kept by their hash alone: one that
// shares it only makes an answer look older than it is. The zero value is empty.
type LastSeen struct {
	at    map[uint64]time.Time
	order []uint64 // a ring of what is in at, once it is full
	next  int
	// Gone is the newest moment that is forgotten.
	Gone time.Time
}

// Note says that something happened to a name now.
func (m *LastSeen) Note(hash uint64, now time.Time) {
	if _, known := m.at[hash]; known {
		m.at[hash] = now
		return
	}
	if m.at == nil {
		m.at = map[uint64]time.Time{}
	}
	if len(m.order) < MaxLastSeen {
		m.order = append(m.order, hash)
	} else {
		oldest := m.order[m.next]
		if t := m.at[oldest]; t.After(m.Gone) {
			m.Gone = t
		}
		delete(m.at, oldest)
		m.order[m.next] = hash
		m.next = (m.next + 1) % MaxLastSeen
	}
	m.at[hash] = now
}

// Since reports whether a name was noted after a moment, as far as is known.
func (m *LastSeen) Since(hash uint64, asked time.Time) bool { return m.at[hash].After(asked) }

// Len is how many names are remembered.
func (m *LastSeen) Len() int { return max(len(m.at), len(m.order)) }
