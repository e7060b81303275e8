//go:build e2e

package calls

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const (
	relatedTask = e2e.ProtocolPrefix + "related-task"
)

// taskTool is a tool that runs as a task.
func taskTool(name, support string) e2e.Obj {
	return e2e.Obj{"name": name, "inputSchema": e2e.Obj{"type": "object"}, "execution": e2e.Obj{"taskSupport": support}}
}

// taskClients runs a test with clients over each front and a server over each transport.
// connect returns uninitialized clients of one gateway.
func taskClients(t *testing.T, test func(t *testing.T, w *e2e.World, kind string, connect func() *e2e.Client)) {
	t.Helper()
	t.Parallel()
	for _, way := range e2e.Variants(1, [2]string{"http", "stdio"}, [2]string{"socket", "http"}) {
		front, back := way[0], way[1]
		t.Run(front+" to "+back, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			test(t, w, back, func() *e2e.Client {
				if front == "socket" {
					return w.Socket()
				}
				return w.Served().RawClient()
			})
		})
	}
}

// startTask calls a tool as a task and returns the task's id.
func startTask(c *e2e.Client, name string, more ...e2e.Obj) string {
	c.T.Helper()
	params := e2e.Obj{"name": name, "arguments": e2e.Obj{}, "task": e2e.Obj{"ttl": 60000}}
	for _, m := range more {
		for k, v := range m {
			params[k] = v
		}
	}
	id := e2e.Str(c.Ok("tools/call", params), "task", "taskId")
	require.NotEmpty(c.T, id)
	return id
}

// awaitStatus polls a task until it has that status.
func awaitStatus(c *e2e.Client, id, status string) (state json.RawMessage) {
	c.T.Helper()
	e2e.Eventually(c.T, "task "+status, func() bool {
		state = c.Ok("tasks/get", e2e.Obj{"taskId": id})
		return e2e.Str(state, "status") == status
	})
	return state
}

func taskIDs(c *e2e.Client) (ids []string) {
	params := e2e.Obj{}
	for {
		result := c.Ok("tasks/list", params)
		for _, task := range e2e.Each(result, "tasks") {
			ids = append(ids, e2e.Str(task, "taskId"))
		}
		if e2e.At(result, "nextCursor") == nil {
			return ids
		}
		params = e2e.Obj{"cursor": e2e.At(result, "nextCursor")}
	}
}

func TestTasksAreTheirClientsOwn(t *testing.T) {
	taskClients(t, func(t *testing.T, w *e2e.World, kind string, connect func() *e2e.Client) {
		script := func() e2e.Obj {
			return e2e.Obj{
				"tools": []e2e.Obj{taskTool("t", "optional")}, "tasks": e2e.Obj{"t": e2e.Obj{"poll": 5000}},
				"resources": []e2e.Obj{e2e.Resource("x:1")},
				"on": e2e.Obj{"task t": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("result", e2e.Obj{"result": e2e.Obj{
					"content":           []e2e.Obj{{"type": "resource_link", "uri": "x:1", "name": "r"}},
					"structuredContent": json.RawMessage(`{"a":[9007199254740993,1e400]}`),
				}}))},
			}
		}
		a, b := w.TaskBackend("a", kind, script()), w.TaskBackend("b", kind, script())
		c, other := connect(), connect()
		caps := e2e.At(c.Init(), "capabilities")
		require.JSONEq(t, `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`, string(e2e.At(caps, "tasks")))
		other.Init()

		created := c.Ok("tools/call", e2e.Obj{"name": "a_t", "task": e2e.Obj{"ttl": 60000}, "arguments": e2e.Obj{"n": 1}})
		require.JSONEq(t, `{"vendor":1}`, string(e2e.At(created, "_meta")))
		require.Equal(t, "1.50", string(e2e.At(created, "task", "vendor")))
		require.Equal(t, "5000", string(e2e.At(created, "task", "pollInterval")))
		first := e2e.Str(created, "task", "taskId")
		asked := e2e.At(a.Received("tools/call")[0].Msg, "params")
		require.JSONEq(t, "{}", e2e.WithoutProgressToken(t, e2e.At(asked, "_meta")))
		require.JSONEq(t, `{"name":"t","task":{"ttl":60000},"arguments":{"n":1},"_meta":`+string(e2e.At(asked, "_meta"))+`}`, string(asked))
		second := startTask(c, "b_t")
		require.NotEqual(t, first, second, "both servers name it task-1")
		theirs := startTask(other, "a_t")

		require.Equal(t, first, e2e.Str(c.Ok("tasks/get", e2e.Obj{"taskId": first}), "taskId"))
		require.Equal(t, "working", e2e.Str(c.Ok("tasks/get", e2e.Obj{"taskId": first}), "status"))
		require.Equal(t, []string{first, second}, taskIDs(c), "its own only")
		require.Equal(t, []string{theirs}, taskIDs(other))
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			for _, id := range []string{theirs, "task-1", "none"} {
				require.Equal(t, -32602, c.Fault(method, e2e.Obj{"taskId": id}).Code, "%s of %s", method, id)
			}
			require.Equal(t, -32602, c.Fault(method, e2e.Obj{}).Code)
		}
		require.Equal(t, -32602, c.Fault("tasks/list", e2e.Obj{"cursor": "x"}).Code)

		waiting := c.Begin("tasks/result", e2e.Obj{"taskId": first})
		a.WaitEvent("wait", "result")
		a.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
		got := c.End(waiting)
		require.Nil(t, got.Error)
		require.Equal(t, first, e2e.Str(got.Result, "_meta", relatedTask, "taskId"))
		require.Equal(t, e2e.In("a", "x:1"), e2e.Str(got.Result, "content", 0, "uri"))
		require.Equal(t, `{"a":[9007199254740993,1e400]}`, string(e2e.At(got.Result, "structuredContent")))
		awaitStatus(c, first, "completed")
		require.Equal(t, -32602, c.Fault("tasks/cancel", e2e.Obj{"taskId": first}).Code, "it is over")

		cancelled := c.Ok("tasks/cancel", e2e.Obj{"taskId": second})
		require.Equal(t, second, e2e.Str(cancelled, "taskId"))
		require.Equal(t, "cancelled", e2e.Str(cancelled, "status"))
		b.WaitEvent("gone", "t")
		require.Equal(t, -32000, c.Fault("tasks/result", e2e.Obj{"taskId": second}).Code, "the server's own error")
	})
}

func TestToolsThatRunAsTasksOnlyAreWaitedFor(t *testing.T) {
	taskClients(t, func(t *testing.T, w *e2e.World, kind string, connect func() *e2e.Client) {
		b := w.TaskBackend("b", kind, e2e.Obj{
			"tools": []e2e.Obj{taskTool("t", "required"), taskTool("slow", "required"), taskTool("fails", "required"), taskTool("asks", "required"), taskTool("plain", "optional")},
			"tasks": e2e.Obj{
				"t": e2e.Obj{"required": true, "poll": 30}, "slow": e2e.Obj{"required": true, "poll": 20}, "fails": e2e.Obj{"required": true, "poll": 20},
				"asks": e2e.Obj{"required": true, "poll": 20}, "plain": e2e.Obj{},
			},
			"calls": e2e.Obj{"t": e2e.Obj{"content": []e2e.Obj{}, "x": json.RawMessage("1.50")}},
			"on": e2e.Obj{
				"task t":     e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 3}), e2e.Do("delay", e2e.Obj{"ms": 200})),
				"task slow":  e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"})),
				"task fails": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32123, "message": "mine"}})),
				"task asks": e2e.Actions(
					e2e.Do("task", e2e.Obj{"text": "input_required"}),
					e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "who?", "requestedSchema": e2e.Obj{"type": "object"}}}),
					e2e.Do("answers"),
				),
			},
		})
		reply := func(e2e.Message) (any, any) { return e2e.Obj{"action": "accept", "content": e2e.Obj{"a": 1}}, nil }
		old := connect()
		old.Caps, old.Reply = e2e.Obj{"elicitation": e2e.Obj{}}, reply
		old.Ok("initialize", e2e.Obj{"protocolVersion": "2025-06-18", "capabilities": old.Caps, "clientInfo": e2e.Obj{"name": "old", "version": "1"}})
		if old.Web != nil {
			old.Web.Version = "2025-06-18"
		}
		modern := connect()
		modern.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		modern.Stateless()
		if modern.Web != nil {
			modern.Web.Stateless = true
		}
		for n, c := range []*e2e.Client{old, modern} {
			m := c.Request("tools/call", e2e.Obj{"name": "b_t", "_meta": e2e.Obj{"progressToken": "p"}})
			require.Nil(t, m.Error, m.Raw)
			require.Equal(t, "1.50", string(e2e.At(m.Result, "x")))
			require.NotContains(t, m.Raw, "related-task")
			notes := c.NotesOf("notifications/progress")
			require.Len(t, notes, 3)
			for _, note := range notes {
				require.Equal(t, "p", e2e.Str(note.Params, "progressToken"))
				require.NotContains(t, note.Raw, "related-task")
				require.Less(t, note.Seq, m.Seq)
			}
			require.Equal(t, -32123, c.Fault("tools/call", e2e.Obj{"name": "b_fails"}).Code)
			require.Equal(t, "b:plain:", c.CallText("b_plain", nil)[:8])
			require.Nil(t, e2e.At(b.Received("tools/call")[len(b.Received("tools/call"))-1].Msg, "params", "task"), "a tool with optional tasks is called without one")

			id := c.Begin("tools/call", e2e.Obj{"name": "b_slow"})
			b.WaitEvents("wait", "never", n+1)
			if c == modern && c.Web != nil {
				c.Web.Abort(id)
			} else {
				c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
			}
			b.WaitEvents("gone", "slow", n+1)
			b.WaitReceived("tasks/cancel", n+1)
		}
		require.Contains(t, old.CallText("b_asks", e2e.Obj{}), `"action":"accept"`)
		asked := modern.Ok("tools/call", e2e.Obj{"name": "b_asks"})
		require.Equal(t, "input_required", e2e.Str(asked, "resultType"))
		var key string
		for key = range func() (m map[string]json.RawMessage) { _ = json.Unmarshal(e2e.At(asked, "inputRequests"), &m); return }() {
		}
		done := modern.Ok("tools/call", e2e.Obj{"name": "b_asks", "requestState": e2e.At(asked, "requestState"), "inputResponses": e2e.Obj{key: e2e.Obj{"action": "decline"}}})
		require.Contains(t, e2e.Str(done, "content", 0, "text"), "decline")
	})
}

func TestTasksExtensionPassesBetweenThoseThatHaveIt(t *testing.T) {
	taskClients(t, func(t *testing.T, w *e2e.World, kind string, connect func() *e2e.Client) {
		script := func() e2e.Obj {
			return e2e.Obj{
				"era": "modern", "tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("only"), e2e.Tool("asks"), e2e.Tool("opens")},
				"tasks":     e2e.Obj{"t": e2e.Obj{"poll": 100}, "only": e2e.Obj{"required": true}, "asks": e2e.Obj{}, "opens": e2e.Obj{}},
				"resources": []e2e.Obj{e2e.Resource("x:1")},
				"on": e2e.Obj{
					"task t": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("result", e2e.Obj{"result": e2e.Obj{"content": []e2e.Obj{{"type": "resource_link", "uri": "x:1", "name": "r"}}, "n": json.RawMessage("1e400")}})),
					"task asks": e2e.Actions(
						e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "who?", "requestedSchema": e2e.Obj{"type": "object"}}}),
						e2e.Do("answers"),
					),
					"task opens": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"mode": "url", "url": "javascript:alert(1)", "message": "m"}})),
				},
			}
		}
		b := w.TaskBackend("b", kind, script())
		connectWith := func(caps e2e.Obj) *e2e.Client {
			c := connect()
			c.Caps = caps
			c.Stateless()
			if c.Web != nil {
				c.Web.Stateless = true
			}
			return c
		}
		extended := e2e.Obj{"elicitation": e2e.Obj{}, "extensions": e2e.Obj{e2e.TasksExtension: e2e.Obj{}}}
		c, without := connectWith(extended), connectWith(e2e.Obj{})
		require.JSONEq(t, `{}`, string(e2e.At(c.Ok("server/discover", e2e.Obj{}), "capabilities", "extensions", e2e.TasksExtension)))

		// Clients that don't declare the extension get results, and servers don't see it
		// declared.
		require.Equal(t, "b:t:", e2e.Str(without.Ok("tools/call", e2e.Obj{"name": "b_t"}), "content", 0, "text")[:4])
		require.Nil(t, e2e.At(json.RawMessage(e2e.ProtocolMeta(b.Received("tools/call")[0], "clientCapabilities")), "extensions"))
		require.Equal(t, -32021, without.Fault("tools/call", e2e.Obj{"name": "b_only"}).Code)
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			e := without.Fault(method, e2e.Obj{"taskId": "x"})
			require.Equal(t, -32021, e.Code)
			require.JSONEq(t, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, string(e2e.At(e.Data, "requiredCapabilities")))
			require.Equal(t, -32602, c.Fault(method, e2e.Obj{"taskId": "x"}).Code)
		}
		for _, method := range []string{"tasks/list", "tasks/result"} {
			require.Equal(t, -32601, c.Fault(method, e2e.Obj{"taskId": "x"}).Code)
		}

		created := c.Ok("tools/call", e2e.Obj{"name": "b_t"})
		require.Equal(t, "task", e2e.Str(created, "resultType"))
		require.Equal(t, "1.50", string(e2e.At(created, "vendor")))
		require.JSONEq(t, `{}`, string(e2e.At(json.RawMessage(e2e.ProtocolMeta(b.Received("tools/call")[2], "clientCapabilities")), "extensions", e2e.TasksExtension)))
		id := e2e.Str(created, "taskId")
		require.NotContains(t, id, "task-")
		state := c.Ok("tasks/get", e2e.Obj{"taskId": id})
		require.Equal(t, "complete", e2e.Str(state, "resultType"))
		require.Equal(t, id, e2e.Str(state, "taskId"))
		require.Equal(t, "working", e2e.Str(state, "status"))
		asked := b.Received("tasks/get")[0]
		require.Equal(t, "task-1", e2e.Str(asked.Msg, "params", "taskId"))
		if kind == "http" {
			require.Equal(t, "task-1", asked.Headers["mcp-name"])
		}
		b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
		state = awaitStatus(c, id, "completed")
		require.Equal(t, e2e.In("b", "x:1"), e2e.Str(state, "result", "content", 0, "uri"))
		require.Equal(t, "1e400", string(e2e.At(state, "result", "n")))

		// A task's state contains its requests; tasks/update carries the answers.
		id = e2e.Str(c.Ok("tools/call", e2e.Obj{"name": "b_asks"}), "taskId")
		state = awaitStatus(c, id, "input_required")
		require.Equal(t, "who?", e2e.Str(state, "inputRequests", "ask 0", "params", "message"))
		require.Equal(t, `"complete"`, string(e2e.At(c.Ok("tasks/update", e2e.Obj{"taskId": id, "inputResponses": e2e.Obj{"ask 0": e2e.Obj{"action": "accept", "n": json.RawMessage("1.0")}}}), "resultType")))
		require.JSONEq(t, `{"ask 0":{"action":"accept","n":1.0}}`, string(e2e.At(b.Received("tasks/update")[0].Msg, "params", "inputResponses")))
		state = awaitStatus(c, id, "completed")
		require.Contains(t, e2e.Str(state, "result", "content", 0, "text"), "accept")

		// No task makes a user open a URL that isn't a web page.
		id = e2e.Str(c.Ok("tools/call", e2e.Obj{"name": "b_opens"}), "taskId")
		e2e.Eventually(t, "the state is refused", func() bool {
			return strings.Contains(c.Request("tasks/get", e2e.Obj{"taskId": id}).Raw, "url is not a web page")
		})

		id = e2e.Str(c.Ok("tools/call", e2e.Obj{"name": "b_only"}), "taskId")
		awaitStatus(c, id, "completed")
		require.Equal(t, `"complete"`, string(e2e.At(c.Ok("tasks/cancel", e2e.Obj{"taskId": id}), "resultType")))

		legacy := connect()
		legacy.Init()
		require.Equal(t, "b:t:", legacy.CallText("b_t", nil)[:4], "clients of older revisions get no task")
		require.Equal(t, -32602, legacy.Fault("tasks/get", e2e.Obj{"taskId": id}).Code)
	})
}

func TestAnUpdateFromWithinATaskReachesThoseWhoSubscribed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{
		"tools": []e2e.Obj{taskTool("t", "optional")}, "tasks": e2e.Obj{"t": e2e.Obj{}},
		"resources": []e2e.Obj{e2e.Resource("x:1")},
		"on": e2e.Obj{"task t": e2e.Actions(
			e2e.Do("wait", e2e.Obj{"name": "go"}),
			e2e.Do("notify", e2e.Obj{"method": "notifications/resources/updated", "params": e2e.Obj{"uri": "x:1"}}),
			e2e.Do("wait", e2e.Obj{"name": "end"}),
		)},
	})
	owner, watcher := w.Join(), w.Join()
	uri := e2e.In("b", "x:1")
	watcher.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	startTask(owner, "b_t")
	b.WaitEvent("wait", "go")
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Equal(t, []string{uri}, watcher.WaitUpdates(1))
	b.WaitEvent("wait", "end")
	owner.Ok("ping", nil)
	require.Empty(t, owner.Updates(), "it did not subscribe")
}

func TestAVendorsNotificationOfATaskHasTheURIThatClientsSee(t *testing.T) {
	t.Parallel()
	changed := e2e.Do("notify", e2e.Obj{"method": "notifications/acme/changed", "params": e2e.Obj{
		"uri": "x:1", "_meta": e2e.Obj{relatedTask: e2e.Obj{"taskId": "task-1"}},
	}})
	for name, c := range map[string]struct {
		on      string // when the server sends it
		support string // the tool's support of tasks
	}{
		"within the task": {"task t", "optional"},
		"before the task": {"create t", "optional"},
		"within a task that its client does not see": {"task t", "required"},
		"before a task that its client does not see": {"create t", "required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("b", e2e.Obj{
				"tools": []e2e.Obj{taskTool("t", c.support)}, "tasks": e2e.Obj{"t": e2e.Obj{"required": c.support == "required", "poll": 20}},
				"resources": []e2e.Obj{e2e.Resource("x:1")},
				"on":        e2e.Obj{c.on: e2e.Actions(changed)},
			})
			var owner *e2e.Client
			if c.support == "required" {
				owner = w.Socket()
				owner.Ok("initialize", e2e.Obj{"protocolVersion": "2025-06-18", "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "old", "version": "1"}})
				owner.Ok("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{}})
			} else {
				owner = w.Join()
				startTask(owner, "b_t")
			}
			note := owner.WaitNote("notifications/acme/changed", nil)
			require.Equal(t, e2e.In("b", "x:1"), e2e.Str(note.Params, "uri"))
		})
	}
}

func TestALogFromBeforeATaskThatAClientDoesNotSeeKeepsToItsLevel(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"old", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("b", e2e.Obj{
				"tools": []e2e.Obj{taskTool("t", "required")}, "tasks": e2e.Obj{"t": e2e.Obj{"required": true, "poll": 20}},
				"on": e2e.Obj{"create t": e2e.Actions(
					e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": "debug", "data": "early", "_meta": e2e.Obj{relatedTask: e2e.Obj{"taskId": "task-1"}}}}),
				)},
			})
			c := w.Socket()
			if era == "modern" {
				c.Stateless() // the client requested no logs
			} else {
				c.Ok("initialize", e2e.Obj{"protocolVersion": "2025-06-18", "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "old", "version": "1"}})
				c.Ok("logging/setLevel", e2e.Obj{"level": "error"})
			}
			c.Ok("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{}})
			require.Empty(t, c.NotesOf("notifications/message"))
		})
	}
}
