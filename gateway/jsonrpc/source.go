package jsonrpc

import "io"

// Source is a source of frames for a [Reader] that notes whether its text has
// ended within one: then the peer was cut off while it wrote.
type Source struct {
	io.Reader
	last byte
	cut  bool
}

// Read implements [io.Reader].
func (s *Source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if n > 0 {
		s.last = p[n-1]
	}
	s.cut = err != nil && s.last != '\n'
	return n, err
}

// Cut reports whether the last frame of the text, which r returned just now,
// has no end.
func (s *Source) Cut(r *Reader) bool { return s.cut && r.Buffered() == 0 }
