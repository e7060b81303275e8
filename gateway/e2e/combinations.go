package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Variants returns all variants with the build tag e2e or faults, and otherwise the first
// n.
func Variants[T any](n int, all ...T) []T {
	if AllVariants {
		return all
	}
	return all[:n]
}

// Combination is a client of one era over one transport and a server of one era over one
// transport.
type Combination struct{ front, clientEra, back, backEra string }

func (x Combination) ModernClient() bool { return x.clientEra == "modern" }

func (x Combination) ModernBackend() bool { return x.backEra == "modern" }

// combinations contain each pair of values of any two of the four dimensions.
var combinations = Variants(1,
	Combination{"http", "legacy", "stdio", "modern"},
	Combination{"http", "modern", "http", "legacy"},
	Combination{"stdio", "legacy", "http", "legacy"},
	Combination{"stdio", "modern", "stdio", "legacy"},
	Combination{"stdio", "modern", "http", "modern"},
)

// EachCombination runs a test for all combinations.
func EachCombination(t *testing.T, test func(t *testing.T, w *World, x Combination)) {
	t.Helper()
	t.Parallel()
	for _, x := range combinations {
		t.Run(x.clientEra+" "+x.front+" to "+x.backEra+" "+x.back, func(t *testing.T) {
			t.Parallel()
			test(t, NewWorld(t), x)
		})
	}
}

func (x Combination) Backend(w *World, script Obj, conf ...Obj) *Backend {
	w.T.Helper()
	if x.ModernBackend() {
		return w.ModernBackend(x.back, script, conf...)
	}
	if x.back == "http" {
		return w.Remote("b", "/mcp", script, conf...)
	}
	return w.Backend("b", script, conf...)
}

// Client connects a client that answers requests by reply after the duration takes.
func (x Combination) Client(w *World, caps Obj, takes time.Duration, reply func(method string, params json.RawMessage) any) *interactiveClient {
	w.T.Helper()
	h := &interactiveClient{x: x, takes: takes, Reply: reply}
	switch {
	case x.front == "stdio":
		h.Client = w.Pipe("stdio", "--standalone")
	case x.ModernClient():
		h.Client = w.Served().RawClient()
		h.Web.Stateless = true
	default:
		h.Client = w.Served().RawClient()
	}
	h.Caps = caps
	if x.ModernClient() {
		h.Stateless()
		return h
	}
	h.Client.Reply = func(m Message) (any, any) {
		time.Sleep(takes)
		return reply(m.Method, m.Params), nil
	}
	h.Greeting = h.Init()
	if x.front == "http" {
		h.Listen()
	}
	return h
}

// interactiveClient is a client that simulates its user.
type interactiveClient struct {
	*Client
	x     Combination
	takes time.Duration
	Reply func(method string, params json.RawMessage) any
	// Greeting is the result of initialize.
	Greeting json.RawMessage
}

// Call sends a request and answers the server's requests as the client's era requires,
// until there is a result.
func (h *interactiveClient) Call(method string, params Obj) Message {
	h.T.Helper()
	for {
		m := h.Request(method, params)
		if Str(m.Result, "resultType") != "input_required" {
			return m
		}
		require.True(h.T, h.x.ModernClient(), "%s", m.Raw)
		var inputs map[string]struct {
			Method string
			Params json.RawMessage
		}
		require.NoError(h.T, json.Unmarshal(At(m.Result, "inputRequests"), &inputs))
		answers := Obj{}
		time.Sleep(h.takes)
		for key, in := range inputs {
			answers[key] = h.Reply(in.Method, in.Params)
		}
		again := Obj{}
		for k, v := range params {
			again[k] = v
		}
		again["inputResponses"] = answers // without responses of earlier rounds
		if state := At(m.Result, "requestState"); state != nil {
			again["requestState"] = state
		}
		params = again
	}
}
