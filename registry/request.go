package registry

import (
	"context"
	"time"
)

// Request tells the handler of something local about the request that it works on.
type Request interface {
	// Progress tells the client how much is done, of total if that is known
	// (else 0), with a line for people or "". It does not block.
	Progress(done, total float64, message string)
	// UserWait is how long the request has waited for people so far, which does
	// not count as work.
	UserWait() time.Duration
	// Client tells clients apart, each of which is to leave room for the others: equal
	// values are one client's. One that has a method Group() any is of a group that is
	// to leave some room, too.
	Client() any
	// Catalog returns the client's catalog.
	Catalog() *Snapshot
}

type requestKey struct{}

// WithRequest gives a handler its request.
func WithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// Progress reports to the client whose request ctx belongs to, if it wants to
// know. done must grow from one report to the next.
func Progress(ctx context.Context, done, total float64, message string) {
	if r, ok := ctx.Value(requestKey{}).(Request); ok {
		r.Progress(done, total, message)
	}
}

// Client tells the client whose request ctx belongs to from others; nil for none.
func Client(ctx context.Context) any {
	if r, ok := ctx.Value(requestKey{}).(Request); ok {
		return r.Client()
	}
	return nil
}

// ViewFor is the catalog as the client sees it whose request ctx belongs to; all of it for
// none.
func (r *Registry) ViewFor(ctx context.Context) *Snapshot {
	if q, ok := ctx.Value(requestKey{}).(Request); ok {
		return q.Catalog()
	}
	return r.Load()
}

// UserWait is how long the request of ctx has waited for people so far.
func UserWait(ctx context.Context) time.Duration {
	if r, ok := ctx.Value(requestKey{}).(Request); ok {
		return r.UserWait()
	}
	return 0
}
