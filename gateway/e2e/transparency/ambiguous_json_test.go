//go:build e2e

package transparency

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Servers and clients built with encoding/json accept "Name" for "name", and use the last
// of two; others use the first. The fake server is one of the former kind.

// disputed are params that such a server interprets differently than Goblin's checks.
var disputed = map[string][]string{
	"tools/call": {
		`{"name":"srv_ok","Name":"danger"}`, `{"Name":"danger","name":"srv_ok"}`, `{"name":"srv_ok","name":"danger"}`,
		`{"name":"danger","name":"srv_ok"}`, `{"name":"srv_ok","n\u0061me":"danger"}`, `{"name":"srv_ok","\u004eAME":"danger"}`,
		`{"name":"ok","NAME":"danger","arguments":{}}`, `{"name":"srv/ok","naMe":"danger"}`, `{"name":"srv_ok","name\u0000":"danger"}`,
		`{"name":"srv_ok","arguments":{"a":1},"Arguments":{"a":2}}`, `{"name":"srv_ok","taſk":{"ttl":1}}`, "{\"name\":\"srv_ok\",\"tas\u212a\":{}}",
		`{"name":"srv_ok","task":{"ttl":1},"task":{"ttl":2}}`, `{"name":"srv_ok","_meta":{},"_META":{"progressToken":1}}`,
		`{"name":"srv_ok","_meta":{"progressToken":1,"ProgressToken":2}}`, `{"name":"srv_ok","_meta":{"progressToken":1,"progressToken":2}}`,
		`{"name":"srv_ok","_meta":{"progreſſtoken":"x"}}`, `{"name":"srv_ok","_meta":{"Io.modelcontextprotocol/related-task":{"taskId":"x"}}}`,
		`{"name":"srv_ok","_meta":{"io.modelcontextprotocol/related-task":{"taskID":"x"}}}`, `{"name":"srv_ok","RequestState":"x"}`,
	},
	"prompts/get":           {`{"name":"srv/ok","Name":"danger"}`, `{"name":"srv/ok","name":"srv/danger"}`, `{"name":"srv/ok","arguments":{},"ARGUMENTS":{}}`},
	"resources/read":        {`{"uri":"mcp://srv/x:ok","URI":"x:danger"}`, `{"Uri":"x:danger","uri":"x:ok"}`, `{"uri":"x:ok","uri":"x:danger"}`, `{"uri":"x:ok","ur\u0049":"x:danger"}`},
	"resources/subscribe":   {`{"uri":"x:ok","Uri":"x:danger"}`, `{"uri":"x:danger","uri":"x:ok"}`},
	"resources/unsubscribe": {`{"uri":"x:ok","Uri":"x:danger"}`},
	"completion/complete": {
		`{"ref":{"type":"ref/prompt","name":"srv/ok","Name":"danger"},"argument":{"name":"a","value":""}}`,
		`{"ref":{"type":"ref/prompt","Type":"ref/resource","name":"srv/ok","uri":"x:danger"},"argument":{"name":"a","value":""}}`,
		`{"ref":{"type":"ref/prompt","name":"srv/danger"},"ref":{"type":"ref/prompt","name":"srv/ok"},"argument":{"name":"a","value":""}}`,
		`{"ref":{"type":"ref/prompt","name":"srv/ok"},"Ref":{"type":"ref/prompt","name":"danger"},"argument":{"name":"a","value":""}}`,
	},
	"tasks/get":    {`{"taskId":"a","taskid":"b"}`, `{"taskId":"a","taskId":"b"}`},
	"tasks/cancel": {`{"TaskID":"b","taskId":"a"}`, `{"taskId":"a","tas\u212aId":"b"}`},
}

// guarded adds a server with half of its entries denied.
func guarded(w *e2e.World) *e2e.Backend {
	ok := e2e.Obj{"tools": e2e.Obj{"deny": []string{"danger"}}, "prompts": e2e.Obj{"allow": []string{"ok"}}, "resources": e2e.Obj{"deny": []string{"x:danger"}}}
	return w.Backend("srv", e2e.Obj{
		"capabilities": e2e.Obj{"tools": e2e.Obj{}, "prompts": e2e.Obj{}, "resources": e2e.Obj{"subscribe": true}, "completions": e2e.Obj{}, "tasks": e2e.Obj{"requests": e2e.Obj{"tools": e2e.Obj{"call": e2e.Obj{}}}}},
		"tools":        []e2e.Obj{e2e.Tool("ok"), e2e.Tool("danger")}, "prompts": []e2e.Obj{e2e.Prompt("ok"), e2e.Prompt("danger")},
		"resources": []e2e.Obj{e2e.Resource("x:ok"), e2e.Resource("x:danger")},
	}, ok)
}

func TestRequestsThatReadersUnderstandDifferentlyReachNoServer(t *testing.T) {
	t.Parallel()
	for _, front := range e2e.Variants(1, "http", "socket", "stateless") {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := guarded(w)
			c := w.Served().RawClient()
			c.Modern, c.Web.Stateless = true, true
			if front != "stateless" {
				c = meets(w, front)
			}
			require.Nil(t, put(c, "tools/call", `{"name":"srv_ok","arguments":{"Name":1,"name":2,"name":3}}`).Error, "irrelevant members are passed on")
			for method, all := range disputed {
				if c.Modern && strings.HasSuffix(method, "subscribe") {
					continue
				}
				for _, params := range all {
					e := e2e.ParseError(t, put(c, method, params))
					if strings.HasPrefix(method, "tasks/") && e.Code == -32021 {
						continue // the client supports no tasks
					}
					require.Equal(t, -32602, e.Code, "%s %s: %s", method, params, e.Message)
				}
			}
			for method := range disputed {
				want := 0
				if method == "tools/call" {
					want = 1
				}
				require.Equal(t, want, b.Count(method), method)
			}
		})
	}
}

// link is a content block as encoding/json reads it.
type link struct {
	Type     string `json:"type"`
	URI      string `json:"uri"`
	Resource struct {
		URI string `json:"uri"`
	} `json:"resource"`
}

func TestResultsNameNoOtherServersResourcesToAnyReader(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("other", e2e.Filesystem())
	w.Backend("srv", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("say")}, "prompts": []e2e.Obj{e2e.Prompt("say")}, "resources": []e2e.Obj{e2e.Resource("x:say")},
		"on": e2e.Obj{"tools/call say": e2e.Actions(e2e.Do("reply")), "prompts/get": e2e.Actions(e2e.Do("reply")), "resources/read": e2e.Actions(e2e.Do("reply"))},
	})
	c := w.Standalone()
	const theirs = `"mcp://other/file:///logs/app.log"`
	for _, block := range []string{
		`{"type":"resource_link","uri":"x:1","URI":` + theirs + `,"name":"n"}`, `{"type":"resource_link","Uri":` + theirs + `,"uri":"x:1"}`,
		`{"type":"resource_link","uri":` + theirs + `,"uri":"x:1"}`, `{"type":"resource_link","uri":"x:1","uri":` + theirs + `}`,
		`{"type":"resource_link","\u0055RI":` + theirs + `}`, `{"type":"text","Type":"resource_link","text":"t","uri":` + theirs + `}`,
		`{"Type":"resource_link","type":"text","text":"t","uri":` + theirs + `}`, `{"type":"text","type":"resource_link","uri":` + theirs + `}`,
		`{"type":"resource","resource":{"uri":"x:1","text":"t","uRi":` + theirs + `}}`,
		`{"type":"resource","resource":{"uri":"x:1","text":"t"},"Resource":{"uri":` + theirs + `,"text":"t"}}`,
		`{"type":"resource","reſource":{"uri":` + theirs + `,"text":"t"}}`,
	} {
		var tool struct{ Content []link }
		result := put(c, "tools/call", `{"name":"srv_say","reply":{"result":{"content":[`+block+`]}}}`).Result
		require.NoError(t, json.Unmarshal(result, &tool))
		var prompt struct {
			Messages []struct{ Content link }
		}
		got := put(c, "prompts/get", `{"name":"srv/say","reply":{"result":{"messages":[{"role":"user","content":`+block+`}]}}}`).Result
		require.NoError(t, json.Unmarshal(got, &prompt))
		require.Len(t, prompt.Messages, 1)
		for _, l := range append(tool.Content, prompt.Messages[0].Content) {
			foreign := l.Type == "resource_link" && strings.HasPrefix(l.URI, "mcp://other/") || strings.HasPrefix(l.Resource.URI, "mcp://other/")
			require.False(t, foreign, "%s became %s and %s", block, result, got)
		}
	}
	for _, whole := range []string{
		`{"content":[],"Content":[{"type":"resource_link","uri":` + theirs + `}]}`, `{"CONTENT":[{"type":"resource_link","uri":` + theirs + `}],"content":[]}`,
		`{"content":[{"type":"resource_link","uri":` + theirs + `}],"content":[{"type":"resource_link","uri":` + theirs + `}]}`,
	} {
		require.NotContains(t, string(put(c, "tools/call", `{"name":"srv_say","reply":{"result":`+whole+`}}`).Result), `"mcp://other`)
	}
	for _, contents := range []string{
		`[{"uri":"x:say","text":"t","URI":` + theirs + `}]`, `[{"uri":` + theirs + `,"uri":"x:say","text":"t"}]`, `[{"Uri":` + theirs + `,"text":"t"}]`,
	} {
		var read struct{ Contents []link }
		result := put(c, "resources/read", `{"uri":"mcp://srv/x:say","reply":{"result":{"contents":`+contents+`}}}`).Result
		require.NoError(t, json.Unmarshal(result, &read))
		require.Len(t, read.Contents, 1)
		require.NotContains(t, string(result), `"mcp://other`, "%s", contents)
	}
	e := put(c, "tools/call", `{"name":"srv_say","reply":{"error":{"code":1,"message":"m","data":{"uri":"x:say","Uri":`+theirs+`},"DATA":{}}}}`).Error
	require.JSONEq(t, `{"code":1,"message":"m","data":{"uri":"mcp://srv/x:say"}}`, string(e))
	odd := `{"content":[{"type":"text","text":"t","URIs":1,"Text":"u"}],"structuredContent":{"uri":1,"URI":2,"uri":3},"contents":[],"X":1,"x":2}`
	require.Equal(t, odd, string(put(c, "tools/call", `{"name":"srv_say","reply":{"result":`+odd+`}}`).Result), "irrelevant members stay")
}

func TestDefinitionsThatReadersUnderstandDifferentlyAreDropped(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	raw := func(texts ...string) (all []json.RawMessage) {
		for _, text := range texts {
			all = append(all, json.RawMessage(text))
		}
		return all
	}
	w.Backend("srv", e2e.Obj{
		"tools": raw(`{"name":"fine","inputSchema":{"type":"object","Type":"x"},"Description":"d","description":"e"}`,
			`{"name":"a","Name":"other_x","inputSchema":{}}`, `{"name":"b","name":"c","inputSchema":{}}`,
			`{"name":"d","inputSchema":{},"_meta":{"ui":{"resourceUri":"ui://a","resourceURI":"mcp://other/ui://b"}}}`,
			`{"name":"e","inputSchema":{},"_meta":{"ui":{"resourceUri":"ui://a"},"UI":{"resourceUri":"mcp://other/ui://b"}}}`,
			`{"name":"f","inputSchema":{},"_meta":{},"_Meta":{"ui":{"resourceUri":"mcp://other/ui://b"}}}`,
			`{"name":"g","inputSchema":{},"_meta":{"UI/resourceUri":"mcp://other/ui://b"}}`),
		"prompts":   raw(`{"name":"fine"}`, `{"name":"a","NAME":"other/x"}`),
		"resources": raw(`{"uri":"x:fine","name":"n"}`, `{"uri":"x:1","URI":"mcp://other/x:1","name":"n"}`),
		"templates": raw(`{"uriTemplate":"y:{a}","name":"n"}`, `{"uriTemplate":"x:{a}","uritemplate":"mcp://other/{a}","name":"n"}`),
	})
	c := w.Standalone()
	require.Equal(t, []string{"srv_fine"}, c.Names("tools"))
	require.Equal(t, []string{"srv/fine"}, c.Names("prompts"))
	require.Equal(t, []string{"mcp://srv/x:fine"}, c.Names("resources"))
	require.Equal(t, []string{"mcp://srv/y:{a}"}, c.Names("templates"))
}

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
		require.NotContains(t, e2e.Str(m.Result, "content", 0, "text"), "ttl", "a client without tasks requests none")
	}
	legacy := s.RawClient()
	legacy.Web.Stateless = false
	legacy.Init()
	for _, name := range []string{`x\ud800`, `x\udfff`, `x\ufffd`} {
		put(legacy, "tools/call", `{"name":"`+name+`"}`)
		got := b.Received("tools/call")
		require.Equal(t, `"x`+"\ufffd"+`"`, string(e2e.At(got[len(got)-1].Msg, "params", "name")), "the server gets the name that was checked")
	}
	put(legacy, "tools/call", `{"name":"srv_say","_meta":{"progressToken":1},"notes":[{"method":"notifications/message","params":{"level":"error","data":"d","_meta":{"io.modelcontextprotocol/rel\u0061ted-task":{"taskId":"T"}}}}],"reply":{"result":{"content":[]}}}`)
	require.NotContains(t, string(legacy.WaitNote("notifications/message", nil).Params), "taskId")
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
	require.NotContains(t, string(c.WaitNote("notifications/message", nil).Params), "debug")
	b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/resources/updated", "params": json.RawMessage(`{"uri":"x:1","URI":"mcp://other/x:1"}`)}))
	require.JSONEq(t, `{"uri":"mcp://srv/x:1"}`, string(c.WaitNote("notifications/resources/updated", nil).Params))

	c.Ok("tools/call", e2e.Obj{"name": "srv_ask"})
	asked := string(c.WaitAsks(1).Params)
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
