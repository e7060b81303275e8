package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"goblin/gateway/jsonrpc"
)

// revision is the protocol revision that commands speak. The gateway waits for
// tools that run as tasks only, because it is one without tasks.
const revision = "2025-06-18"

// token is the progress token of a command's one request.
const token = "1"

// goodbye is how long a cancellation may take to be sent.
const goodbye = 200 * time.Millisecond

// client is an MCP client for one request at a time. It offers nothing to the
// server: sampling, elicitation and roots are refused.
type client struct {
	conn net.Conn
	in   *jsonrpc.Reader
	last int64

	// progress, if not nil, is told of progress.
	progress func(Progress)
}

// Progress is one notice of a server on a running request.
type Progress struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress float64         `json:"progress"`
	Total    float64         `json:"total"`
	Message  string          `json:"message"`
}

// dial initializes a session on conn. frame is the most that an answer may
// have, in bytes. The end of ctx ends every later call, too.
func dial(ctx context.Context, conn net.Conn, frame int64, version string) (*client, error) {
	// An answer may grow by the names that are put into it.
	c := &client{conn: conn, in: jsonrpc.NewReader(conn, frame+frame/2+1<<20)}
	params, err := json.Marshal(map[string]any{
		"protocolVersion": revision,
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "goblin", "title": "Goblin command line", "version": version},
	})
	if err != nil {
		return nil, err
	}
	if _, err := c.call(ctx, "initialize", params); err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	if err := c.send(jsonrpc.Notification("notifications/initialized", nil)); err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	return c, nil
}

func (c *client) send(frame []byte) error {
	_, err := c.conn.Write(frame)
	return err
}

// call makes one request and returns the raw result. An error of the server is
// a *jsonrpc.Error. When ctx ends the request is cancelled and the client can
// no longer be used.
func (c *client) call(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
	c.last++
	id := strconv.AppendInt(nil, c.last, 10)
	cancelled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cancelled)
		_ = c.conn.SetWriteDeadline(time.Now().Add(goodbye))
		// Best effort: whoever does not take it sees the connection end.
		_ = c.send(jsonrpc.Cancellation(id, ""))
		c.conn.Close()
	})
	result, err := c.exchange(id, jsonrpc.Request(id, method, params))
	if !stop() {
		<-cancelled
		return nil, ctx.Err()
	}
	return result, err
}

func (c *client) exchange(id, frame []byte) (json.RawMessage, error) {
	if err := c.send(frame); err != nil {
		return nil, gone(err)
	}
	for {
		frame, err := c.in.Read()
		var long *jsonrpc.TooLong
		switch {
		case errors.As(err, &long):
			if string(long.ID()) == string(id) {
				return nil, long
			}
			continue
		case err != nil:
			return nil, gone(err)
		}
		m, err := jsonrpc.Parse(frame)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the gateway's answer is broken: %w", err)
		case m.IsResponse() && string(m.ID) == string(id):
			if m.Error != nil {
				return nil, jsonrpc.ParseErrorObject(m.Error)
			}
			return m.Result, nil
		case m.IsRequest():
			if err := c.refuse(m); err != nil {
				return nil, gone(err)
			}
		case m.Method == "notifications/progress":
			c.tell(m.Params)
		}
	}
}

// refuse answers the server's own requests.
func (c *client) refuse(m jsonrpc.Message) error {
	if m.Method == "ping" {
		return c.send(jsonrpc.Result(m.ID, []byte(`{}`)))
	}
	return c.send(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "a command line cannot do %s", m.Method).Frame(m.ID))
}

func (c *client) tell(params []byte) {
	var p Progress
	if c.progress != nil && json.Unmarshal(params, &p) == nil && string(p.Token) == `"`+token+`"` {
		c.progress(p)
	}
}

// gone explains the end of the connection.
func gone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) {
		return Fail(CodeConnect, "the gateway ended before it answered")
	}
	return Fail(CodeConnect, "talk to the gateway: %w", err)
}
