package registry

import (
	"context"
	"time"
)

// Request is the request that a local handler works on.
type Request interface {
	// Progress reports progress to the client without blocking. total is 0 if unknown,
	// message a line for users or "".
	Progress(done, total float64, message string)
	// UserWait returns the time the request has waited for the user, which does not count
	// as work.
	UserWait() time.Duration
	// Client returns an identity for fair sharing: equal values mean the same client. A
	// value with a method Group() any belongs to a group, which shares fairly with other
	// groups.
	Client() any
	// Catalog returns the client's catalog.
	Catalog() *Snapshot
}

type requestKey struct{}

// WithRequest returns a context that carries the request.
func WithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// Progress reports progress to the client of the request in ctx, if it wants progress.
// done must grow with each call.
func Progress(ctx context.Context, done, total float64, message string) {
	if r, ok := ctx.Value(requestKey{}).(Request); ok {
		r.Progress(done, total, message)
	}
}

// Client returns the [Request.Client] of the request in ctx, or nil.
func Client(ctx context.Context) any {
	if r, ok := ctx.Value(requestKey{}).(Request); ok {
		return r.Client()
	}
	return nil
}

// ViewFor returns the catalog for the client of the request in ctx, or the whole catalog
// without a request.
func (r *Registry) ViewFor(ctx context.Context) *Snapshot {
	if q, ok := ctx.Value(requestKey{}).(Request); ok {
		return q.Catalog()
	}
	return r.Load()
}

// UserWait returns the time the request in ctx has waited for the user.
func UserWait(ctx context.Context) time.Duration {
	if r, ok := ctx.Value(requestKey{}).(Request); ok {
		return r.UserWait()
	}
	return 0
}
