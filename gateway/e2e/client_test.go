package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const revision = "2025-11-25"

// message is one JSON-RPC message as it arrived.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
	raw    string
	seq    int    // place among all messages of the client
	via    string // HTTP: the raw id of the request whose response carried it, or GET
}

// client is a small raw MCP client. It keeps everything it receives.
type client struct {
	board
	t       *testing.T
	prog    *program
	write   func(frame []byte)
	close   func()
	lastID  int
	replies map[string][]message
	notes   []message
	asks    []message // requests of the server
	stray   []string
	seq     int
	ended   bool
	caps    obj
	reply   func(ask message) (result, fault any) // nil: asks stay open
	web     *webSession
	modern  bool       // see stateless
	gate    sync.Mutex // held while the client reads nothing
}

func newClient(t *testing.T) *client {
	return &client{t: t, replies: map[string][]message{}, caps: obj{}}
}

// huge is an answer that takes so long to decode that a test would measure its
// client: of one over 8 MiB only the id is looked at.
var huge = regexp.MustCompile(`^\{"jsonrpc":"2\.0","id":(\d+),"result":`)

func parseFrame(frame []byte) (m message, err error) {
	if found := huge.FindSubmatch(frame[:min(len(frame), 100)]); found != nil && len(frame) > 8<<20 {
		return message{ID: found[1], Result: frame[len(found[0]) : len(frame)-1]}, nil
	}
	err = json.Unmarshal(frame, &m)
	return m, err
}

// receive files one frame.
func (c *client) receive(frame []byte) { c.receiveVia(frame, "") }

func (c *client) receiveVia(frame []byte, via string) {
	m, err := parseFrame(frame)
	if err != nil {
		c.update(func() { c.stray = append(c.stray, string(frame)) })
		return
	}
	m.raw, m.via = string(frame), via
	var reply func(message) (any, any)
	c.update(func() {
		c.seq++
		m.seq = c.seq
		switch {
		case m.Method == "":
			c.replies[string(m.ID)] = append(c.replies[string(m.ID)], m)
		case m.ID == nil:
			c.notes = append(c.notes, m)
		default:
			c.asks = append(c.asks, m)
			reply = c.reply
		}
	})
	if reply != nil {
		c.answer(m, reply)
	}
}

func (c *client) answer(ask message, reply func(message) (any, any)) {
	result, fault := reply(ask)
	if fault != nil {
		c.write(marshal(obj{"jsonrpc": "2.0", "id": ask.ID, "error": fault}))
	} else if result != nil {
		c.write(marshal(obj{"jsonrpc": "2.0", "id": ask.ID, "result": result}))
	}
}

// pipe starts a command that speaks MCP on its pipes. It is not initialised.
func (w *world) pipe(args ...string) *client {
	w.t.Helper()
	w.write()
	return w.pipeTo(goblin, args...)
}

func (w *world) pipeTo(path string, args ...string) *client {
	w.t.Helper()
	c := newClient(w.t)
	var in io.WriteCloser
	var out io.ReadCloser
	c.prog = w.execute(path, func(cmd *exec.Cmd) {
		var err error
		in, err = cmd.StdinPipe()
		require.NoError(w.t, err)
		r, pw := io.Pipe()
		out = r
		cmd.Stdout = pw
	}, args...)
	go func() {
		<-c.prog.exited
		_ = out.Close()
	}()
	c.write = func(frame []byte) { _, _ = in.Write(append(slices.Clone(frame), '\n')) } // the end is seen on stdout
	c.close = func() { _ = in.Close() }
	go c.readLines(out)
	w.t.Cleanup(func() {
		c.close()
		c.prog.ends(patience)
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Empty(w.t, c.stray, "stdout carries MCP only")
		for id, all := range c.replies {
			require.Len(w.t, all, 1, "answers to id %s", id)
		}
	})
	return c
}

// pause makes the client read nothing more, but for what its pipe holds.
func (c *client) pause() (release func()) {
	c.gate.Lock()
	return c.gate.Unlock
}

func (c *client) readLines(out io.Reader) {
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		c.gate.Lock()
		c.gate.Unlock() //nolint:staticcheck // it only waits
		if err != nil {
			c.update(func() { c.ended = true })
			return
		}
		c.receive(line[:len(line)-1])
	}
}

// standalone is an initialised client of goblin stdio --standalone.
func (w *world) standalone() *client {
	w.t.Helper()
	c := w.pipe("stdio", "--standalone")
	c.init()
	return c
}

// bridged is an initialised client of goblin stdio, which shares a host.
func (w *world) bridged() *client {
	w.t.Helper()
	w.hosted = true
	c := w.pipe("stdio")
	c.init()
	return c
}

// init does the handshake and gives its result.
func (c *client) init() json.RawMessage {
	c.t.Helper()
	result := c.ok("initialize", obj{
		"protocolVersion": revision, "capabilities": c.caps,
		"clientInfo": obj{"name": "e2e", "version": "1"},
	})
	c.notify("notifications/initialized", nil)
	return result
}

func (c *client) notify(method string, params any) {
	m := obj{"jsonrpc": "2.0", "method": method}
	if params != nil {
		m["params"] = params
	}
	c.write(marshal(m))
}

// begin sends a request and gives its id.
func (c *client) begin(method string, params any) string {
	var id string
	c.update(func() { c.lastID++; id = strconv.Itoa(c.lastID) })
	m := obj{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method}
	if params != nil {
		m["params"] = params
	}
	c.write(marshal(m))
	return id
}

// end waits for the answer to a request.
func (c *client) end(id string) (m message) {
	c.t.Helper()
	c.wait("the answer to "+id, func() bool {
		if len(c.replies[id]) == 0 {
			return false
		}
		m = c.replies[id][0]
		return true
	})
	return m
}

func (c *client) wait(what string, cond func() bool) {
	c.t.Helper()
	if !c.holds(patience, cond) {
		c.t.Fatalf("client: waited %v for: %s\nit got:\n%s", patience, what, c.story())
	}
}

func (c *client) story() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var s strings.Builder
	for _, m := range c.notes {
		s.WriteString(m.raw[:min(len(m.raw), 300)] + "\n")
	}
	for _, m := range c.asks {
		s.WriteString(m.raw[:min(len(m.raw), 300)] + "\n")
	}
	return tail(s.String(), 6000)
}

func (c *client) request(method string, params any) message {
	c.t.Helper()
	return c.end(c.begin(method, params))
}

// ok asks and expects a result.
func (c *client) ok(method string, params any) json.RawMessage {
	c.t.Helper()
	m := c.request(method, params)
	require.Nil(c.t, m.Error, "%s %s", method, marshal(params))
	return m.Result
}

// fault asks and expects an error.
func (c *client) fault(method string, params any) rpcError {
	c.t.Helper()
	m := c.request(method, params)
	require.NotNil(c.t, m.Error, "%s %s gave %s", method, marshal(params), m.raw)
	return parseError(c.t, m)
}

type rpcError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

func parseError(t *testing.T, m message) (e rpcError) {
	t.Helper()
	require.NotNil(t, m.Error, "no error: %s", m.raw)
	require.NoError(t, json.Unmarshal(m.Error, &e))
	return e
}

// kind is data.code.
func (e rpcError) kind() string { return str(e.Data, "code") }

// noted waits for the first notification of a method that fits.
func (c *client) noted(method string, fits func(params json.RawMessage) bool) (found message) {
	c.t.Helper()
	c.wait(method, func() bool {
		for _, m := range c.notes {
			if m.Method == method && (fits == nil || fits(m.Params)) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// notesOf are the notifications of a method so far.
func (c *client) notesOf(method string) []message {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []message
	for _, m := range c.notes {
		if m.Method == method {
			out = append(out, m)
		}
	}
	return out
}

// forget drops the notifications so far, after a round trip.
func (c *client) forget() {
	c.t.Helper()
	if c.modern {
		c.ok("server/discover", obj{})
	} else {
		c.ok("ping", nil)
	}
	c.update(func() { c.notes = nil })
}

// settle drops the notifications so far, once those that a start of servers
// causes have come.
func (c *client) settle() {
	c.t.Helper()
	c.quiet()
	c.forget()
}

// quiet waits until no notifications come any more: list_changed waits for
// 300 ms at most.
func (c *client) quiet() {
	for n := -1; c.holds(1500*time.Millisecond, func() bool { return len(c.notes) != n }); {
		c.update(func() { n = len(c.notes) })
	}
}

// updates are the URIs of resources/updated so far.
func (c *client) updates() []string {
	out := []string{}
	for _, m := range c.notesOf("notifications/resources/updated") {
		out = append(out, str(m.Params, "uri"))
	}
	return out
}

// waitUpdates waits for the n-th resources/updated.
func (c *client) waitUpdates(n int) []string {
	c.t.Helper()
	c.wait("resources/updated", func() bool {
		seen := 0
		for _, m := range c.notes {
			if m.Method == "notifications/resources/updated" {
				seen++
			}
		}
		return seen >= n
	})
	return c.updates()
}

// asked waits for the n-th request of the server.
func (c *client) asked(n int) message {
	c.t.Helper()
	c.wait("a request of the server", func() bool { return len(c.asks) >= n })
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asks[n-1]
}

// member is the member of a list's result that holds the entries.
func member(kind string) string {
	if kind == "templates" {
		return "resourceTemplates"
	}
	return kind
}

func listMethod(kind string) string {
	if kind == "templates" {
		return "resources/templates/list"
	}
	return kind + "/list"
}

// list follows all pages of "tools", "prompts", "resources" or "templates".
// Goblin's own resource is left out.
func (c *client) list(kind string) []json.RawMessage {
	c.t.Helper()
	var out []json.RawMessage
	params := obj{}
	for range 10000 {
		result := c.ok(listMethod(kind), params)
		for _, e := range each(result, member(kind)) {
			if !strings.Contains(str(e, "uri"), "goblin://") {
				out = append(out, e)
			}
		}
		cursor := at(result, "nextCursor")
		if cursor == nil {
			return out
		}
		params = obj{"cursor": cursor}
	}
	c.t.Fatal("a list without an end")
	return nil
}

// names are the listed names or URIs of a kind.
func (c *client) names(kind string) []string {
	c.t.Helper()
	key := map[string]string{"tools": "name", "prompts": "name", "resources": "uri", "templates": "uriTemplate"}[kind]
	out := []string{}
	for _, e := range c.list(kind) {
		out = append(out, str(e, key))
	}
	return out
}

// waitListed waits, from one list_changed to the next, until a name is listed,
// or is not.
func (c *client) waitListed(kind, name string, listed bool) {
	c.t.Helper()
	notice := "notifications/" + strings.Replace(kind, "templates", "resources", 1) + "/list_changed"
	for {
		seen := len(c.notesOf(notice))
		if slices.Contains(c.names(kind), name) == listed {
			return
		}
		c.wait(notice+" for "+name, func() bool {
			n := 0
			for _, m := range c.notes {
				if m.Method == notice {
					n++
				}
			}
			return n > seen
		})
	}
}

// readText reads a resource and gives the text of its first content.
func (c *client) readText(uri string) string {
	c.t.Helper()
	return str(c.ok("resources/read", obj{"uri": uri}), "contents", 0, "text")
}

// callText calls a tool and gives the text of its first content.
func (c *client) callText(tool string, args any) string {
	c.t.Helper()
	return str(c.ok("tools/call", obj{"name": tool, "arguments": args}), "content", 0, "text")
}

// at walks into raw JSON by member names and indexes; nil means absent.
func at(raw json.RawMessage, path ...any) json.RawMessage {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			var o map[string]json.RawMessage
			if json.Unmarshal(raw, &o) != nil {
				return nil
			}
			raw = o[step]
		case int:
			var a []json.RawMessage
			if json.Unmarshal(raw, &a) != nil || step >= len(a) {
				return nil
			}
			raw = a[step]
		}
	}
	return raw
}

func str(raw json.RawMessage, path ...any) string {
	var s string
	_ = json.Unmarshal(at(raw, path...), &s) // another type is no text
	return s
}

func each(raw json.RawMessage, path ...any) []json.RawMessage {
	var a []json.RawMessage
	_ = json.Unmarshal(at(raw, path...), &a)
	return a
}
