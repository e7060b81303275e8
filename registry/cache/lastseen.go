package cache

import "time"

// MaxLastSeen is the maximum number of names in a [LastSeen].
const MaxLastSeen = 4096

// LastSeen stores the last event times of at most MaxLastSeen names, by hash: collisions
// mix up times. When full, it drops the oldest. The zero value is ready. It is not safe
// for concurrent use.
type LastSeen struct {
	at           map[uint64]time.Time
	order        []uint64 // the keys of at; a ring once full
	next         int
	DroppedUntil time.Time
}

// Record stores an event of a name.
func (m *LastSeen) Record(hash uint64, now time.Time) {
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
		if t := m.at[oldest]; t.After(m.DroppedUntil) {
			m.DroppedUntil = t
		}
		delete(m.at, oldest)
		m.order[m.next] = hash
		m.next = (m.next + 1) % MaxLastSeen
	}
	m.at[hash] = now
}

// SeenAfter reports whether a stored event of the name happened after asked.
func (m *LastSeen) SeenAfter(hash uint64, asked time.Time) bool { return m.at[hash].After(asked) }

// Len returns the number of names.
func (m *LastSeen) Len() int { return max(len(m.at), len(m.order)) }
