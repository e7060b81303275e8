package upstream

import (
	"io"

	"goblin/gateway/memory"
)

// keep counts a large thing of n bytes until release, which may be called more than
// once; not ok when there is no room for it.
func (s *Server) keep(n int) (release func(), ok bool) {
	c := new(memory.Claim)
	c.Of(s.party)
	return func() { c.Resize(0) }, c.Resize(int64(n))
}

const noRoom = "no room for its answer: too many bytes are held for all clients and servers together"

// lease is what one answer over HTTP takes while it is read. A process sends one
// after another; these come side by side, each up to limits.frame.
type lease struct {
	claim memory.Claim
	held  int64
}

// take asks for n bytes more; memory.ErrFull when there are not so many.
func (l *lease) take(n int) error {
	if !l.claim.Resize(l.held + int64(n)) {
		return memory.ErrFull
	}
	l.held += int64(n)
	return nil
}

// end gives back what was taken.
func (l *lease) end() {
	l.held = 0
	l.claim.Resize(0)
}

// leased is a body that takes room as it is read.
type leased struct {
	io.Reader
	lease *lease
}

func (r leased) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if full := r.lease.take(n); full != nil {
		return 0, full
	}
	return n, err
}
