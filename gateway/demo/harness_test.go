package demo_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience limits waits for required events. It measures nothing.
const patience = 30 * time.Second

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *rpcError       `json:"error"`
}

// client is a raw JSON-RPC client of one demo server.
type client struct {
	t      *testing.T
	in     io.WriteCloser
	out    chan message
	done   chan error
	nextID int
	unread []message // messages skipped by a wait for another one
}

// start serves the server name and initializes. The end of the test closes the input and
// checks that the server exits without an error.
func start(t *testing.T, name string) *client {
	t.Helper()
	c := startRaw(t, name)
	c.result("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "test", "version": "1"},
	})
	c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return c
}

func startRaw(t *testing.T, name string) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: t, in: inW, out: make(chan message, 4096), done: make(chan error, 1)}
	go func() {
		err := demo.Run(context.Background(), name, inR, outW)
		_ = outW.Close()
		c.done <- err
	}()
	go func() {
		defer close(c.out)
		lines := bufio.NewReader(outR)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var m message
			if json.Unmarshal(line, &m) != nil || m.JSONRPC != "2.0" {
				t.Errorf("not JSON-RPC on the output: %q", line)
			}
			c.out <- m
		}
	}()
	t.Cleanup(func() { c.end() })
	return c
}

// end closes the input, waits for the server and returns the unread messages.
func (c *client) end() []message {
	c.t.Helper()
	_ = c.in.Close()
	select {
	case err := <-c.done:
		require.NoError(c.t, err)
		c.done <- nil // so that end can be called again
	case <-time.After(patience):
		c.t.Fatal("the server did not exit with its input")
	}
	rest := c.unread
	for m := range c.out {
		rest = append(rest, m)
	}
	return rest
}

func (c *client) send(v any) {
	c.t.Helper()
	line, err := json.Marshal(v)
	require.NoError(c.t, err)
	_, err = c.in.Write(append(line, '\n'))
	require.NoError(c.t, err)
}

// request sends a request and returns its id without waiting.
func (c *client) request(method string, params any) string {
	c.t.Helper()
	c.nextID++
	c.send(map[string]any{"jsonrpc": "2.0", "id": c.nextID, "method": method, "params": params})
	return strconv.Itoa(c.nextID)
}

// next returns the first message that matches, old ones first. It keeps the others.
func (c *client) next(what string, match func(message) bool) message {
	c.t.Helper()
	for i, m := range c.unread {
		if match(m) {
			c.unread = append(c.unread[:i:i], c.unread[i+1:]...)
			return m
		}
	}
	deadline := time.After(patience)
	for {
		select {
		case m, ok := <-c.out:
			if !ok {
				c.t.Fatalf("the server exited before %s", what)
			}
			if match(m) {
				return m
			}
			c.unread = append(c.unread, m)
		case <-deadline:
			c.t.Fatalf("no %s", what)
		}
	}
}

func (c *client) response(id string) message {
	c.t.Helper()
	return c.next("response "+id, func(m message) bool { return string(m.ID) == id && m.Method == "" })
}

func (c *client) notification(method string) json.RawMessage {
	c.t.Helper()
	return c.next(method, func(m message) bool { return m.Method == method }).Params
}

func (c *client) result(method string, params any) json.RawMessage {
	c.t.Helper()
	m := c.response(c.request(method, params))
	require.Nil(c.t, m.Error, "%s %v", method, params)
	return m.Result
}

func (c *client) failure(method string, params any) rpcError {
	c.t.Helper()
	m := c.response(c.request(method, params))
	require.NotNil(c.t, m.Error, "%s %v succeeded", method, params)
	return *m.Error
}

type toolResult struct {
	IsError           bool            `json:"isError"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	Content           []struct {
		Type, Text, URI, Name, Title, MimeType, Data string
	} `json:"content"`
}

func (c *client) call(tool string, args map[string]any) toolResult {
	c.t.Helper()
	return decode[toolResult](c.t, c.result("tools/call", map[string]any{"name": tool, "arguments": args}))
}

type contents struct{ URI, MimeType, Text, Blob string }

func (c *client) read(uri string) []contents {
	c.t.Helper()
	return decode[struct{ Contents []contents }](c.t, c.result("resources/read", map[string]any{"uri": uri})).Contents
}

type listed struct {
	URI, Name, Title, Description, MimeType string
	Size                                    *int
}

// list reads all pages of resources/list and returns their number.
func (c *client) list() (all []listed, pages int) {
	c.t.Helper()
	params := map[string]any{}
	for {
		page := decode[struct {
			Resources  []listed
			NextCursor *string
		}](c.t, c.result("resources/list", params))
		all, pages = append(all, page.Resources...), pages+1
		if page.NextCursor == nil {
			return all, pages
		}
		require.Less(c.t, pages, 100, "the pages never end")
		params["cursor"] = *page.NextCursor
	}
}

func (c *client) complete(ref map[string]any, name, value string, resolved map[string]string) (values []string, total int, more bool) {
	c.t.Helper()
	r := decode[struct {
		Completion struct {
			Values  []string
			Total   int
			HasMore bool
		}
	}](c.t, c.result("completion/complete", map[string]any{
		"ref": ref, "argument": map[string]any{"name": name, "value": value},
		"context": map[string]any{"arguments": resolved},
	}))
	return r.Completion.Values, r.Completion.Total, r.Completion.HasMore
}

func template(uri string) map[string]any { return map[string]any{"type": "ref/resource", "uri": uri} }

func prompt(name string) map[string]any { return map[string]any{"type": "ref/prompt", "name": name} }

func decode[T any](t *testing.T, raw json.RawMessage) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	return v
}
