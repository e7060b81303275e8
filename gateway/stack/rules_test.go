package stack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// guarded has tools, a prompt and a resource, and reports each request.
const guarded = `"tools":[{"name":"delete","inputSchema":{"type":"object"}},{"name":"read","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}],` +
	`"prompts":[{"name":"p","arguments":[{"name":"a"}]}],"resources":[{"uri":"file:///a","name":"a"}],` +
	`"on":{"tools/call delete":[{"do":"echo"}],"tools/call read":[{"do":"count"}]}`

// rig is a daemon with one server, a client and, while opened, a UI.
type rig struct {
	t   *testing.T
	i   *Stack
	log string
	c   *peer
}

func guard(t *testing.T, rules ...string) *rig {
	t.Helper()
	i, logs := start(t, "", fake{name: "s", script: guarded})
	r := &rig{t: t, i: i, log: logs["s"], c: join(t, i)}
	r.c.ask("tools/list", `{}`)
	for _, text := range rules {
		r.add(text)
	}
	return r
}

func (r *rig) add(text string) uint64 {
	r.t.Helper()
	id, err := r.i.AddRule(text)
	require.NoError(r.t, err)
	return id
}

// stopped waits for n stopped requests and returns the last one.
func (r *rig) stopped(n int) registry.StoppedRequest {
	r.t.Helper()
	var all []registry.StoppedRequest
	require.Eventually(r.t, func() bool {
		all = r.i.Registry().Rules().Stopped
		return len(all) == n
	}, patience, time.Millisecond)
	if n == 0 {
		return registry.StoppedRequest{}
	}
	return all[n-1]
}

func (r *rig) begin(id int, method, params string) {
	r.t.Helper()
	r.c.send(jsonrpc.RequestFrame(fmt.Append(nil, id), method, []byte(params)))
}

func (r *rig) decide(d registry.Decision) {
	r.t.Helper()
	require.NoError(r.t, r.i.DecideStop(r.stopped(1).ID, d))
}

// reached counts the calls of a method that the server received.
func (r *rig) reached(method string) int {
	r.t.Helper()
	text, err := os.ReadFile(r.log)
	require.NoError(r.t, err)
	return strings.Count(string(text), `"method":"`+method+`"`)
}

// recorded waits for a record of a method with steps that contain text.
func (r *rig) recorded(method, text string) {
	r.t.Helper()
	traffic(r.t, r.i, 1, func(rec registry.TrafficRecord) bool {
		return rec.Method == method && strings.Contains(registry.RuleSummary(rec.Events), text)
	})
}

const (
	deleteCall = `{"name":"s_delete","arguments":{"path":"/"}}`
	stopDelete = `{when: "name:*delete*", then: stop}`
)

func deniedResult(t *testing.T, m jsonrpc.Message, server string) {
	t.Helper()
	require.Nil(t, m.Error, "%s", m.Error)
	require.Equal(t, "true", string(rawjson.Get(m.Result, "isError")))
	require.JSONEq(t, `{"code":"DENIED","server":"`+server+`"}`, string(rawjson.Path(m.Result, "_meta", "goblin/error")))
}

func TestUserDecidesAboutAStoppedCall(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		decision registry.Decision
		answer   func(t *testing.T, m jsonrpc.Message)
		events   string
		reached  int
	}{
		"send": {
			registry.Decision{Action: registry.DecideSend},
			func(t *testing.T, m jsonrpc.Message) { require.Contains(t, string(m.Result), `\"path\":\"/\"`) }, "stopped, sent by the user", 1,
		},
		"changed": {
			registry.Decision{Action: registry.DecideSend, Params: json.RawMessage("{\"name\":\"s_delete\",\n\"arguments\":{\"path\":\"/tmp/x\"}}")},
			func(t *testing.T, m jsonrpc.Message) { require.Contains(t, string(m.Result), `\"path\":\"/tmp/x\"`) },
			`stopped, changed and sent by the user, path: "/" → "/tmp/x"`, 1,
		},
		"deny": {
			registry.Decision{Action: registry.DecideDeny, Text: "ask me first"},
			func(t *testing.T, m jsonrpc.Message) {
				deniedResult(t, m, "s")
				require.Contains(t, string(m.Result), "ask me first")
			}, "stopped, denied by the user", 0,
		},
		"answer": {
			registry.Decision{Action: registry.DecideAnswer, Result: json.RawMessage(`{"content":[]}`)},
			func(t *testing.T, m jsonrpc.Message) { require.JSONEq(t, `{"content":[]}`, string(m.Result)) }, "stopped, answered by the user", 0,
		},
		"fail": {
			registry.Decision{Action: registry.DecideFail, Code: -32001, Text: "no"},
			func(t *testing.T, m jsonrpc.Message) {
				require.JSONEq(t, `{"code":-32001,"message":"no"}`, string(m.Error))
			}, "stopped, failed by the user", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := guard(t, stopDelete)
			open(t, r.i, nil)
			r.begin(1, "tools/call", `{"name":"s_delete","arguments":{"path":"/"},"_meta":{"progressToken":"p"}}`)
			r.c.hears("notifications/progress")
			one.decision.Params = bytes.ReplaceAll(one.decision.Params, []byte(`"arguments"`), []byte(`"_meta":{"progressToken":"p"},"arguments"`))
			if len(one.decision.Params) == 0 {
				one.decision.Params = nil
			}
			require.Equal(t, s(r.stopped(1).Params, "arguments"), `{"path":"/"}`)
			r.begin(2, "tools/call", `{"name":"s_read"}`)
			require.Equal(t, "2", string(r.c.answer().ID), "other calls continue")
			waits := r.i.gateway.Pending.All()
			require.Len(t, waits, 1)
			require.True(t, waits[0].UserAsked)
			require.Equal(t, "s", waits[0].Server)
			r.decide(one.decision)
			one.answer(t, r.c.answer())
			r.recorded("tools/call", one.events)
			rec := traffic(t, r.i, 1, func(rec registry.TrafficRecord) bool { return len(rec.Events) > 0 })[0]
			require.Positive(t, rec.UserWait)
			require.LessOrEqual(t, rec.UserWait, rec.Duration)
			require.Equal(t, one.reached+1, r.reached("tools/call"))
			r.stopped(0)
			require.Equal(t, uint64(1), r.i.Registry().Rules().Rules[0].Hits)
		})
	}
}

func s(raw []byte, member string) string { return string(rawjson.Get(raw, member)) }

func TestInvalidDecisionsLeaveTheStop(t *testing.T) {
	t.Parallel()
	r := guard(t, stopDelete)
	open(t, r.i, nil)
	r.begin(1, "tools/call", deleteCall)
	id := r.stopped(1).ID
	for why, d := range map[string]registry.Decision{
		"keep the name":      {Action: registry.DecideSend, Params: json.RawMessage(`{"name":"s_read","arguments":{}}`)},
		"can be mistaken":    {Action: registry.DecideSend, Params: json.RawMessage(`{"name":"s_delete","Name":"s_read"}`)},
		"must be a JSON":     {Action: registry.DecideSend, Params: json.RawMessage(`{"name":"s_delete","arguments":[]}`)},
		"valid JSON":         {Action: registry.DecideSend, Params: json.RawMessage(`{"name":"s_delete",`)},
		"at most":            {Action: registry.DecideSend, Params: json.RawMessage(`{"name":"s_delete","arguments":{"a":"` + strings.Repeat("x", 9<<20) + `"}}`)},
		"result is missing":  {Action: registry.DecideAnswer},
		"no answer yet":      {Action: registry.DecideSend, Result: json.RawMessage(`{}`)},
		"must be a JSON obj": {Action: registry.DecideAnswer, Result: json.RawMessage(`[]`)},
		"unknown action":     {Action: "allow"},
		"sent unchanged":     {Action: registry.DecideDeny, Remember: registry.RememberTool},
		"cannot remember":    {Action: registry.DecideSend, Remember: "always"},
	} {
		require.ErrorContains(t, r.i.DecideStop(id, d), why)
	}
	r.decide(registry.Decision{Action: registry.DecideDeny})
	deniedResult(t, r.c.answer(), "s")
	require.ErrorContains(t, r.i.DecideStop(id, registry.Decision{Action: registry.DecideSend}), "no longer waits")
	require.Zero(t, r.reached("tools/call"))
}

func TestDefaultAppliesWithoutADecision(t *testing.T) {
	t.Parallel()
	r := guard(t, `{when: "name:*delete*", then: stop, timeout: 20ms, text: "not now"}`, `{when: "name:*read", then: stop, timeout: 20ms, default: send}`)
	denied := r.c.ask("tools/call", deleteCall)
	deniedResult(t, denied, "s")
	require.Contains(t, string(denied.Result), "not now")
	r.recorded("tools/call", "stopped, but no UI is open, denied by default")
	require.NotContains(t, string(r.c.ask("tools/call", `{"name":"s_read"}`).Result), "DENIED")

	open(t, r.i, nil)
	deniedResult(t, r.c.ask("tools/call", deleteCall), "s")
	require.NotContains(t, string(r.c.ask("tools/call", `{"name":"s_read"}`).Result), "DENIED")
	r.recorded("tools/call", "time is up")
	require.Equal(t, 2, r.reached("tools/call"))
	for _, one := range r.i.Registry().Rules().Rules {
		require.LessOrEqual(t, one.Hits, uint64(2))
	}
}

func TestStopEndsWithItsClientAndUI(t *testing.T) {
	t.Parallel()
	r := guard(t, stopDelete)
	ui := open(t, r.i, nil)
	r.begin(1, "tools/call", deleteCall)
	r.stopped(1)
	r.c.send(jsonrpc.NotificationFrame("notifications/cancelled", []byte(`{"requestId":1}`)))
	r.stopped(0)
	r.recorded("tools/call", "the client no longer waits")

	other := join(t, r.i)
	other.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(deleteCall)))
	r.stopped(1)
	require.NoError(t, other.conn.Close())
	r.stopped(0)

	r.begin(2, "tools/call", deleteCall)
	r.stopped(1)
	require.NoError(t, ui.Close())
	deniedResult(t, r.c.answer(), "s")
	require.Zero(t, r.reached("tools/call"))
}

func TestStoppedRequestKeepsTheRuleThatStoppedIt(t *testing.T) {
	t.Parallel()
	r := guard(t)
	id := r.add(stopDelete)
	open(t, r.i, nil)
	r.begin(1, "tools/call", deleteCall)
	before := r.stopped(1)
	require.NoError(t, r.i.ChangeRule(id, `{when: "name:*delete*", then: stop, timeout: 1ms, default: send}`))
	require.NoError(t, r.i.RemoveRule(id))
	require.Equal(t, before, r.stopped(1))
	r.decide(registry.Decision{Action: registry.DecideDeny})
	deniedResult(t, r.c.answer(), "s")
}

// TestNoPathToAServerAvoidsARule lists all requests that reach a server.
func TestNoPathToAServerAvoidsARule(t *testing.T) {
	t.Parallel()
	const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"new"}}`
	r := guard(t)
	for _, one := range []struct{ rule, method, params, reached string }{
		{"name:s_delete", "tools/call", `{"name":"s_delete"}`, "tools/call"},
		{"name:s_delete", "tools/call", `{"name":"delete"}`, "tools/call"},
		{"name:s_delete", "tools/call", `{"name":"s/delete"}`, "tools/call"},
		{"name:=delete", "tools/call", `{"name":"s_\u0064elete"}`, "tools/call"},
		{"s_delete", "tools/call", `{"name":"delete"}`, "tools/call"},
		{"server:s", "tools/call", `{"name":"s_delete",` + envelope + `}`, "tools/call"},
		{"name:s_delete", "tools/call", `{"name":"s_delete","task":{}}`, "tools/call"},
		{"destructive:yes", "tools/call", `{"name":"s_delete"}`, "tools/call"},
		{"name:s/p", "prompts/get", `{"name":"p"}`, "prompts/get"},
		{"name:=p", "completion/complete", `{"ref":{"type":"ref/prompt","name":"s/p"},"argument":{"name":"a","value":""}}`, "completion/complete"},
		{"name:=file:///a", "resources/read", `{"uri":"mcp://s/file:///a"}`, "resources/read"},
		{"name:=mcp://s/file:///a", "resources/read", `{"uri":"file:///a"}`, "resources/read"},
		{"name:=file:///a", "resources/subscribe", `{"uri":"mcp://s/file:///a"}`, "resources/subscribe"},
	} {
		id := r.add(`{when: "` + one.rule + `", then: deny, text: "refused here"}`)
		m := r.c.ask(one.method, one.params)
		require.Contains(t, string(m.Result)+string(m.Error), "refused here", "%s %s", one.method, one.params)
		require.Contains(t, string(m.Result)+string(m.Error), "DENIED", "%s %s", one.method, one.params)
		require.NoError(t, r.i.RemoveRule(id))
		require.Zero(t, r.reached(one.reached), "%s %s", one.method, one.params)
	}
	for _, method := range []string{"tools/list", "logging/setLevel", "ping"} {
		id := r.add(`{when: "method:` + method + `", then: fail, code: -3, text: "refused here"}`)
		require.Contains(t, string(r.c.ask(method, `{"level":"info"}`).Error), "refused here")
		require.NoError(t, r.i.RemoveRule(id))
	}
	r.add(`{when: "", then: fail}`)
	require.Nil(t, r.c.ask("ping", `{}`).Error, "only a rule that names it")
}

func TestAnswersAreChangedByRules(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct{ rule, method, params, want, event string }{
		"answer": {`{when: "name:s_read", on: answer, then: answer, result: {content: []}}`, "tools/call", `{"name":"s_read"}`, `{"content":[]}`, "answered"},
		"deny":   {`{when: "name:s_read", on: answer, then: deny}`, "tools/call", `{"name":"s_read"}`, "DENIED", "denied"},
		"fail":   {`{when: "name:s_read", on: answer, then: fail, code: -7, text: gone}`, "tools/call", `{"name":"s_read"}`, `"code":-7`, "failed"},
		"list":   {`{when: "method:tools/list", on: answer, then: answer, result: {tools: []}}`, "tools/list", `{}`, `{"tools":[]}`, "answered"},
		"error":  {`{when: "method:prompts/get", on: answer, then: answer, result: {messages: []}}`, "prompts/get", `{"name":"none"}`, `{"messages":[]}`, "answered"},
		"page":   {`{when: "method:resources/read", then: delay, delay: 1ms}`, "resources/read", `{"uri":"file:///a"}`, `"contents"`, "delayed 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := guard(t, one.rule)
			m := r.c.ask(one.method, one.params)
			require.Contains(t, string(m.Result)+string(m.Error), one.want)
			r.recorded(one.method, one.event)
		})
	}
}

func TestUserChangesAnAnswer(t *testing.T) {
	t.Parallel()
	r := guard(t, `{when: "name:s_read", on: answer, then: stop}`)
	open(t, r.i, nil)
	r.begin(1, "tools/call", `{"name":"s_read"}`)
	stopped := r.stopped(1)
	require.Contains(t, string(stopped.Answer), "content")
	require.ErrorContains(t, r.i.DecideStop(stopped.ID, registry.Decision{Action: registry.DecideSend, Remember: registry.RememberTool}), "can be remembered")
	r.decide(registry.Decision{Action: registry.DecideSend, Result: json.RawMessage(`{"content":[{"type":"text","text":"mine"}]}`)})
	require.Contains(t, string(r.c.answer().Result), "mine")
	r.recorded("tools/call", "changed by the user, content: ")
}

func TestStaleRepeatsThePreviousAnswer(t *testing.T) {
	t.Parallel()
	r := guard(t)
	id := r.add(`{when: "name:s_read", then: stale}`)
	first := r.c.ask("tools/call", `{"name":"s_read"}`)
	require.Equal(t, string(first.Result), string(r.c.ask("tools/call", `{"name":"s_read"}`).Result))
	require.NotEqual(t, string(first.Result), string(join(t, r.i).ask("tools/call", `{"name":"s_read"}`).Result), "another client")
	require.NotEqual(t, string(first.Result), string(r.c.ask("tools/call", `{"name":"s_read","arguments":{"a":1}}`).Result), "another request")
	require.NoError(t, r.i.RemoveRule(id))
	require.NotEqual(t, string(first.Result), string(r.c.ask("tools/call", `{"name":"s_read"}`).Result))
	list := `{when: "method:tools/list", then: stale}`
	r.add(list)
	require.Equal(t, string(r.c.ask("tools/list", `{}`).Result), string(r.c.ask("tools/list", `{}`).Result))
	r.recorded("tools/list", "previous answer")
}

func TestDroppedAndFrozenRequestsHoldUpNothing(t *testing.T) {
	t.Parallel()
	r := guard(t)
	drop := r.add(`{when: "name:s_delete", then: drop}`)
	for id := range 40 {
		r.begin(1000+id, "tools/call", deleteCall)
	}
	rec := traffic(t, r.i, 40, func(rec registry.TrafficRecord) bool { return len(rec.Events) > 0 })
	require.Equal(t, "dropped", rec[0].Events[0].Text)
	require.Equal(t, "failure", rec[0].Status)
	require.Empty(t, r.i.gateway.Pending.All(), "they are not in flight")
	require.NoError(t, r.i.RemoveRule(drop))

	freeze := r.add(`{when: "name:s_delete", then: freeze, count: 1}`)
	r.begin(1, "tools/call", deleteCall)
	require.Eventually(t, func() bool { return r.i.Registry().Rules().Rules[0].Left == 0 }, patience, time.Millisecond)
	require.Zero(t, r.reached("tools/call"))
	r.begin(2, "tools/call", deleteCall)
	require.Equal(t, "2", string(r.c.answer().ID), "the rule is used up")
	require.NoError(t, r.i.SetRuleEnabled(freeze, false))
	require.Equal(t, "1", string(r.c.answer().ID))
	require.NoError(t, r.i.SetRuleEnabled(freeze, true))
	r.begin(3, "tools/call", deleteCall) // frozen until the end of the test
	require.Eventually(t, func() bool { return r.i.Registry().Rules().Rules[0].Hits == 2 }, patience, time.Millisecond)
}

func TestApprovalsAreRememberedAndRevoked(t *testing.T) {
	t.Parallel()
	r := guard(t, stopDelete)
	open(t, r.i, nil)
	for _, how := range []string{registry.RememberTool, registry.RememberSession, registry.RememberDefinition} {
		before := r.reached("tools/call")
		r.begin(1, "tools/call", deleteCall)
		r.decide(registry.Decision{Action: registry.DecideSend, Remember: how})
		require.NotContains(t, string(r.c.answer().Result), "DENIED")
		require.NotContains(t, string(r.c.ask("tools/call", `{"name":"delete","arguments":{"path":"/other"}}`).Result), "DENIED", how)
		require.Equal(t, before+2, r.reached("tools/call"))

		other := joinAs(t, r.i, "codex", "{}")
		other.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(deleteCall)))
		r.decide(registry.Decision{Action: registry.DecideDeny}) // another client is not approved
		deniedResult(t, other.answer(), "s")

		all := r.i.gateway.Rules.Approvals()
		require.Len(t, all, 1)
		require.Equal(t, []string{"name:*delete*", "editor", "s", "tool", "delete"}, []string{all[0].When, all[0].Client, all[0].Server, all[0].Kind, all[0].Name})
		require.Equal(t, how == registry.RememberSession, all[0].Session != "")
		require.Equal(t, how == registry.RememberDefinition, all[0].Definition != "")
		require.Equal(t, all, r.i.Registry().Rules().Approvals)
		require.NoError(t, r.i.gateway.Rules.Revoke(all[0].ID))
		require.ErrorContains(t, r.i.gateway.Rules.Revoke(all[0].ID), "no approval")
		require.Empty(t, r.i.Registry().Rules().Approvals)
	}
	r.begin(1, "tools/call", deleteCall)
	r.decide(registry.Decision{Action: registry.DecideDeny})
	deniedResult(t, r.c.answer(), "s")
}

func TestClientsUserIsAsked(t *testing.T) {
	t.Parallel()
	const choose = `{"action":"accept","content":{"decision":"%s"}}`
	r := guard(t, `{when: "name:*delete*", then: stop, ask: client}`)
	deniedResult(t, r.c.ask("tools/call", deleteCall), "s") // it cannot be asked, and no UI is open
	c := joinAs(t, r.i, "able", `{"elicitation":{}}`)
	call := func(answer string) jsonrpc.Message {
		t.Helper()
		c.send(jsonrpc.RequestFrame([]byte("1"), "tools/call", []byte(`{"name":"s_delete","arguments":{"path":"\u001b[2J`+strings.Repeat("x", 5000)+`"}}`)))
		q := c.asked()
		require.Equal(t, "elicitation/create", q.Method)
		require.Less(t, len(q.Params), 2000)
		require.NotContains(t, rawjson.GetString(q.Params, "message"), "\x1b")
		require.Contains(t, string(q.Params), `["allow once","allow for this session","deny"]`)
		c.send(jsonrpc.ResultFrame(q.ID, []byte(answer)))
		return c.answer()
	}
	for _, answer := range []string{fmt.Sprintf(choose, "deny"), fmt.Sprintf(choose, "yes"), `{"action":"decline"}`, `{"action":"cancel"}`, `{}`} {
		deniedResult(t, call(answer), "s")
	}
	require.Zero(t, r.reached("tools/call"))
	require.NotContains(t, string(call(fmt.Sprintf(choose, "allow once")).Result), "DENIED")
	require.NotContains(t, string(call(fmt.Sprintf(choose, "allow for this session")).Result), "DENIED")
	require.NotContains(t, string(c.ask("tools/call", deleteCall).Result), "DENIED", "without another question")
	r.recorded("tools/call", "approved for this session")
	require.Equal(t, 3, r.reached("tools/call"))
}

func TestStatelessClientsUserIsAsked(t *testing.T) {
	t.Parallel()
	r := guard(t, `{when: "name:*delete*", then: stop, ask: client}`)
	ask := func(more string) jsonrpc.Message {
		return r.c.ask("tools/call", `{"name":"s_delete","arguments":{},`+more+`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"new"}}}`)
	}
	for decision, denied := range map[string]bool{"allow once": false, "deny": true} {
		question := ask("")
		require.Contains(t, string(question.Result), "input_required")
		require.Contains(t, string(question.Result), "elicitation/create")
		again := ask(`"requestState":` + s(question.Result, "requestState") + `,"inputResponses":{"input-1":{"action":"accept","content":{"decision":"` + decision + `"}}},`)
		require.Equal(t, denied, strings.Contains(string(again.Result), "DENIED"), string(again.Result))
		require.Equal(t, `"complete"`, s(again.Result, "resultType"))
	}
	require.Equal(t, 1, r.reached("tools/call"))
}

// TestStatelessRequestIsStoppedOnce covers a server that asks the client for input.
func TestStatelessRequestIsStoppedOnce(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "", fake{name: "s", script: `"era":"modern",` + asker(elicits)})
	r := &rig{t: t, i: i, log: logs["s"], c: join(t, i)}
	r.add(`{when: "name:s_t", then: stop}`)
	open(t, i, nil)
	call := func(more string) {
		r.begin(1, "tools/call", `{"name":"s_t","arguments":{"a":1},`+more+`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"new"}}}`)
	}
	call("")
	r.decide(registry.Decision{Action: registry.DecideSend, Params: json.RawMessage(`{"name":"s_t","arguments":{"a":2}}`)})
	demand := r.c.answer()
	require.Contains(t, string(demand.Result), "input_required")
	key := ""
	for k := range rawjson.Members(rawjson.Get(demand.Result, "inputRequests")) {
		key = string(k.Name())
	}
	answers := `"requestState":` + s(demand.Result, "requestState") + `,"inputResponses":{"` + key + `":{"action":"decline"}},`
	call(answers)
	require.Contains(t, string(r.c.answer().Result), "decline")
	text, err := os.ReadFile(r.log)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), `"arguments":{"a":2}`), "both carry the changed arguments")
	call(answers) // a second repetition is a new request
	r.decide(registry.Decision{Action: registry.DecideDeny})
	require.Contains(t, string(r.c.answer().Result), "DENIED")
}

func TestFaultsOverHTTP(t *testing.T) {
	t.Parallel()
	web := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(web.CloseIdleConnections)
	i, base := serveHTTP(t, guarded)
	post := func(ctx context.Context, session, body string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base, strings.NewReader(body))
		require.NoError(t, err)
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := web.Do(req)
		if ctx.Err() == nil {
			require.NoError(t, err)
		}
		return resp
	}
	opened := post(t.Context(), "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"web"}}}`)
	session := opened.Header.Get("Mcp-Session-Id")
	require.NoError(t, opened.Body.Close())
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"s_delete","arguments":{"path":"é"}}}`

	id, err := i.AddRule(`{when: "name:s_delete", on: answer, then: truncate}`)
	require.NoError(t, err)
	cut := post(t.Context(), session, call)
	text, err := io.ReadAll(cut.Body)
	require.NoError(t, err)
	require.NoError(t, cut.Body.Close())
	require.Equal(t, cut.ContentLength, int64(len(text)))
	require.False(t, json.Valid(text))
	require.Equal(t, 1, bytes.Count(text, []byte("\n")))
	rec := traffic(t, i, 1, method("tools/call"))[0]
	require.True(t, json.Valid(rec.Response), "the record is complete")
	require.NoError(t, i.RemoveRule(id))

	_, err = i.AddRule(`{when: "name:s_delete", then: drop}`)
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	hung := make(chan struct{})
	go func() {
		defer close(hung)
		post(ctx, session, call) //nolint:bodyclose // there is no response
	}()
	traffic(t, i, 2, method("tools/call"))
	select {
	case <-hung:
		t.Error("it was answered")
	default:
	}
	leave()
	<-hung
}

func serveHTTP(t *testing.T, script string) (*Stack, string) {
	t.Helper()
	i, _ := startWith(t, "listen: '127.0.0.1:0'", func(o *Options) { o.HTTP = true }, fake{name: "s", script: script})
	i.AwaitLists(t.Context())
	return i, "http://" + i.address.Addr().String() + "/mcp"
}

func TestTruncatedAnswerIsOneLine(t *testing.T) {
	t.Parallel()
	r := guard(t, `{when: "name:s_read", then: truncate}`)
	conn := r.i.Connect(t.Context(), AllEntries)
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s_read"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"ping"}`,
	} {
		_, err := conn.Write([]byte(frame + "\n"))
		require.NoError(t, err)
		require.True(t, lines.Scan())
		for strings.Contains(lines.Text(), "list_changed") {
			require.True(t, lines.Scan())
		}
		require.Equal(t, !strings.Contains(frame, "s_read"), json.Valid(lines.Bytes()), lines.Text())
	}
}

func TestDamagedApprovalsApplyNever(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "approvals.json")
	begin := func() *rig {
		i, logs := startWith(t, "", func(o *Options) { o.CallApprovals = path }, fake{name: "s", script: guarded})
		r := &rig{t: t, i: i, log: logs["s"], c: join(t, i)}
		r.c.ask("tools/list", `{}`)
		r.add(stopDelete)
		return r
	}
	r := begin()
	open(t, r.i, nil)
	r.begin(1, "tools/call", deleteCall)
	r.decide(registry.Decision{Action: registry.DecideSend, Remember: registry.RememberTool})
	r.c.answer()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	again := begin() // another process
	require.NotContains(t, string(again.c.ask("tools/call", deleteCall).Result), "DENIED")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	deniedResult(t, again.c.ask("tools/call", deleteCall), "s")
	require.Eventually(t, func() bool { return strings.Contains(again.i.Registry().Notice(), path) }, patience, time.Millisecond)
	r.begin(1, "tools/call", deleteCall)
	require.ErrorContains(t, r.i.DecideStop(r.stopped(1).ID, registry.Decision{Action: registry.DecideSend, Remember: registry.RememberTool}), "no approval applies")
	require.NoError(t, os.Remove(path))
	r.decide(registry.Decision{Action: registry.DecideSend, Remember: registry.RememberTool})
	r.c.answer()
	require.NotContains(t, string(again.c.ask("tools/call", deleteCall).Result), "DENIED", "it reads the file again")
}
