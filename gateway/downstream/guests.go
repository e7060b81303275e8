package downstream

import "time"

// Bounds of what is kept of stateless clients over HTTP, which have no session of their own.
const (
	maxGuests = 64
	guestLife = time.Hour
)

// greetLocked notes a stateless client that asks which tools there are. Of too many, the one
// that asked longest ago is forgotten.
func (s *Session) greetLocked(name string, now time.Time) {
	if _, known := s.guests[name]; !known && len(s.guests) >= maxGuests {
		oldest, since := "", now
		for other, at := range s.guests {
			if !at.After(since) {
				oldest, since = other, at
			}
		}
		delete(s.guests, oldest)
	}
	if s.guests == nil {
		s.guests = make(map[string]time.Time)
	}
	s.guests[name] = now
}

// StatelessClients returns the names of the stateless clients over HTTP that share the session and
// asked for tools within the last hour; at most 64, in no order.
func (s *Session) StatelessClients() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, at := range s.guests {
		if time.Since(at) < guestLife {
			names = append(names, name)
		}
	}
	return names
}
