package stack

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

type user struct {
	t *testing.T
	*Client
	got chan dialog
}

// dialog is a request in the UI.
type dialog struct {
	ctx    context.Context
	method string
	params json.RawMessage
	reply  chan<- userAnswer
}

type userAnswer struct {
	result json.RawMessage
	err    error
}

func sits(t *testing.T, i *Stack) *user {
	u := &user{t: t, got: make(chan dialog, 10)}
	u.Client = open(t, i, func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		reply := make(chan userAnswer, 1)
		u.got <- dialog{ctx, method, params, reply}
		select {
		case a := <-reply:
			return a.result, a.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	return u
}

// sees waits for a request and returns it with its asker.
func (u *user) sees() (dialog, registry.Asker) {
	u.t.Helper()
	select {
	case d := <-u.got:
		var by registry.Asker
		require.NoError(u.t, json.Unmarshal(rawjson.Path(d.params, "_meta", registry.AskerKey), &by))
		return d, by
	case <-time.After(patience):
		require.FailNow(u.t, "no request arrived")
		panic("unreachable")
	}
}

func (u *user) seesNothing() {
	u.t.Helper()
	require.Empty(u.t, u.got)
}

func (p *peer) asked() jsonrpc.Message {
	p.t.Helper()
	for {
		select {
		case m := <-p.got:
			if m.IsRequest() {
				return m
			}
		case <-time.After(patience):
			require.FailNow(p.t, "no request arrived")
		}
	}
}

func (p *peer) wasNotAsked() {
	p.t.Helper()
	for len(p.got) > 0 {
		m := <-p.got
		require.False(p.t, m.IsRequest(), m.Method)
	}
}

func (d dialog) withdrawn(t *testing.T) {
	t.Helper()
	select {
	case <-d.ctx.Done():
	case <-time.After(patience):
		require.FailNow(t, "the request is still open")
	}
}

// asker is a server that sends requests during calls of t, and when it receives a log
// level. The tool "wait" waits until "go" is called.
func asker(question string) string {
	return `"capabilities":{"tools":{},"logging":{}},"tools":[{"name":"t","inputSchema":{"type":"object"}},{"name":"wait","inputSchema":{"type":"object"}},{"name":"go","inputSchema":{"type":"object"}}],` +
		`"on":{"tools/call t":[` + question + `,{"do":"answers"}],"logging/setLevel":[` + question + `],"tools/call wait":[{"do":"wait","name":"w"}],"tools/call go":[{"do":"release","name":"w"},{"do":"text","text":"gone"}]}`
}

const (
	elicits = `{"do":"request","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}},"_meta":{"goblin/asker":{"server":"another"},"k":1}}}`
	opens   = `{"do":"request","method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x.example/","elicitationId":"e"}}`
	samples = `{"do":"request","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`
)

func TestQuestionThatNoClientCanBeAskedIsAskedOnAScreen(t *testing.T) {
	t.Parallel()
	const accepted = `{"action":"accept","content":{"name":"Ada"}}`
	for name, question := range map[string]string{"form": elicits, "url": opens, "sampling": samples} {
		t.Run(name, func(t *testing.T) {
			i, logs := start(t, "", fake{name: "s", script: asker(question)})
			able := joinAs(t, i, "able", `{"elicitation":{"form":{},"url":{}},"sampling":{}}`)
			unable := joinAs(t, i, "unable", `{}`)
			able.ask("tools/list", `{}`)
			u := sits(t, i)
			answers := func(want registry.Asker) {
				t.Helper()
				d, by := u.sees()
				require.Equal(t, want, by)
				if name == "form" {
					require.Contains(t, string(d.params), `"k":1`)
				}
				d.reply <- userAnswer{result: json.RawMessage(accepted)}
			}

			// Outside of any call.
			able.send(jsonrpc.RequestFrame([]byte("1"), "logging/setLevel", []byte(`{"level":"info"}`)))
			answers(registry.Asker{Server: "s", Why: registry.AskNoCall})
			received(t, logs["s"], `"id":"ask-1"`, accepted)
			require.Nil(t, able.answer().Error)

			// In a call of a client that did not declare it.
			unable.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_t"}`)))
			answers(registry.Asker{Server: "s", Why: registry.AskUnable, Client: "unable", Call: "s_t"})
			require.Contains(t, string(unable.answer().Result), "Ada")

			// While calls of several clients run.
			able.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_wait"}`)))
			received(t, logs["s"], `"wait"`)
			unable.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_t"}`)))
			answers(registry.Asker{Server: "s", Why: registry.AskAmbiguous})
			require.Contains(t, string(unable.answer().Result), "Ada")
			unable.ask("tools/call", `{"name":"s_go"}`)
			require.Nil(t, able.answer().Error)

			able.wasNotAsked()
			unable.wasNotAsked()
			asked := traffic(t, i, 3, func(r registry.TrafficRecord) bool {
				return r.Direction == registry.ToClient && r.Session == u.Session() && r.Status == "success"
			})
			require.Len(t, asked, 3)

			// A call of the UI.
			ended := make(chan json.RawMessage, 1)
			go func() {
				result, _ := u.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t"}`), nil)
				ended <- result
			}()
			answers(registry.Asker{Server: "s", Why: registry.AskOwnCall, Call: "s_t"})
			require.Contains(t, string(<-ended), "Ada")
		})
	}
}

func TestClientThatCanBeAskedIsAskedAndNoScreen(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: asker(elicits)})
	c := joinAs(t, i, "able", `{"elicitation":{}}`)
	u := sits(t, i)
	c.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_t"}`)))
	q := c.asked()
	require.Equal(t, "elicitation/create", q.Method)
	require.Contains(t, string(q.Params), `"another"`, "clients do not receive the server's value")
	c.send(jsonrpc.ResultFrame(q.ID, []byte(`{"action":"decline"}`)))
	require.Contains(t, string(c.answer().Result), "decline")
	u.seesNothing()
}

func TestCallsOfAScreenCountForItAlone(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "", fake{name: "s", script: asker(elicits)})
	c := joinAs(t, i, "able", `{"elicitation":{}}`)
	u := sits(t, i)
	// An open UI does not make a client's call ambiguous.
	c.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_t"}`)))
	q := c.asked()
	c.send(jsonrpc.ResultFrame(q.ID, []byte(`{"action":"decline"}`)))
	require.Contains(t, string(c.answer().Result), "decline")
	// A call of the UI does.
	go u.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_wait"}`), nil) //nolint:errcheck // stopped by the test
	received(t, logs["s"], `"wait"`)
	c.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_t"}`)))
	d, by := u.sees()
	require.Equal(t, registry.AskAmbiguous, by.Why)
	d.reply <- userAnswer{result: json.RawMessage(`{"action":"cancel"}`)}
	require.Contains(t, string(c.answer().Result), "cancel")
	c.ask("tools/call", `{"name":"s_go"}`)
}

func TestFirstOfSeveralScreensAnswers(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: asker(elicits)})
	c := join(t, i)
	one, two, busy := sits(t, i), sits(t, i), sits(t, i)
	open(t, i, nil) // a UI without a user
	c.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_t"}`)))
	first, _ := one.sees()
	second, _ := two.sees()
	third, _ := busy.sees()
	third.reply <- userAnswer{err: errors.New("too many questions wait for an answer already")}
	require.NoError(t, one.Close(), "a closing UI leaves the request to the others")
	first.withdrawn(t)
	require.NoError(t, second.ctx.Err())
	four := sits(t, i)
	four.seesNothing()
	second.reply <- userAnswer{result: json.RawMessage(`{"action":"decline"}`)}
	require.Contains(t, string(c.answer().Result), "decline")

	c.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_t"}`)))
	second, _ = two.sees()
	fourth, _ := four.sees()
	third, _ = busy.sees()
	fourth.reply <- userAnswer{err: &jsonrpc.Error{Code: -1, Message: "User rejected sampling request"}}
	require.Contains(t, string(c.answer().Result), "User rejected", "a refusal is an answer")
	second.withdrawn(t)
	third.withdrawn(t)
}

func TestQuestionOnAScreenEndsWithItsCall(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: asker(elicits)})
	c := join(t, i)
	u := sits(t, i)
	c.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_t"}`)))
	d, _ := u.sees()
	c.send(jsonrpc.NotificationFrame("notifications/cancelled", []byte(`{"requestId":1}`)))
	d.withdrawn(t)
}

func TestScreensThatAllCloseAreNoAnswer(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "", fake{name: "s", script: asker(elicits)})
	c := join(t, i)
	c.ask("tools/list", `{}`)
	u := sits(t, i)
	c.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_t"}`)))
	u.sees()
	require.NoError(t, u.Close())
	require.Contains(t, string(c.answer().Result), "did not declare elicitation")
	c.ask("logging/setLevel", `{"level":"info"}`)
	received(t, logs["s"], `"id":"ask-2"`, `{"action":"cancel"}`)
}

func TestUserOfAScreenMayTakeLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "", fake{name: "s", script: asker(elicits), extra: ", call_timeout: 2s"}, fake{name: "o", script: asker(elicits), extra: ", call_timeout: 2s"})
	one, two, three := join(t, i), join(t, i), join(t, i)
	u := sits(t, i)
	one.ask("tools/list", `{}`)
	one.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_wait"}`)))
	received(t, logs["s"], `"wait"`)
	two.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_t"}`)))
	d, by := u.sees()
	require.Equal(t, registry.AskAmbiguous, by.Why)
	require.Contains(t, string(three.ask("tools/call", `{"name":"o_wait"}`).Result), "REQUEST_TIMEOUT", "not sent to any user")
	d.reply <- userAnswer{result: json.RawMessage(`{"action":"decline"}`)}
	require.Contains(t, string(two.answer().Result), "decline")
	two.ask("tools/call", `{"name":"s_go"}`)
	require.NotContains(t, string(one.answer().Result), "REQUEST_TIMEOUT", "this call may have caused it")
}

func TestRootsAreNeverAskedOfAScreen(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: asker(`{"do":"request","method":"roots/list"}`)})
	c := join(t, i)
	u := sits(t, i)
	require.Contains(t, string(c.ask("tools/call", `{"name":"s_t"}`).Result), "-32601")
	u.seesNothing()
}

func TestModernServerIsToldWhatAScreenCanAnswer(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "", fake{name: "s", script: `"era":"modern",` + asker(elicits)})
	c := join(t, i)
	c.ask("tools/call", `{"name":"s_go"}`)
	u := sits(t, i)
	c.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_t"}`)))
	d, by := u.sees()
	require.Equal(t, registry.Asker{Server: "s", Why: registry.AskUnable, Client: "editor", Call: "s_t"}, by)
	d.reply <- userAnswer{result: json.RawMessage(`{"action":"decline"}`)}
	require.Contains(t, string(c.answer().Result), "decline")
	text, err := os.ReadFile(logs["s"])
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.Contains(line, `"name":"go"`):
			require.Contains(t, line, `clientCapabilities":{}`)
		case strings.Contains(line, `"name":"t"`):
			require.Contains(t, line, `"elicitation":{"form":{},"url":{}},"sampling":{}`)
		}
	}
	require.NoError(t, u.Close())
	require.Contains(t, string(c.ask("tools/call", `{"name":"s_t"}`).Error), "elicitation")
}

func TestStatelessClientThatLacksACapabilityIsHelpedByAScreen(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: asker(elicits)})
	c := join(t, i)
	const call = `{"name":"s_t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"new"}}}`
	u := sits(t, i)
	c.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(call)))
	d, by := u.sees()
	require.Equal(t, registry.Asker{Server: "s", Why: registry.AskUnable, Client: "new", Call: "s_t"}, by)
	d.reply <- userAnswer{result: json.RawMessage(`{"action":"decline"}`)}
	require.Contains(t, string(c.answer().Result), "decline")
}

func TestScreenHelpsAStatelessClientThatAModernServerRefuses(t *testing.T) {
	t.Parallel()
	const missing = `{"do":"error","times":2,"error":{"code":-32021,"message":"no","data":{"requiredCapabilities":{"elicitation":{}}}}}`
	i, logs := start(t, "", fake{name: "s", script: `"era":"modern",` + asker(missing+","+elicits)})
	c := join(t, i)
	const call = `{"name":"s_t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"new"}}}`
	code, _ := rawjson.Int(rawjson.Get(c.ask("tools/call", call).Error, "code"))
	require.EqualValues(t, -32021, code, "no UI is open")
	u := sits(t, i)
	c.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(call)))
	d, by := u.sees()
	require.Equal(t, registry.Asker{Server: "s", Why: registry.AskUnable, Client: "new", Call: "s_t"}, by)
	d.reply <- userAnswer{result: json.RawMessage(`{"action":"decline"}`)}
	require.Contains(t, string(c.answer().Result), "decline")
	received(t, logs["s"], `"tools/call"`, `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"sampling":{}}`)
}
