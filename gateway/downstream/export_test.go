package downstream

// BufferedBytes returns the number of bytes that wait for a session-wide stream.
func BufferedBytes(s *Session) int64 { return s.sender.(*httpSession).buffered.queue.UnsentBytes() }
