//go:build e2e

package transparency

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestEscapesInKeysAndNamesChangeNothing(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	on := e2e.Obj{"tools/call t": e2e.Actions(e2e.Do("echo")), "tools/call say": e2e.Actions(e2e.Do("reply")), "create t": e2e.Actions()}
	b := w.Backend("srv", e2e.Obj{
		"capabilities": e2e.Obj{"tools": e2e.Obj{}, "tasks": e2e.Obj{"requests": e2e.Obj{"tools": e2e.Obj{"call": e2e.Obj{}}}}},
		"tools":        []e2e.Obj{e2e.Tool("t"), e2e.Tool("say"), e2e.Tool("x\ufffd")}, "on": on,
	})
	s := w.Served()
	c := s.RawClient()
	c.Modern, c.Web.Stateless = true, true
	for _, params := range []string{`{"name":"srv_t","task":{"ttl":1}}`, `{"name":"srv_t","t\u0061sk":{"ttl":1}}`, `{"name":"srv_t","\u0074ask":{}}`} {
		m := put(c, "tools/call", params)
		require.Nil(t, m.Error, m.Raw)
		require.NotContains(t, e2e.Str(m.Result, "content", 0, "text"), "ttl", "a client without tasks asks for none")
	}
	legacy := s.RawClient()
	legacy.Web.Stateless = false
	legacy.Init()
	for _, name := range []string{`x\ud800`, `x\udfff`, `x\ufffd`} {
		put(legacy, "tools/call", `{"name":"`+name+`"}`)
		got := b.Received("tools/call")
		require.Equal(t, `"x`+"\ufffd"+`"`, string(e2e.At(got[len(got)-1].Msg, "params", "name")), "the server gets the name that was looked up")
	}
	put(legacy, "tools/call", `{"name":"srv_say","_meta":{"progressToken":1},"notes":[{"method":"notifications/message","params":{"level":"error","data":"d","_meta":{"io.modelcontextprotocol/rel\u0061ted-task":{"taskId":"T"}}}}],"reply":{"result":{"content":[]}}}`)
	require.NotContains(t, string(legacy.Noted("notifications/message", nil).Params), "taskId")
	e := put(legacy, "tools/call", `{"name":"srv_say","reply":{"error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","Mode":"form","elicitationId":"1","url":"https://x","Task":{},"_META":{}}]}}}}`).Error
	for _, member := range []string{"Mode", "Task", "_META"} {
		require.NotContains(t, string(e), member)
	}
}

func TestArgumentsInHeadersAreOneForAllReaders(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	schema := func(key string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"region":{"type":"string",` + key + `:"Region"}}}`)
	}
	b := w.Remote("srv", "/mcp", e2e.Obj{"era": "modern", "tools": []e2e.Obj{
		e2e.Tool("plain", e2e.Obj{"inputSchema": schema(`"x-mcp-header"`)}), e2e.Tool("escaped", e2e.Obj{"inputSchema": schema(`"x-mcp-he\u0061der"`)}),
	}})
	c := w.Standalone()
	for _, name := range []string{"srv_plain", "srv_escaped"} {
		for _, arguments := range []string{`{"region":"eu","region":"us"}`, `{"region":"us","Region":"eu"}`, `{"REGION":"eu"}`} {
			require.Equal(t, -32602, e2e.ParseError(t, put(c, "tools/call", `{"name":"`+name+`","arguments":`+arguments+`}`)).Code, "%s %s", name, arguments)
		}
		require.Nil(t, put(c, "tools/call", `{"name":"`+name+`","arguments":{"region":"eu","other":1,"Other":2}}`).Error)
	}
	require.Equal(t, 2, b.Count("tools/call"))
}

func TestWhatServersTellAndAskMeansTheSameToAnyReader(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("srv", e2e.Obj{
		"capabilities": e2e.Obj{"tools": e2e.Obj{}, "resources": e2e.Obj{"subscribe": true}, "logging": e2e.Obj{}},
		"tools":        []e2e.Obj{e2e.Tool("tell"), e2e.Tool("ask")}, "resources": []e2e.Obj{e2e.Resource("x:1")},
		"on": e2e.Obj{"tools/call tell": e2e.Actions(e2e.Do("reply")), "tools/call ask": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": json.RawMessage(
			`{"mode":"form","Mode":"url","message":"m","url":"https://x","requestedSchema":{"type":"object","properties":{}},"_meta":{"progressToken":1},"_META":{"progressToken":2}}`)}))},
	})
	c := w.Pipe("stdio", "--standalone")
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	c.Reply = func(e2e.Message) (any, any) {
		return json.RawMessage(`{"action":"decline","Action":"accept","content":{"a":1,"A":2}}`), nil
	}
	c.Init()
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("srv", "x:1")})
	put(c, "tools/call", `{"name":"srv_tell","_meta":{"progressToken":"mine"},"notes":[`+
		`{"method":"notifications/progress","params":{"progressToken":"$token","ProgressToken":"other","progress":1}},`+
		`{"method":"notifications/progress","params":{"progreſſToken":"other","progressToken":"$token","progress":2}},`+
		`{"method":"notifications/message","params":{"level":"error","Level":"debug","logger":"l","data":"d"}}],"reply":{"result":{"content":[]}}}`)
	progress := c.NotesOf("notifications/progress")
	require.Len(t, progress, 2)
	for _, p := range progress {
		require.NotContains(t, string(p.Params), "other")
		require.Equal(t, "mine", e2e.Str(p.Params, "progressToken"))
	}
	require.NotContains(t, string(c.Noted("notifications/message", nil).Params), "debug")
	b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/resources/updated", "params": json.RawMessage(`{"uri":"x:1","URI":"mcp://other/x:1"}`)}))
	require.JSONEq(t, `{"uri":"mcp://srv/x:1"}`, string(c.Noted("notifications/resources/updated", nil).Params))

	c.Ok("tools/call", e2e.Obj{"name": "srv_ask"})
	asked := string(c.Asked(1).Params)
	require.NotContains(t, asked, "Mode")
	require.NotContains(t, asked, "_META")
	answer := b.Received("")
	last := string(answer[len(answer)-1].Msg)
	for _, e := range answer {
		if strings.Contains(string(e.Msg), `"action"`) {
			last = string(e.Msg)
		}
	}
	require.NotContains(t, last, `"Action"`)
}
