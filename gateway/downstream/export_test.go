package downstream

// BufferedBytes returns how many bytes wait for a session-wide stream.
func BufferedBytes(s *Session) int64 { return s.sender.(*httpSession).buffered.queue.UnsentBytes() }
