package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"goblin/gateway/jsonrpc"
)

const (
	maxOrder  = 1 << 20  // bytes of a request
	maxReport = 64 << 20 // bytes of an answer
)

// controlRequest is the only request of a control connection.
type controlRequest struct {
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args,omitempty"`
}

type controlAnswer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// OperationError is the error of an operation that failed in the daemon.
type OperationError struct{ Op, Message string }

func (e *OperationError) Error() string { return e.Message }

// Control sends op with args to the daemon at p and decodes its answer into out. args and
// out may be nil. It returns [ErrNotRunning], an [*OperationError] or a connection error.
// The end of ctx also cancels the operation in the daemon.
func Control(ctx context.Context, p Endpoint, op string, args, out any) error {
	c, err := Dial(ctx, p, KindControl)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	o := controlRequest{Op: op}
	if args != nil {
		if o.Args, err = json.Marshal(args); err != nil {
			return fmt.Errorf("ask the daemon to %s: %w", op, err)
		}
	}
	line, err := []byte(nil), writeLine(c, o)
	if err == nil {
		line, err = jsonrpc.NewReader(c, maxReport).Read()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		} else if errors.Is(err, io.EOF) {
			err = errors.New("it exited before answering")
		}
		return fmt.Errorf("ask the daemon to %s: %w", op, err)
	}
	var r controlAnswer
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("ask the daemon to %s: malformed answer: %w", op, err)
	}
	if r.Error != "" {
		return &OperationError{op, r.Error}
	}
	if out != nil && r.Result != nil {
		if err := json.Unmarshal(r.Result, out); err != nil {
			return fmt.Errorf("ask the daemon to %s: malformed answer: %w", op, err)
		}
	}
	return nil
}

func control(ctx context.Context, c net.Conn, r io.Reader, do func(context.Context, string, json.RawMessage) (any, error)) error {
	if err := c.SetReadDeadline(time.Now().Add(helloLimit)); err != nil {
		return err
	}
	line, err := jsonrpc.NewReader(r, maxOrder).Read()
	if errors.Is(err, io.EOF) {
		return nil // the caller only checked for a daemon
	}
	if err != nil {
		return fmt.Errorf("read a control request: %w", err)
	}
	var o controlRequest
	var out controlAnswer
	if err := json.Unmarshal(line, &o); err != nil || o.Op == "" {
		out.Error = `a control request is {"op":"...","args":...}`
	} else {
		out = perform(ctx, c, o, do)
	}
	if err := c.SetWriteDeadline(time.Now().Add(helloLimit)); err != nil {
		return err
	}
	if err := writeLine(c, out); err != nil && !isHangup(err) { // the command may have been interrupted
		return fmt.Errorf("answer a control request: %w", err)
	}
	return nil
}

func perform(ctx context.Context, c net.Conn, o controlRequest, do func(context.Context, string, json.RawMessage) (any, error)) controlAnswer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return controlAnswer{Error: err.Error()}
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_, _ = c.Read(make([]byte, 1)) // ends with the connection or the deadline below
		cancel()
	}()
	res, err := do(ctx, o.Op, o.Args)
	_ = c.SetReadDeadline(time.Now())
	<-watched
	if err == nil {
		var raw []byte
		if raw, err = json.Marshal(res); err == nil {
			return controlAnswer{Result: raw}
		}
	}
	return controlAnswer{Error: err.Error()}
}
