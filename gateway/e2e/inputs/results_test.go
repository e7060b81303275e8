//go:build e2e

package inputs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// resultRow is a server's result and the result that clients get. modern is the result
// for clients of 2026-07-28 if it differs. $uri in want is the resource that was read.
type resultRow struct{ sent, want, modern string }

// textOf is a content block with that text.
func textOf(text string) string {
	return string(e2e.Marshal(e2e.Obj{"type": "text", "text": text}))
}

var (
	helloBlock = textOf("hello")
	toolRow    = map[string]resultRow{
		"content null":                   {sent: `{"content":null}`, want: `{"content":[]}`},
		"content missing":                {sent: `{"vendor":1}`, want: `{"content":[],"vendor":1}`},
		"empty result":                   {sent: `{}`, want: `{"content":[]}`},
		"structured only":                {sent: `{"structuredContent":{"a":1.0}}`, want: `{"content":[` + textOf(`{"a":1.0}`) + `],"structuredContent":{"a":1.0}}`},
		"structured and null":            {sent: `{"structuredContent":{"a":1},"content":null}`, want: `{"content":[` + textOf(`{"a":1}`) + `],"structuredContent":{"a":1}}`},
		"toolResult of 2024-10-07":       {sent: `{"toolResult":"hello"}`, want: `{"content":[` + helloBlock + `],"toolResult":"hello"}`},
		"content a text":                 {sent: `{"content":"hello"}`, want: `{"content":[` + helloBlock + `]}`},
		"content a number":               {sent: `{"content":5.0}`, want: `{"content":[` + textOf("5.0") + `]}`},
		"content a block":                {sent: `{"content":` + helloBlock + `}`, want: `{"content":[` + helloBlock + `]}`},
		"content an object":              {sent: `{"content":{"a":"b"}}`, want: `{"content":[` + textOf(`{"a":"b"}`) + `]}`},
		"a text as block":                {sent: `{"content":["x",` + helloBlock + `]}`, want: `{"content":[` + textOf(`"x"`) + `,` + helloBlock + `]}`},
		"null as block":                  {sent: `{"content":[null]}`, want: `{"content":[` + textOf("null") + `]}`},
		"a list as block":                {sent: `{"content":[[1]]}`, want: `{"content":[` + textOf("[1]") + `]}`},
		"a block without type":           {sent: `{"content":[{"text":"x"}]}`, want: `{"content":[` + textOf(`{"text":"x"}`) + `]}`},
		"a type that is a number":        {sent: `{"content":[{"type":1}]}`, want: `{"content":[` + textOf(`{"type":1}`) + `]}`},
		"text that is an object":         {sent: `{"content":[{"type":"text","text":{"a":1}}]}`, want: `{"content":[` + textOf(`{"type":"text","text":{"a":1}}`) + `]}`},
		"text that is null":              {sent: `{"content":[{"type":"text","text":null}]}`, want: `{"content":[` + textOf(`{"type":"text","text":null}`) + `]}`},
		"an image without data":          {sent: `{"content":[{"type":"image","mimeType":"a/b"}]}`, want: `{"content":[` + textOf(`{"type":"image","mimeType":"a/b"}`) + `]}`},
		"audio without type":             {sent: `{"content":[{"type":"audio","data":"aGk="}]}`, want: `{"content":[` + textOf(`{"type":"audio","data":"aGk="}`) + `]}`},
		"a resource without uri":         {sent: `{"content":[{"type":"resource","resource":{"text":"x"}}]}`, want: `{"content":[` + textOf(`{"type":"resource","resource":{"text":"x"}}`) + `]}`},
		"a resource that is a text":      {sent: `{"content":[{"type":"resource","resource":"x:1"}]}`, want: `{"content":[` + textOf(`{"type":"resource","resource":"x:1"}`) + `]}`},
		"a resource without text":        {sent: `{"content":[{"type":"resource","resource":{"uri":"x:1"}}]}`, want: `{"content":[` + textOf(`{"type":"resource","resource":{"uri":"x:1"}}`) + `]}`},
		"a resource of no type":          {sent: `{"content":[{"type":"resource","resource":{"uri":"x:1","text":"t","mimeType":null}}]}`, want: `{"content":[{"type":"resource","resource":{"uri":"$x:1","text":"t"}}]}`},
		"a link without uri":             {sent: `{"content":[{"type":"resource_link","name":"n"}]}`, want: `{"content":[` + textOf(`{"type":"resource_link","name":"n"}`) + `]}`},
		"a link without name":            {sent: `{"content":[{"type":"resource_link","uri":"file:///a/b.txt?c#d"}]}`, want: `{"content":[{"type":"resource_link","uri":"$file:///a/b.txt?c#d","name":"b.txt"}]}`},
		"members of a link":              {sent: `{"content":[{"type":"resource_link","uri":"x:1","name":"n","title":null,"description":5,"mimeType":[],"size":"1","_meta":"m","annotations":null}]}`, want: `{"content":[{"type":"resource_link","uri":"$x:1","name":"n"}]}`},
		"icons of a link no list":        {sent: `{"content":[{"type":"resource_link","uri":"x:1","name":"n","icons":"i.png"}]}`, want: `{"content":[{"type":"resource_link","uri":"$x:1","name":"n"}]}`},
		"icons of a link in part":        {sent: `{"content":[{"type":"resource_link","uri":"x:1","name":"n","icons":[null,7,{},{"src":"a","mimeType":5,"sizes":"48x48","theme":"blue","x":1},{"src":"b","sizes":["any"]}]}]}`, want: `{"content":[{"type":"resource_link","uri":"$x:1","name":"n","icons":[{"src":"a","x":1},{"src":"b","sizes":["any"]}]}]}`},
		"a size that is no integer":      {sent: `{"content":[{"type":"resource_link","uri":"x:1","name":"n","size":1.5}]}`, want: `{"content":[{"type":"resource_link","uri":"$x:1","name":"n"}]}`},
		"a type that is empty":           {sent: `{"content":[{"type":"","text":"x"}]}`, want: `{"content":[` + textOf(`{"type":"","text":"x"}`) + `]}`},
		"members of a text":              {sent: `{"content":[{"type":"text","text":"hello","_meta":null,"annotations":"high","vendor":null}]}`, want: `{"content":[{"type":"text","text":"hello","vendor":null}]}`},
		"members of annotations":         {sent: `{"content":[{"type":"text","text":"hello","annotations":{"audience":"user","priority":7,"lastModified":"yesterday","x":1}}]}`, want: `{"content":[{"type":"text","text":"hello","annotations":{"x":1}}]}`},
		"isError a text":                 {sent: `{"content":[` + helloBlock + `],"isError":"true"}`, want: `{"content":[` + helloBlock + `],"isError":true}`},
		"isError a text that says no":    {sent: `{"content":[` + helloBlock + `],"isError":"False"}`, want: `{"content":[` + helloBlock + `],"isError":false}`},
		"isError null":                   {sent: `{"content":[` + helloBlock + `],"isError":null}`, want: `{"content":[` + helloBlock + `]}`},
		"isError another text":           {sent: `{"isError":"disk full"}`, want: `{"content":[` + textOf(`"disk full"`) + `]}`},
		"_meta of the wrong type":        {sent: `{"content":[` + helloBlock + `],"_meta":[1]}`, want: `{"content":[` + helloBlock + `]}`},
		"_meta null":                     {sent: `{"content":[],"_meta":null}`, want: `{"content":[]}`},
		"structuredContent null":         {sent: `{"content":[` + helloBlock + `],"structuredContent":null}`, want: `{"content":[` + helloBlock + `]}`},
		"structuredContent a list":       {sent: `{"content":[` + helloBlock + `],"structuredContent":[1]}`, want: `{"content":[` + helloBlock + `]}`, modern: `{"content":[` + helloBlock + `],"structuredContent":[1]}`},
		"structuredContent a list alone": {sent: `{"content":[],"structuredContent":[1]}`, want: `{"content":[` + textOf("[1]") + `]}`, modern: `{"content":[],"structuredContent":[1]}`},
		"structuredContent a text alone": {sent: `{"structuredContent":"s"}`, want: `{"content":[` + textOf(`"s"`) + `]}`, modern: `{"content":[` + textOf(`"s"`) + `],"structuredContent":"s"}`},
		"Type instead of type":           {sent: `{"content":[{"Type":"text","type":"text","text":"hello"}]}`, want: `{"content":[` + helloBlock + `]}`},
		"URI beside uri":                 {sent: `{"content":[{"type":"resource_link","uri":"x:1","URI":"x:2","name":"n"}]}`, want: `{"content":[{"type":"resource_link","uri":"$x:1","name":"n"}]}`},
		"Content beside content":         {sent: `{"content":[` + helloBlock + `],"Content":[]}`, want: `{"content":[` + helloBlock + `]}`},
		"resultType null":                {sent: `{"resultType":null,"content":"hello"}`, want: `{"content":[` + helloBlock + `]}`},
		"content twice":                  {sent: `{"content":null,"content":[` + helloBlock + `]}`, want: `{"content":[` + helloBlock + `]}`},
		"content twice, null last":       {sent: `{"content":[` + helloBlock + `],"content":null}`, want: `{"content":[]}`},
		"type twice":                     {sent: `{"content":[{"type":"image","type":"text","text":"hello"}]}`, want: `{"content":[` + helloBlock + `]}`},
		"uri twice":                      {sent: `{"content":[{"type":"resource_link","uri":"x:1","uri":"x:2","name":"n"}]}`, want: `{"content":[{"type":"resource_link","uri":"$x:2","name":"n"}]}`},
		"healthy":                        {sent: `{"content":[` + helloBlock + `,{"type":"hologram","text":5,"annotations":7}],"structuredContent":{"URI":1,"uri":2,"content":null},"isError":false,"_meta":{"Uri":null},"vendor":null}`, want: `{"content":[` + helloBlock + `,{"type":"hologram","text":5,"annotations":7}],"structuredContent":{"URI":1,"uri":2,"content":null},"isError":false,"_meta":{"Uri":null},"vendor":null}`},
	}
	readRow = map[string]resultRow{
		"contents null":      {sent: `{"contents":null}`, want: `{"contents":[]}`},
		"contents missing":   {sent: `{}`, want: `{"contents":[]}`},
		"contents an entry":  {sent: `{"contents":{"uri":"x:say","text":"t"}}`, want: `{"contents":[{"uri":"$x:say","text":"t"}]}`},
		"contents a text":    {sent: `{"contents":"t"}`, want: `{"contents":[{"uri":"$x:say","text":"t"}]}`},
		"an entry no object": {sent: `{"contents":["t",null]}`, want: `{"contents":[{"uri":"$x:say","text":"t"},{"uri":"$x:say","text":"null"}]}`},
		"an entry without uri": {
			sent: `{"contents":[{"text":"t","mimeType":"a/b"},{"uri":null,"blob":"aGk="}]}`,
			want: `{"contents":[{"uri":"$x:say","text":"t","mimeType":"a/b"},{"uri":"$x:say","blob":"aGk="}]}`,
		},
		"text an object":   {sent: `{"contents":[{"uri":"x:say","text":{"a":1}}]}`, want: `{"contents":[{"uri":"$x:say","text":"{\"a\":1}"}]}`},
		"text null":        {sent: `{"contents":[{"uri":"x:say","text":null}]}`, want: `{"contents":[{"uri":"$x:say","text":""}]}`},
		"text left out":    {sent: `{"contents":[{"uri":"x:say","mimeType":"a/b"}]}`, want: `{"contents":[{"uri":"$x:say","mimeType":"a/b","text":""}]}`},
		"another member":   {sent: `{"contents":[{"uri":"x:say","value":1}]}`, want: `{"contents":[{"uri":"$x:say","value":1,"text":"{\"uri\":\"x:say\",\"value\":1}"}]}`},
		"text beside blob": {sent: `{"contents":[{"uri":"x:say","text":null,"blob":"aGk="}]}`, want: `{"contents":[{"uri":"$x:say","blob":"aGk="}]}`},
		"wrong members":    {sent: `{"contents":[{"uri":"x:say","text":"t","mimeType":7,"_meta":null}],"_meta":"x"}`, want: `{"contents":[{"uri":"$x:say","text":"t"}]}`},
		"URI beside uri":   {sent: `{"contents":[{"uri":"x:say","URI":"x:2","Uri":"x:3","text":"t"}]}`, want: `{"contents":[{"uri":"$x:say","text":"t"}]}`},
		"URI instead":      {sent: `{"contents":[{"URI":"x:2","text":"t"}]}`, want: `{"contents":[{"uri":"$x:say","text":"t"}]}`},
		"healthy":          {sent: `{"contents":[{"uri":"x:say","text":"t","Text":1,"icons":null},{"uri":"x:2","blob":""}],"x":null}`, want: `{"contents":[{"uri":"$x:say","text":"t","Text":1,"icons":null},{"uri":"$x:2","blob":""}],"x":null}`},
	}
	promptRow = map[string]resultRow{
		"messages null":         {sent: `{"messages":null,"description":"d"}`, want: `{"messages":[],"description":"d"}`},
		"messages missing":      {sent: `{}`, want: `{"messages":[]}`},
		"messages a message":    {sent: `{"messages":{"role":"user","content":` + helloBlock + `}}`, want: `{"messages":[{"role":"user","content":` + helloBlock + `}]}`},
		"messages a text":       {sent: `{"messages":"hello"}`, want: `{"messages":[{"role":"user","content":` + helloBlock + `}]}`},
		"a message that is one": {sent: `{"messages":["hello",7]}`, want: `{"messages":[{"role":"user","content":` + helloBlock + `},{"role":"user","content":` + textOf("7") + `}]}`},
		"content a text":        {sent: `{"messages":[{"role":"assistant","content":"hello"}]}`, want: `{"messages":[{"role":"assistant","content":` + helloBlock + `}]}`},
		"content null":          {sent: `{"messages":[{"role":"user","content":null}]}`, want: `{"messages":[{"role":"user","content":` + textOf("null") + `}]}`},
		"content missing":       {sent: `{"messages":[{"role":"user","text":"x"}]}`, want: `{"messages":[{"role":"user","text":"x","content":` + textOf(`{"role":"user","text":"x"}`) + `}]}`},
		"content a list": {
			sent: `{"messages":[{"role":"assistant","content":[` + helloBlock + `,"x"]}]}`,
			want: `{"messages":[{"role":"assistant","content":` + helloBlock + `},{"role":"assistant","content":` + textOf(`"x"`) + `}]}`,
		},
		"a block without type": {sent: `{"messages":[{"role":"user","content":{"text":"x"}}]}`, want: `{"messages":[{"role":"user","content":` + textOf(`{"text":"x"}`) + `}]}`},
		"an unknown role":      {sent: `{"messages":[{"role":"system","content":` + helloBlock + `}]}`, want: `{"messages":[{"role":"user","content":` + helloBlock + `}]}`},
		"a role in capitals":   {sent: `{"messages":[{"role":"Assistant","content":` + helloBlock + `}]}`, want: `{"messages":[{"role":"assistant","content":` + helloBlock + `}]}`},
		"no role":              {sent: `{"messages":[{"content":` + helloBlock + `}]}`, want: `{"messages":[{"role":"user","content":` + helloBlock + `}]}`},
		"wrong members":        {sent: `{"messages":[],"description":null,"_meta":7}`, want: `{"messages":[]}`},
	}
	completionRow = map[string]resultRow{
		"values null":       {sent: `{"completion":{"values":null}}`, want: `{"completion":{"values":[]}}`},
		"no completion":     {sent: `{}`, want: `{"completion":{"values":[]}}`},
		"a list of values":  {sent: `{"completion":["a"]}`, want: `{"completion":{"values":["a"]}}`},
		"values a text":     {sent: `{"completion":{"values":"a"}}`, want: `{"completion":{"values":["a"]}}`},
		"values no texts":   {sent: `{"completion":{"values":["a",1,null],"total":"3","hasMore":"true"}}`, want: `{"completion":{"values":["a","1","null"],"hasMore":true}}`},
		"hasMore null":      {sent: `{"completion":{"values":[],"total":null,"hasMore":null}}`, want: `{"completion":{"values":[]}}`},
		"more than allowed": {sent: `{"completion":{"values":[` + strings.Repeat(`"v",`, 120) + `"w"]}}`, want: `{"completion":{"values":[` + strings.Repeat(`"v",`, 99) + `"v"],"hasMore":true}}`},
	}
)

// sayer is a server that answers with the member "reply" of the params.
func sayer() e2e.Obj {
	reply := e2e.Actions(e2e.Do("reply"))
	return e2e.Obj{
		"capabilities": e2e.Obj{"tools": e2e.Obj{}, "prompts": e2e.Obj{}, "resources": e2e.Obj{}, "completions": e2e.Obj{}},
		"tools":        []e2e.Obj{e2e.Tool("say")}, "prompts": []e2e.Obj{e2e.Prompt("say")}, "resources": []e2e.Obj{e2e.Resource("x:say")},
		"on": e2e.Obj{"tools/call": reply, "prompts/get": reply, "resources/read": reply, "completion/complete": reply},
	}
}

// sayers adds servers of every transport and era.
func sayers(w *e2e.World) (names []string) {
	w.Backend("local", sayer())
	w.Remote("web", "/mcp", sayer())
	w.Remote("events", "/sse", sayer(), e2e.Obj{"type": "sse"})
	w.Backend("own", sayer(), e2e.Obj{"isolation": "session"})
	next := sayer()
	next["era"] = "modern"
	w.Backend("next", next)
	return []string{"local", "web", "events", "own", "next"}
}

// clientsOfRevisions returns clients of each kind.
func clientsOfRevisions(t *testing.T, w *e2e.World) map[string]*e2e.Client {
	t.Helper()
	all := map[string]*e2e.Client{"2026-07-28": w.Socket().Stateless(), "http": w.Served().Client(false)}
	for _, version := range []string{"2024-11-05", "2025-11-25"} {
		c := w.Socket()
		got := c.Ok("initialize", e2e.Obj{"protocolVersion": version, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "e", "version": "1"}})
		require.Equal(t, version, e2e.Str(got, "protocolVersion"))
		c.Notify("notifications/initialized", nil)
		all[version] = c
	}
	return all
}

// askSayer sends a request of a method to a server, with the reply that it must send.
func askSayer(c *e2e.Client, server, method, reply string) e2e.Message {
	c.T.Helper()
	params := e2e.Obj{"reply": reply}
	switch method {
	case "tools/call":
		params["name"] = server + "_say"
	case "prompts/get":
		params["name"] = server + "/say"
	case "resources/read":
		params["uri"] = e2e.In(server, "x:say")
	default:
		params["ref"], params["argument"] = e2e.Obj{"type": "ref/prompt", "name": server + "/say"}, e2e.Obj{"name": "a", "value": ""}
	}
	return c.Request(method, params)
}

// bareResult returns a result without the members that a revision adds.
func bareResult(t *testing.T, result json.RawMessage) string {
	t.Helper()
	var all e2e.Obj
	require.NoError(t, json.Unmarshal(result, &all))
	for _, name := range []string{"resultType", "ttlMs", "cacheScope"} {
		delete(all, name)
	}
	if meta, _ := all["_meta"].(e2e.Obj); meta != nil {
		if delete(meta, e2e.ProtocolPrefix+"serverInfo"); len(meta) == 0 {
			delete(all, "_meta")
		}
	}
	return string(e2e.Marshal(all))
}

func TestResultsOfTheWrongShapeAreRepairedForEveryClient(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	servers := sayers(w)
	for revision, c := range clientsOfRevisions(t, w) {
		for _, server := range servers {
			c.WaitListed("tools", server+"_say", true)
			for method, rows := range map[string]map[string]resultRow{
				"tools/call": toolRow, "resources/read": readRow, "prompts/get": promptRow, "completion/complete": completionRow,
			} {
				for name, row := range rows {
					m := askSayer(c, server, method, `{"result":`+row.sent+`}`)
					require.Nil(t, m.Error, "%s %s %s: %s", revision, server, name, m.Raw)
					if revision == "2026-07-28" {
						require.Equal(t, `"complete"`, string(e2e.At(m.Result, "resultType")), "%s %s: %s", server, name, m.Raw)
					}
					want := row.want
					if revision == "2026-07-28" && row.modern != "" {
						want = row.modern
					}
					want = strings.ReplaceAll(want, `"uri":"$`, `"uri":"`+e2e.In(server, ""))
					require.JSONEq(t, want, bareResult(t, m.Result), "%s, %s, %s of %s", revision, server, name, method)
				}
			}
		}
	}
	for _, kind := range []string{
		`method=tools/call repair="invalid content block`, `method=tools/call repair="optional member of the wrong type`, `may confuse with \"contents.uri\""`,
	} {
		count := func() (n int) {
			for _, p := range w.Programs {
				n += strings.Count(p.Stderr.String(), kind)
			}
			return n
		}
		e2e.Eventually(t, "the log of "+kind, func() bool { return count() >= len(servers) })
		require.Equal(t, len(servers), count(), "each repair is logged once for each server: %s", kind)
	}
}

// Demands for input and created tasks have no content.
func TestResultsThatAreNotFinalAreNotRepaired(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", sayer())
	c := w.Standalone()
	for _, result := range []string{
		`{"task":{"taskId":"x"},"content":null}`, `{"resultType":"input_required","inputRequests":{}}`, `{"resultType":"task","taskId":"x","isError":null}`,
	} {
		require.Equal(t, result, string(askSayer(c, "b", "tools/call", `{"result":`+result+`}`).Result))
	}
}

func TestResultsOfTasksAreRepaired(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	tool := e2e.Tool("t", e2e.Obj{"execution": e2e.Obj{"taskSupport": "optional"}})
	only := e2e.Tool("only", e2e.Obj{"execution": e2e.Obj{"taskSupport": "required"}})
	text := e2e.Tool("text", e2e.Obj{"execution": e2e.Obj{"taskSupport": "optional"}})
	script := func(era string) e2e.Obj {
		odd := e2e.Actions(e2e.Do("result", e2e.Obj{"result": json.RawMessage(`{"content":"hello","isError":"true"}`)}))
		return e2e.Obj{
			"era": era, "tools": []e2e.Obj{tool, only, text}, "tasks": e2e.Obj{"t": e2e.Obj{"poll": 20}, "only": e2e.Obj{"required": true, "poll": 20}, "text": e2e.Obj{"poll": 20}},
			"on": e2e.Obj{"task t": odd, "task only": odd, "task text": e2e.Actions(e2e.Do("result", e2e.Obj{"result": json.RawMessage(`"just text"`)}))},
		}
	}
	w.Backend("old", script(""))
	w.Backend("next", script("modern"))
	c := w.Join()
	c.WaitListed("tools", "old_t", true)
	want := `{"content":[` + helloBlock + `],"isError":true}`
	created := c.Ok("tools/call", e2e.Obj{"name": "old_t", "task": e2e.Obj{"ttl": 60000}})
	require.Nil(t, e2e.At(created, "content"), "a created task has no content")
	got := c.Ok("tasks/result", e2e.Obj{"taskId": e2e.Str(created, "task", "taskId")})
	require.JSONEq(t, `[`+helloBlock+`]`, string(e2e.At(got, "content")))
	require.Equal(t, "true", string(e2e.At(got, "isError")))
	other := w.Socket()
	other.Ok("initialize", e2e.Obj{"protocolVersion": "2025-06-18", "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "e", "version": "1"}})
	other.Notify("notifications/initialized", nil)
	require.JSONEq(t, want, string(other.Ok("tools/call", e2e.Obj{"name": "old_only"})), "Goblin follows the task")

	next := w.Socket()
	next.Caps = e2e.Obj{"extensions": e2e.Obj{e2e.TasksExtension: e2e.Obj{}}}
	next.Stateless()
	next.WaitListed("tools", "next_t", true)
	for name, want := range map[string]string{"next_t": want, "next_text": `{"content":[` + textOf("just text") + `],"isError":true}`} {
		created := next.Ok("tools/call", e2e.Obj{"name": name})
		require.Equal(t, "task", e2e.Str(created, "resultType"), "it is passed on without content")
		e2e.Eventually(t, "the end of the task", func() bool {
			state := next.Ok("tasks/get", e2e.Obj{"taskId": e2e.Str(created, "taskId")})
			if e2e.Str(state, "status") != "completed" {
				return false
			}
			require.JSONEq(t, want, bareResult(t, e2e.At(state, "result")))
			return true
		})
	}
}

// Servers report an unknown list method in many ways.
func TestMalformedErrorsCostNoOtherList(t *testing.T) {
	t.Parallel()
	for _, sent := range []string{`"Method not found"`, `{"code":"-32601","message":"Method not found"}`, `{"code":-32601}`, `{"code":-32601.0,"message":"m"}`} {
		w := e2e.NewWorld(t)
		w.Backend("b", e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("t")}, "resources": []e2e.Obj{e2e.Resource("x:1")},
			"on": e2e.Obj{
				"server/discover":          e2e.Actions(e2e.Do("error", e2e.Obj{"error": json.RawMessage(sent)})),
				"resources/templates/list": e2e.Actions(e2e.Do("error", e2e.Obj{"error": json.RawMessage(sent)})),
			},
		})
		c := w.Standalone()
		c.WaitListed("tools", "b_t", true)
		c.WaitListed("resources", e2e.In("b", "x:1"), true)
		require.Empty(t, c.Names("templates"), sent)
		require.Equal(t, "b:t:{}", c.CallText("b_t", e2e.Obj{}))
		c.Close()
	}
}

func TestAnswersThatAreNoObjectReachTheClientInWords(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	servers := sayers(w)
	for revision, c := range clientsOfRevisions(t, w) {
		for _, server := range servers {
			c.WaitListed("tools", server+"_say", true)
			for sent, words := range map[string]string{`"disk full"`: "disk full", `12.50`: "12.50", `[1,"a"]`: `[1,"a"]`, `true`: "true", `null`: "null"} {
				m := askSayer(c, server, "tools/call", `{"result":`+sent+`}`)
				e := e2e.ParseFailure(t, m)
				require.Contains(t, e.Message, words, "%s %s", revision, server)
				require.JSONEq(t, `{"code":"BAD_REPLY","server":"`+server+`"}`, string(e.Data))
				for _, method := range []string{"resources/read", "prompts/get", "completion/complete"} {
					e := e2e.ParseError(t, askSayer(c, server, method, `{"result":`+sent+`}`))
					require.Contains(t, e.Message, words, "%s %s %s", revision, server, method)
					require.Equal(t, "BAD_REPLY", e.Kind())
				}
			}
		}
	}
}

// faultRow is a malformed error, the text that clients get, and its code and data for
// requests other than tools/call. Data of Goblin is "".
type faultRow struct {
	sent, words string
	code        int
	data        string
}

var faultRows = []faultRow{
	{`"it broke"`, "it broke", -32603, ""},
	{`["it","broke"]`, `["it","broke"]`, -32603, ""},
	{`[]`, `[]`, -32603, ""},
	{`true`, `true`, -32603, ""},
	{`17`, `17`, -32603, ""},
	{`{}`, `{}`, -32603, ""},
	{`{"code":"E_FAIL","message":"it broke"}`, `it broke (code "E_FAIL")`, -32603, ""},
	{`{"code":"E_FAIL","message":"it broke","data":{"why":"x"}}`, `it broke (code "E_FAIL", data {"why":"x"})`, -32603, `{"why":"x"}`},
	{`{"message":"it broke"}`, "it broke", -32603, ""},
	{`{"code":null,"message":"it broke","data":"why"}`, "it broke", -32603, `"why"`},
	{`{"code":1.5,"message":"it broke"}`, "it broke (code 1.5)", -32603, ""},
	{`{"code":"-32000","message":"it broke"}`, "it broke", -32000, ""},
	{`{"code":-32000}`, `{"code":-32000}`, -32000, ""},
	{`{"code":-32000,"data":{"why":"it broke"}}`, "it broke", -32000, `{"why":"it broke"}`},
	{`{"code":-32000,"message":{"text":"it broke"}}`, "it broke", -32000, ""},
	{`{"code":-32000,"message":null}`, `"message":null`, -32000, ""},
	{`{"Code":-32000,"Message":"it broke"}`, "it broke", -32603, ""},
}

func TestMalformedErrorsReachTheClientInWords(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	servers := sayers(w)
	for revision, c := range clientsOfRevisions(t, w) {
		for _, server := range servers {
			c.WaitListed("tools", server+"_say", true)
			own := `{"code":"BAD_REPLY","server":"` + server + `"}`
			for _, row := range faultRows {
				e := e2e.ParseFailure(t, askSayer(c, server, "tools/call", `{"error":`+row.sent+`}`))
				require.Contains(t, e.Message, row.words, "%s %s %s", revision, server, row.sent)
				require.Contains(t, e.Message, `server "`+server+`"`)
				require.JSONEq(t, own, string(e.Data), "%s %s", revision, row.sent)
				for _, method := range []string{"resources/read", "prompts/get", "completion/complete"} {
					e := e2e.ParseError(t, askSayer(c, server, method, `{"error":`+row.sent+`}`))
					require.Contains(t, e.Message, row.words, "%s %s %s %s", revision, server, method, row.sent)
					require.Equal(t, row.code, e.Code, row.sent)
					if row.data == "" {
						require.JSONEq(t, own, string(e.Data), row.sent)
					} else {
						require.JSONEq(t, row.data, string(e.Data), row.sent)
					}
				}
			}
			whole := e2e.ParseError(t, askSayer(c, server, "tools/call", `{"error":{"code":-32000.0,"message":"it broke"}}`))
			require.Equal(t, e2e.RpcError{Code: -32000, Message: "it broke"}, whole, "a float without a fraction is an integer")
		}
	}
}

// Some libraries send both members in every answer.
func TestAnswersWithBothMembers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	servers := sayers(w)
	for revision, c := range clientsOfRevisions(t, w) {
		for _, server := range servers {
			c.WaitListed("tools", server+"_say", true)
			good := `{"content":[` + helloBlock + `]}`
			for _, void := range []string{`null`, `false`, `""`, `{}`} {
				require.JSONEq(t, good, bareResult(t, askSayer(c, server, "tools/call", `{"error":`+void+`,"result":`+good+`}`).Result), revision)
				require.JSONEq(t, good, bareResult(t, askSayer(c, server, "tools/call", `{"result":`+good+`,"error":`+void+`}`).Result), revision)
			}
			for _, result := range []string{`null`, `{}`, good} {
				e := e2e.ParseError(t, askSayer(c, server, "tools/call", `{"result":`+result+`,"error":{"code":7,"message":"it broke"}}`))
				require.Equal(t, e2e.RpcError{Code: 7, Message: "it broke"}, e)
			}
			for _, reply := range []string{`{"error":null}`, `{"x":1}`, `{"result":null,"error":null}`} {
				e := e2e.ParseFailure(t, askSayer(c, server, "tools/call", reply))
				require.Equal(t, "BAD_REPLY", e.Kind(), "%s %s: %s", revision, server, reply)
			}
			require.JSONEq(t, good, bareResult(t, askSayer(c, server, "tools/call", `{"result":`+good+`}`).Result), "the connection works after it")
		}
	}
	for _, b := range w.Backends {
		if b.Name == "local" || b.Name == "next" {
			require.Equal(t, 1, b.Starts(), b.Name)
		}
	}
}

// A server that adds "error": null to every answer, also to those of the handshake.
func TestAServerWhoseAnswersAllHaveErrorNullIsNotLost(t *testing.T) {
	t.Parallel()
	for _, front := range []string{"stdio", "http"} {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			script := e2e.Filesystem()
			script["errorNull"] = true
			if front == "http" {
				w.Remote("b", "/mcp", script)
			} else {
				w.Backend("b", script)
			}
			c := w.Standalone()
			c.WaitListed("tools", "b_stat", true)
			require.Contains(t, c.CallText("b_stat", e2e.Obj{}), "b:stat")
		})
	}
}

func TestAnEmptyResultMayBeNull(t *testing.T) {
	t.Parallel()
	null := e2e.Actions(e2e.Do("result", e2e.Obj{"result": json.RawMessage("null")}))
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{
		"capabilities": e2e.Obj{"resources": e2e.Obj{"subscribe": true}, "logging": e2e.Obj{}}, "resources": []e2e.Obj{e2e.Resource("x:1")},
		"on": e2e.Obj{"resources/subscribe": null, "resources/unsubscribe": null, "logging/setLevel": null, "ping": null},
	})
	c := w.Standalone()
	c.WaitListed("resources", e2e.In("b", "x:1"), true)
	require.JSONEq(t, `{}`, string(c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("b", "x:1")})))
	b.Updated("x:1")
	require.Equal(t, []string{e2e.In("b", "x:1")}, c.WaitUpdates(1))
}

func TestCommandsAndScriptsGetRepairedResults(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["meta_tools"] = []string{"execute_lua", "call_tool"}
	result := func(result string) []e2e.Obj {
		return e2e.Actions(e2e.Do("result", e2e.Obj{"result": json.RawMessage(result)}))
	}
	w.Backend("b", e2e.Obj{
		"tools":   []e2e.Obj{e2e.Tool("plain"), e2e.Tool("fails"), e2e.Tool("whole")},
		"prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("x:1")},
		"on": e2e.Obj{
			"tools/call plain": result(`{"content":"hello","isError":null}`), "tools/call fails": result(`{"content":"it broke","isError":"true"}`),
			"tools/call whole": result(`"just text"`), "prompts/get p": result(`{"messages":[{"role":"system","content":"hello"}]}`),
			"resources/read": result(`{"contents":"hello"}`),
		},
	})
	require.Contains(t, w.Succeeds("call", "b_plain"), "hello")
	require.Contains(t, w.Succeeds("read", e2e.In("b", "x:1")), "hello")
	require.Contains(t, w.Succeeds("prompt", "b/p"), "hello")
	for tool, words := range map[string]string{"b_fails": "it broke", "b_whole": "just text"} {
		out := w.Run("call", tool)
		require.Equal(t, e2e.ExitFailure, out.Code)
		require.Contains(t, out.Stdout+out.Stderr, words)
	}
	c := w.Standalone()
	c.WaitListed("tools", "b_plain", true)
	require.JSONEq(t, `{"content":[`+helloBlock+`]}`, string(c.Ok("tools/call", e2e.Obj{"name": "call_tool", "arguments": e2e.Obj{"name": "b_plain"}})))
	require.Contains(t, c.LuaText(`return b.plain{}`), "hello")
	require.Contains(t, c.LuaText(`local ok, e = pcall(function() return b.whole{} end) return e.message .. e.data.code`), "just text"+"BAD_REPLY")
}

// Texts of servers become part of messages: their size is limited, and terminals get no
// control characters.
func TestWordsOfServersAreBoundedInMessages(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	result := func(result string) []e2e.Obj {
		return e2e.Actions(e2e.Do("result", e2e.Obj{"result": json.RawMessage(result)}))
	}
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("long"), e2e.Tool("red")}, "on": e2e.Obj{
		"tools/call long": result(`"` + strings.Repeat("x", 1<<20) + `"`), "tools/call red": result(`"\u001b[31mred"`),
	}})
	require.NotContains(t, w.Run("call", "b_red").Stderr, "\x1b")
	c := w.Standalone()
	require.Less(t, len(c.Fails(e2e.Obj{"name": "b_long"}).Message), 8<<10)
}
