package upstream

import (
	"errors"
	"io"
	"sync/atomic"
)

// room bounds what the unfinished answers of one server over HTTP take
// together. A process sends one after another; these come side by side, each
// up to limits.frame.
type room struct {
	limit int64 // bytes
	used  atomic.Int64
}

// minRoom is enough for as many answers as there are calls by default, of 1 MB
// each.
const minRoom = 256 << 20

var errCrowded = errors.New("the unfinished answers of the server are too large together (256 MiB, or twice limits.frame)")

// lease is what one answer takes of a room.
type lease struct {
	of   *room
	held int64
}

// take asks for n bytes more; errCrowded when there are not so many.
func (l *lease) take(n int) error {
	if l.of.used.Add(int64(n)) > l.of.limit {
		l.of.used.Add(-int64(n))
		return errCrowded
	}
	l.held += int64(n)
	return nil
}

// end gives back what was taken.
func (l *lease) end() {
	l.of.used.Add(-l.held)
	l.held = 0
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
