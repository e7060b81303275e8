package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
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

const Revision = "2025-11-25"

// Message is a received JSON-RPC message.
type Message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
	Raw    string `json:"-"`
	Seq    int    `json:"-"` // number among all messages of the client
	Via    string `json:"-"` // HTTP: the raw id of the request whose response carried it, or GET
}

// Client is a small raw MCP client that records everything it receives.
type Client struct {
	board
	T       *testing.T
	Prog    *Program
	Write   func(frame []byte)
	Close   func()
	LastID  int
	Replies map[string][]Message
	Notes   []Message
	Asks    []Message // requests from the server
	Stray   []string
	lost    []string // why HTTP responses are missing
	seq     int
	Ended   bool
	Caps    Obj
	Reply   func(ask Message) (result, fault any) // nil leaves requests unanswered
	Web     *webSession
	Modern  bool       // set by Stateless
	gate    sync.Mutex // held while reading is paused
}

func NewClient(t *testing.T) *Client {
	return &Client{T: t, Replies: map[string][]Message{}, Caps: Obj{}}
}

// huge matches the head of a response. Of a response over 8 MiB only the id is parsed,
// because decoding would dominate the measured time.
var huge = regexp.MustCompile(`^\{"jsonrpc":"2\.0","id":(\d+),"result":`)

func parseFrame(frame []byte) (m Message, err error) {
	if found := huge.FindSubmatch(frame[:min(len(frame), 100)]); found != nil && len(frame) > 8<<20 {
		return Message{ID: found[1], Result: frame[len(found[0]) : len(frame)-1]}, nil
	}
	err = json.Unmarshal(frame, &m)
	return m, err
}

func (c *Client) receive(frame []byte) { c.receiveVia(frame, "") }

func (c *Client) receiveVia(frame []byte, via string) {
	m, err := parseFrame(frame)
	if err != nil {
		c.Update(func() { c.Stray = append(c.Stray, string(frame)) })
		return
	}
	m.Raw, m.Via = string(frame), via
	var reply func(Message) (any, any)
	c.Update(func() {
		c.seq++
		m.Seq = c.seq
		switch {
		case m.Method == "":
			c.Replies[string(m.ID)] = append(c.Replies[string(m.ID)], m)
		case m.ID == nil:
			c.Notes = append(c.Notes, m)
		default:
			c.Asks = append(c.Asks, m)
			reply = c.Reply
		}
	})
	if reply != nil {
		c.Answer(m, reply)
	}
}

func (c *Client) Answer(ask Message, reply func(Message) (any, any)) {
	result, fault := reply(ask)
	if fault != nil {
		c.Write(Marshal(Obj{"jsonrpc": "2.0", "id": ask.ID, "error": fault}))
	} else if result != nil {
		c.Write(Marshal(Obj{"jsonrpc": "2.0", "id": ask.ID, "result": result}))
	}
}

// Pipe starts a command that speaks MCP on stdin and stdout. The client is not
// initialized.
func (w *World) Pipe(args ...string) *Client {
	w.T.Helper()
	w.Write()
	return w.PipeTo(Goblin, args...)
}

func (w *World) PipeTo(path string, args ...string) *Client {
	w.T.Helper()
	c := NewClient(w.T)
	var in io.WriteCloser
	var out io.ReadCloser
	c.Prog = w.Execute(path, func(cmd *exec.Cmd) {
		var err error
		in, err = cmd.StdinPipe()
		require.NoError(w.T, err)
		r, pw := io.Pipe()
		out = r
		cmd.Stdout = pw
	}, args...)
	go func() {
		<-c.Prog.Exited
		_ = out.Close()
	}()
	c.Write = func(frame []byte) { _, _ = in.Write(append(slices.Clone(frame), '\n')) } // an exit is noticed on stdout
	c.Close = func() { _ = in.Close() }
	go c.ReadLines(out)
	w.T.Cleanup(func() {
		c.Close()
		c.Prog.Ends(Patience)
		c.sound()
	})
	return c
}

// sound fails the test if the client received something other than MCP, or several
// responses to a request.
func (c *Client) sound() {
	c.T.Helper()
	c.Mu.Lock()
	defer c.Mu.Unlock()
	require.Empty(c.T, c.Stray, "only MCP")
	for id, all := range c.Replies {
		require.Len(c.T, all, 1, "answers to id %s", id)
	}
}

// version is the version of the binary in handshakes. A daemon only accepts clients of its
// own version.
var version = sync.OnceValues(func() (string, error) {
	text, err := exec.Command(Goblin, "version", "--json").Output()
	own := Str(text, "version")
	if Str(text, "build") != "" {
		own += "-dev"
	}
	return own, err
})

// Connect connects to the socket of the world's daemon and performs the handshake up to
// the start of MCP.
func (w *World) Connect() (net.Conn, *bufio.Reader) {
	w.T.Helper()
	w.Served()
	own, err := version()
	require.NoError(w.T, err)
	conn, err := net.Dial("unix", w.Sockets()[0])
	require.NoError(w.T, err)
	_, err = fmt.Fprintf(conn, `{"goblin":1,"kind":"mcp","version":%q,"pid":%d}`+"\n", own, os.Getpid())
	require.NoError(w.T, err)
	in := bufio.NewReaderSize(conn, 64<<10)
	welcome, err := in.ReadString('\n')
	require.NoError(w.T, err)
	require.Contains(w.T, welcome, `"ok":true`)
	return conn, in
}

// Socket returns an uninitialized client on the socket of the world's daemon. It is like
// goblin stdio without its process.
func (w *World) Socket() *Client {
	w.T.Helper()
	conn, in := w.Connect()
	c := NewClient(w.T)
	c.Write = func(frame []byte) { _, _ = conn.Write(append(slices.Clone(frame), '\n')) } // an end is noticed on reading
	c.Close = func() { _ = conn.(*net.UnixConn).CloseWrite() }
	go c.ReadLines(in)
	w.T.Cleanup(func() {
		_ = conn.Close()
		c.Wait("the end of the connection", func() bool { return c.Ended })
		c.sound()
	})
	return c
}

// Join returns an initialized client on the daemon's socket.
func (w *World) Join() *Client {
	w.T.Helper()
	c := w.Socket()
	c.Init()
	return c
}

// Pause makes the client stop reading, except for what its pipe already contains.
func (c *Client) Pause() (release func()) {
	c.gate.Lock()
	return c.gate.Unlock
}

func (c *Client) ReadLines(out io.Reader) {
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		c.gate.Lock()
		c.gate.Unlock() //nolint:staticcheck // it only waits
		if err != nil {
			c.Update(func() { c.Ended = true })
			return
		}
		c.receive(line[:len(line)-1])
	}
}

// Standalone returns an initialized client of goblin stdio --standalone.
func (w *World) Standalone() *Client {
	w.T.Helper()
	c := w.Pipe("stdio", "--standalone")
	c.Init()
	return c
}

// Bridged returns an initialized client of goblin stdio, which shares a daemon.
func (w *World) Bridged() *Client {
	w.T.Helper()
	w.AllowDaemon = true
	c := w.Pipe("stdio")
	c.Init()
	return c
}

func (c *Client) Init() json.RawMessage {
	c.T.Helper()
	result := c.Ok("initialize", Obj{
		"protocolVersion": Revision, "capabilities": c.Caps,
		"clientInfo": Obj{"name": "e2e", "version": "1"},
	})
	c.Notify("notifications/initialized", nil)
	return result
}

func (c *Client) Notify(method string, params any) {
	m := Obj{"jsonrpc": "2.0", "method": method}
	if params != nil {
		m["params"] = params
	}
	c.Write(Marshal(m))
}

// Begin sends a request and returns its id.
func (c *Client) Begin(method string, params any) string {
	var id string
	c.Update(func() { c.LastID++; id = strconv.Itoa(c.LastID) })
	m := Obj{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method}
	if params != nil {
		m["params"] = params
	}
	c.Write(Marshal(m))
	return id
}

func (c *Client) End(id string) (m Message) {
	c.T.Helper()
	c.Wait("the answer to "+id, func() bool {
		if len(c.Replies[id]) == 0 {
			return false
		}
		m = c.Replies[id][0]
		return true
	})
	return m
}

func (c *Client) Wait(what string, cond func() bool) {
	c.T.Helper()
	if !c.Holds(Patience, cond) {
		c.T.Fatalf("client: waited %v for: %s\nit got:\n%s", Patience, what, c.Story())
	}
}

func (c *Client) Story() string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	var s strings.Builder
	for _, why := range c.lost {
		s.WriteString(why + "\n")
	}
	for _, m := range c.Notes {
		s.WriteString(m.Raw[:min(len(m.Raw), 300)] + "\n")
	}
	for _, m := range c.Asks {
		s.WriteString(m.Raw[:min(len(m.Raw), 300)] + "\n")
	}
	return Tail(s.String(), 6000)
}

func (c *Client) Request(method string, params any) Message {
	c.T.Helper()
	return c.End(c.Begin(method, params))
}

func (c *Client) Ok(method string, params any) json.RawMessage {
	c.T.Helper()
	m := c.Request(method, params)
	require.False(c.T, m.Failed(), "%s %s gave %s", method, Marshal(params), m.Raw[:min(len(m.Raw), 2000)])
	return m.Result
}

func (c *Client) Fault(method string, params any) RpcError {
	c.T.Helper()
	m := c.Request(method, params)
	require.NotNil(c.T, m.Error, "%s %s gave %s", method, Marshal(params), m.Raw)
	return ParseError(c.T, m)
}

// Fails calls a tool whose server is down, too slow or broken.
func (c *Client) Fails(call Obj) RpcError {
	c.T.Helper()
	return ParseFailure(c.T, c.Request("tools/call", call))
}

// Works calls a tool and reports whether the server returned a result.
func (c *Client) Works(call any) bool {
	c.T.Helper()
	m := c.Request("tools/call", call)
	return !m.Failed()
}

// Failed reports whether the message is an error, or a result that Goblin made from one.
func (m *Message) Failed() bool {
	return m.Error != nil || At(m.Result, "_meta", "goblin/error") != nil
}

// ParseFailure parses the result for a model if a tool's server didn't answer.
func ParseFailure(t *testing.T, m Message) RpcError {
	t.Helper()
	require.Nil(t, m.Error, "an error, which agents mistake for a broken connection: %s", m.Raw)
	require.Equal(t, "true", string(At(m.Result, "isError")), "%s", m.Raw)
	require.Len(t, Each(m.Result, "content"), 1)
	require.Equal(t, "text", Str(m.Result, "content", 0, "type"))
	return RpcError{Message: Str(m.Result, "content", 0, "text"), Data: At(m.Result, "_meta", "goblin/error")}
}

type RpcError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

func ParseError(t *testing.T, m Message) (e RpcError) {
	t.Helper()
	require.NotNil(t, m.Error, "no error: %s", m.Raw)
	require.NoError(t, json.Unmarshal(m.Error, &e))
	return e
}

func (e RpcError) Kind() string { return Str(e.Data, "code") }

// WaitNote waits for the first notification of a method that matches fits.
func (c *Client) WaitNote(method string, fits func(params json.RawMessage) bool) (found Message) {
	c.T.Helper()
	c.Wait(method, func() bool {
		for _, m := range c.Notes {
			if m.Method == method && (fits == nil || fits(m.Params)) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func (c *Client) NotesOf(method string) []Message {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	var out []Message
	for _, m := range c.Notes {
		if m.Method == method {
			out = append(out, m)
		}
	}
	return out
}

// Forget drops the notifications so far, after a round trip.
func (c *Client) Forget() {
	c.T.Helper()
	if c.Modern {
		c.Ok("server/discover", Obj{})
	} else {
		c.Ok("ping", nil)
	}
	c.Update(func() { c.Notes = nil })
}

// Settle waits for the notifications that a start of servers causes, and drops them.
func (c *Client) Settle() {
	c.T.Helper()
	c.Quiet()
	c.Forget()
}

// Quiet waits until no more notifications arrive: list_changed is delayed by at most 300
// ms.
func (c *Client) Quiet() {
	for n := -1; c.Holds(1500*time.Millisecond, func() bool { return len(c.Notes) != n }); {
		c.Update(func() { n = len(c.Notes) })
	}
}

func (c *Client) Updates() []string {
	out := []string{}
	for _, m := range c.NotesOf("notifications/resources/updated") {
		out = append(out, Str(m.Params, "uri"))
	}
	return out
}

func (c *Client) WaitUpdates(n int) []string {
	c.T.Helper()
	c.Wait("resources/updated", func() bool {
		seen := 0
		for _, m := range c.Notes {
			if m.Method == "notifications/resources/updated" {
				seen++
			}
		}
		return seen >= n
	})
	return c.Updates()
}

func (c *Client) WaitAsks(n int) Message {
	c.T.Helper()
	c.Wait("a request from the server", func() bool { return len(c.Asks) >= n })
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.Asks[n-1]
}

// Member returns the member of a list result that contains the entries.
func Member(kind string) string {
	if kind == "templates" {
		return "resourceTemplates"
	}
	return kind
}

func ListMethod(kind string) string {
	if kind == "templates" {
		return "resources/templates/list"
	}
	return kind + "/list"
}

// List returns all pages of "tools", "prompts", "resources" or "templates", without
// Goblin's own resources.
func (c *Client) List(kind string) []json.RawMessage {
	c.T.Helper()
	var out []json.RawMessage
	params := Obj{}
	for range 10000 {
		result := c.Ok(ListMethod(kind), params)
		for _, e := range Each(result, Member(kind)) {
			if !strings.Contains(Str(e, "uri"), "goblin://") {
				out = append(out, e)
			}
		}
		cursor := At(result, "nextCursor")
		if cursor == nil {
			return out
		}
		params = Obj{"cursor": cursor}
	}
	c.T.Fatal("an endless list")
	return nil
}

func (c *Client) Names(kind string) []string {
	c.T.Helper()
	key := map[string]string{"tools": "name", "prompts": "name", "resources": "uri", "templates": "uriTemplate"}[kind]
	out := []string{}
	for _, e := range c.List(kind) {
		out = append(out, Str(e, key))
	}
	return out
}

// WaitListed waits until a name is listed, or not listed. It lists again after each
// list_changed.
func (c *Client) WaitListed(kind, name string, listed bool) {
	c.T.Helper()
	notice := "notifications/" + strings.Replace(kind, "templates", "resources", 1) + "/list_changed"
	for {
		seen := len(c.NotesOf(notice))
		if slices.Contains(c.Names(kind), name) == listed {
			return
		}
		c.Wait(notice+" for "+name, func() bool {
			n := 0
			for _, m := range c.Notes {
				if m.Method == notice {
					n++
				}
			}
			return n > seen
		})
	}
}

func (c *Client) ReadText(uri string) string {
	c.T.Helper()
	return Str(c.Ok("resources/read", Obj{"uri": uri}), "contents", 0, "text")
}

func (c *Client) CallText(tool string, args any) string {
	c.T.Helper()
	return Str(c.Ok("tools/call", Obj{"name": tool, "arguments": args}), "content", 0, "text")
}

// At returns the part of raw JSON at a path of member names and indexes, or nil.
func At(raw json.RawMessage, path ...any) json.RawMessage {
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

func Str(raw json.RawMessage, path ...any) string {
	var s string
	_ = json.Unmarshal(At(raw, path...), &s) // "" for another type
	return s
}

func Each(raw json.RawMessage, path ...any) []json.RawMessage {
	var a []json.RawMessage
	_ = json.Unmarshal(At(raw, path...), &a)
	return a
}
