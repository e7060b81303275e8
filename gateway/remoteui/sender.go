package remoteui

import "io"

// sender queues a relay's frames; run is the only writer of its connection. The queue
// limits keys. Other frames are rare: one per order of the daemon or stop by the user.
type sender struct {
	queue // of keys; its lock guards the rest

	control [][]byte
	size    *size
	dark    *bool
	writing bool
}

func newSender() *sender {
	s := &sender{}
	s.changed.L = &s.mu
	return s
}

// resize keeps only the latest unsent size.
func (s *sender) resize(to size) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = &to
	s.changed.Broadcast()
}

// background keeps only the latest unsent one.
func (s *sender) background(dark bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dark = &dark
	s.changed.Broadcast()
}

func (s *sender) send(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.control = append(s.control, frame)
	s.changed.Broadcast()
}

// run ignores errors, which the reader of the connection reports.
func (s *sender) run(w io.Writer) {
	defer s.close()
	for {
		frame := s.next()
		if frame == nil {
			return
		}
		if _, err := w.Write(frame); err != nil {
			return
		}
	}
}

// next returns nil if closed.
func (s *sender) next() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	s.changed.Broadcast()
	for !s.closed && s.isIdleLocked() {
		s.changed.Wait()
	}
	if s.closed {
		return nil
	}
	s.writing = true
	var frame []byte
	switch {
	case len(s.control) > 0:
		frame, s.control = s.control[0], s.control[1:]
	case s.size != nil:
		frame, s.size = jsonFrame(frameSize, *s.size), nil
	case s.dark != nil:
		b := byte(0)
		if *s.dark {
			b = 1
		}
		frame, s.dark = appendFrame(nil, frameBackground, []byte{b}), nil
	default:
		frame = appendFrame(nil, frameInput, s.pieces[0])
		s.bytes -= len(s.pieces[0])
		s.pieces[0] = nil
		s.pieces = s.pieces[1:]
		s.changed.Broadcast()
	}
	return frame
}

func (s *sender) isIdleLocked() bool {
	return len(s.control) == 0 && s.size == nil && s.dark == nil && len(s.pieces) == 0
}

// drain waits until everything was written or the sender was closed.
func (s *sender) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && (s.writing || !s.isIdleLocked()) {
		s.changed.Wait()
	}
}
