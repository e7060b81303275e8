package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pair returns a client of each era for one daemon.
func (w *World) Pair(front string) (legacy, modern *Client) {
	w.T.Helper()
	if front == "http" {
		legacy, modern = w.Served().RawClient(), w.Served().Stateless()
	} else {
		legacy, modern = w.Socket(), w.Socket().Stateless()
	}
	legacy.Caps = Obj{"elicitation": Obj{}, "sampling": Obj{}, "roots": Obj{}}
	modern.Caps = legacy.Caps
	legacy.Init()
	if front == "http" {
		legacy.Listen()
	}
	return legacy, modern
}

// InputRequests checks that a response is input_required, and returns the state and the
// keys of the input requests by method.
func InputRequests(t *testing.T, m Message) (state string, keys map[string]string) {
	t.Helper()
	require.Nil(t, m.Error, "%s", m.Raw)
	require.Equal(t, `"input_required"`, string(At(m.Result, "resultType")), "%s", m.Raw)
	require.Nil(t, At(m.Result, "ttlMs"))
	state = Str(m.Result, "requestState")
	require.NotEmpty(t, state)
	var inputs map[string]struct{ Method string }
	require.NoError(t, json.Unmarshal(At(m.Result, "inputRequests"), &inputs))
	keys = map[string]string{}
	for k, in := range inputs {
		keys[in.Method] = k
	}
	return state, keys
}

var Accepted = Obj{"action": "accept", "content": Obj{"name": "Alice"}}

const SubscriptionID = ProtocolPrefix + "subscriptionId"

func Watchable() Obj {
	return Obj{
		"tools": []Obj{Tool("t")}, "prompts": []Obj{{"name": "p"}},
		"resources":    []Obj{Resource("file:///a"), Resource("file:///b")},
		"capabilities": Obj{"tools": Obj{"listChanged": true}, "prompts": Obj{"listChanged": true}, "resources": Obj{"subscribe": true, "listChanged": true}},
	}
}

func (c *Client) ListenTo(filter Obj) (id string, honoured json.RawMessage) {
	c.T.Helper()
	id = c.Begin("subscriptions/listen", Obj{"notifications": filter})
	ack := c.WaitNote("notifications/subscriptions/acknowledged", func(p json.RawMessage) bool { return SubscriptionOf(p) == id })
	return id, At(ack.Params, "notifications")
}

func SubscriptionOf(params json.RawMessage) string {
	return string(At(params, "_meta", SubscriptionID))
}

// StopListening closes a listen as its transport requires.
func (c *Client) StopListening(id string) {
	c.T.Helper()
	if c.Web != nil {
		c.Web.Abort(id)
		return
	}
	c.Notify("notifications/cancelled", Obj{"requestId": json.RawMessage(id)})
}

const ModernRevision = "2026-07-28"

func (w *World) ModernBackend(kind string, script Obj, conf ...Obj) *Backend {
	w.T.Helper()
	script["era"] = "modern"
	if kind == "http" {
		return w.Remote("b", "/mcp", script, conf...)
	}
	return w.Backend("b", script, conf...)
}

// ProtocolMeta returns a value of the _meta that a server received, by the last part of
// its key.
func ProtocolMeta(m Event, key string) string {
	return string(At(m.Msg, "params", "_meta", "io.modelcontextprotocol/"+key))
}

const ProtocolPrefix = "io.modelcontextprotocol/"

// Stateless makes a client speak 2026-07-28: its requests carry the required values in
// _meta and, over HTTP, in headers.
func (c *Client) Stateless(meta ...Obj) *Client {
	c.Modern = true
	write := c.Write
	c.Write = func(frame []byte) {
		var m Obj
		dec := json.NewDecoder(strings.NewReader(string(frame)))
		dec.UseNumber()
		if dec.Decode(&m) != nil || m["id"] == nil {
			write(frame)
			return
		}
		params, _ := m["params"].(Obj)
		if params == nil {
			params = Obj{}
		}
		own, _ := params["_meta"].(Obj)
		full := Obj{
			ProtocolPrefix + "protocolVersion": ModernRevision, ProtocolPrefix + "clientCapabilities": c.Caps,
			ProtocolPrefix + "clientInfo": Obj{"name": "stateless", "version": "1"},
		}
		for _, more := range append(meta, own) {
			for k, v := range more {
				full[k] = v
			}
		}
		params["_meta"], m["params"] = full, params
		write(Marshal(m))
	}
	return c
}

// OverEveryTransport runs a test with stateless clients over each transport.
func OverEveryTransport(t *testing.T, test func(t *testing.T, w *World, connect func() *Client)) {
	t.Helper()
	t.Parallel()
	for _, transport := range Variants(1, "http", "socket") {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			w := NewWorld(t)
			test(t, w, func() *Client {
				if transport == "socket" {
					return w.Socket().Stateless()
				}
				return w.Served().Stateless()
			})
		})
	}
}

func (s *Web) Stateless() *Client {
	s.T.Helper()
	return s.Named("stateless")
}

// Named is like Stateless, with the given client name.
func (s *Web) Named(name string) *Client {
	s.T.Helper()
	c := s.RawClient().Stateless(Obj{ProtocolPrefix + "clientInfo": Obj{"name": name, "version": "1"}})
	c.Web.Stateless = true
	return c
}

// StandardHeaders copies parts of a body to the headers of a stateless POST.
func StandardHeaders(head http.Header, frame []byte) {
	head.Set("MCP-Protocol-Version", Str(frame, "params", "_meta", ProtocolPrefix+"protocolVersion"))
	method := Str(frame, "method")
	head.Set("Mcp-Method", method)
	name := Str(frame, "params", "name")
	if method == "resources/read" {
		name = Str(frame, "params", "uri")
	}
	if strings.HasPrefix(method, "tasks/") {
		name = Str(frame, "params", "taskId")
	}
	if name != "" {
		head.Set("Mcp-Name", name)
	}
}

const TasksExtension = ProtocolPrefix + "tasks"

// TaskBackend adds a server over the given transport.
func (w *World) TaskBackend(name, kind string, script Obj) *Backend {
	w.T.Helper()
	if kind == "http" {
		return w.Remote(name, "/mcp", script)
	}
	return w.Backend(name, script)
}
