package downstream

// Held is how many bytes wait for a session-wide stream.
func Held(s *Session) int64 { return s.base.(*hub).next.out.UnsentBytes() }
