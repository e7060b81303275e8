package stack

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"goblin/gateway/callstore"
	"goblin/gateway/calltest"
	"goblin/registry/savedcall"
)

// savedTimeout limits one saved call of a UI, whose user may have to answer a question.
const savedTimeout = 10 * time.Minute

// savedCalls is the folder of saved calls. It is watched once a UI has read it.
type savedCalls struct {
	callstore.Store
	wanted chan struct{} // capacity 1
}

// SavedCalls reads the folder of saved calls.
func (s *savedCalls) SavedCalls() (*savedcall.Folder, error) {
	select {
	case s.wanted <- struct{}{}:
	default:
	}
	return s.Store.SavedCalls()
}

// watch reports changes of the files until ctx ends, once they were read.
func (s *savedCalls) watch(ctx context.Context, changed func()) {
	select {
	case <-s.wanted:
		s.Store.Watch(ctx, changed)
	case <-ctx.Done():
	}
}

// RunSaved runs saved calls in this session, so that its user answers servers' requests.
// set and captures are variables that win over the environment of this process. done
// receives each result.
func (c *Client) RunSaved(ctx context.Context, names []string, set map[string]string, captures map[string]json.RawMessage, done func(savedcall.Result)) error {
	calls, err := c.saved.Load(names)
	if err != nil {
		return err
	}
	catalog := calltest.Catalog{List: c.stack.List}
	runner := calltest.Runner{
		Connect: func(context.Context) (calltest.Conn, error) { return savedConn{c}, nil },
		Find:    catalog.Find,
		Env: func(name string) (string, bool) {
			if value, ok := set[name]; ok {
				return value, true
			}
			return os.LookupEnv(name)
		},
		Captures: captures, Timeout: savedTimeout, Redact: c.stack.Redact,
	}
	return runner.Run(ctx, calls, done)
}

// savedConn sends saved calls in the session of a UI.
type savedConn struct{ client *Client }

// Request implements [calltest.Conn].
func (c savedConn) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return c.client.Request(ctx, method, params, nil)
}

// Close does nothing: the session belongs to the UI.
func (savedConn) Close() error { return nil }
