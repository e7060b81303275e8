package calltest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/mcpclient"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// session is a client session without a user. It has at most one request at a time.
type session struct {
	client *mcpclient.Client

	mu   sync.Mutex
	stop context.CancelCauseFunc // of the current request, or nil
}

// Open starts a session on conn. Requests of servers for input end the current request with
// an [AskedError].
func Open(ctx context.Context, conn net.Conn, o mcpclient.Options) (Conn, error) {
	s := &session{}
	o.Ask = s.ask
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	var err error
	if s.client, err = mcpclient.Open(ctx, conn, o); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *session) ask(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	text := rawjson.GetString(params, "message")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop(&AskedError{Method: method, Text: termtext.Truncate(termtext.Line(text), 200)})
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a test has no user to answer")
}

// Request implements [Conn].
func (s *session) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	ctx, stop := context.WithCancelCause(ctx)
	s.setStop(stop)
	defer stop(nil)
	defer s.setStop(nil)
	result, err := s.client.Request(ctx, method, params, nil)
	if errors.Is(err, mcpclient.ErrClosed) || errors.Is(err, mcpclient.ErrLost) {
		err = &UnreachableError{err}
	}
	return result, err
}

func (s *session) setStop(stop context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = stop
}

// Close implements [Conn].
func (s *session) Close() error { return s.client.Close() }
