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

// leased is a body that takes room as it is read. A process sends one answer after
// another; those over HTTP come side by side, each up to limits.frame.
type leased struct {
	io.Reader
	lease *memory.Lease
}

func (r leased) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if full := r.lease.Take(n); full != nil {
		return 0, full
	}
	return n, err
}
