package upstream

import (
	"errors"
	"io"
	"sync/atomic"

	"goblin/gateway/memory"
)

// room bounds what the unfinished answers of one server over HTTP take
// together. A process sends one after another; these come side by side, each
// up to limits.frame.
type room struct {
	limit int64 // bytes
	used  atomic.Int64
	// large are the server's large things: unfinished answers over HTTP, requests
	// on their way to it, and what it asks for.
	large   memory.Stock
	account *memory.Account // of all servers and clients
}

// minRoom is enough for as many answers as there are calls by default, of 1 MB
// each.
const minRoom = 256 << 20

var errCrowded = errors.New("the unfinished answers of the server are too large together (256 MiB, or twice limits.frame)")

// keep counts a large thing of n bytes until Release. drop is called if there is
// no room for it beside others' any more. Small ones are not counted.
func (r *room) keep(n int, drop func()) *memory.Piece {
	if n <= memory.Free {
		return nil
	}
	p := r.large.Add(int64(n), drop)
	r.account.Grow(int64(n))
	return p
}

// lease is what one answer takes of a room.
type lease struct {
	of    *room
	drop  func() // ends the reading of the answer when there is no room for it
	held  int64
	piece *memory.Piece // once it is large
}

// take asks for n bytes more; errCrowded or memory.ErrFull when there are not so
// many.
func (l *lease) take(n int) error {
	if l.of.used.Add(int64(n)) > l.of.limit {
		l.of.used.Add(-int64(n))
		return errCrowded
	}
	l.held += int64(n)
	switch {
	case l.piece != nil:
		if !l.piece.Grow(int64(n)) {
			return memory.ErrFull
		}
		l.of.account.Grow(int64(n))
	case l.held > memory.Free:
		l.piece = l.of.keep(int(l.held), l.drop)
	}
	return nil
}

// end gives back what was taken.
func (l *lease) end() {
	l.of.used.Add(-l.held)
	l.held = 0
	l.piece.Release()
	l.piece = nil
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

// noRoom reports whether an error says that there was no room for an answer.
func noRoom(err error) bool { return errors.Is(err, errCrowded) || errors.Is(err, memory.ErrFull) }
