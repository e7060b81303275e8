package upstream

import "goblin/gateway/memlimit"

// claim counts a large thing of n bytes until release, which may be called more than
// once; not ok when there is no room for it.
func (s *Server) claim(n int) (release func(), ok bool) {
	c := new(memlimit.Reservation)
	c.SetOwner(s.memory)
	return func() { c.Resize(0) }, c.Resize(int64(n))
}

const noRoom = "no room for its answer: too many bytes are held for all clients and servers together"
