package jsonrpc

import (
	"context"
	"sync/atomic"
)

// RelayedIDs contains the ids of a server's request that is relayed to a client, for
// recordings.
type RelayedIDs struct {
	Server []byte // as the server sent it
	client atomic.Pointer[[]byte]
}

type relayedIDsKey struct{}

// WithServerID returns a context for a server's request with its raw id.
func WithServerID(ctx context.Context, id []byte) context.Context {
	return context.WithValue(ctx, relayedIDsKey{}, &RelayedIDs{Server: id})
}

// RelayedIDsOf returns the ids of the server's request in ctx, or nil.
func RelayedIDsOf(ctx context.Context) *RelayedIDs {
	ids, _ := ctx.Value(relayedIDsKey{}).(*RelayedIDs)
	return ids
}

// SetClient sets the raw id of the request to the client. A nil r ignores it.
func (r *RelayedIDs) SetClient(id []byte) {
	if r != nil {
		r.client.Store(&id)
	}
}

// Client returns the last id of SetClient, or nil.
func (r *RelayedIDs) Client() []byte {
	if id := r.client.Load(); id != nil {
		return *id
	}
	return nil
}
