package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	tasksExtension = protocolPrefix + "tasks"
	relatedTask    = protocolPrefix + "related-task"
)

// taskTool is a tool that runs as a task.
func taskTool(name, support string) obj {
	return obj{"name": name, "inputSchema": obj{"type": "object"}, "execution": obj{"taskSupport": support}}
}

// taskFronts and taskBacks are where clients and backends of tests are.
var taskFronts, taskBacks = []string{"stdio", "http"}, []string{"stdio", "http"}

// taskClients runs a test with clients over each front and a backend behind
// each transport. connect gives clients of one gateway that have not
// initialized yet.
func taskClients(t *testing.T, test func(t *testing.T, w *world, kind string, connect func() *client)) {
	t.Helper()
	t.Parallel()
	for _, front := range taskFronts {
		for _, back := range taskBacks {
			t.Run(front+" to "+back, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				var s *web
				test(t, w, back, func() *client {
					if front == "stdio" {
						w.hosted = true
						return w.pipe("stdio")
					}
					if s == nil {
						s = w.serve()
					}
					return s.rawClient()
				})
			})
		}
	}
}

// taskBackend adds a backend of an era behind a transport.
func (w *world) taskBackend(name, kind string, script obj) *backend {
	w.t.Helper()
	if kind == "http" {
		return w.remote(name, "/mcp", script)
	}
	return w.backend(name, script)
}

// startTask calls a tool as a task and gives its id.
func (c *client) startTask(name string, more ...obj) string {
	c.t.Helper()
	params := obj{"name": name, "arguments": obj{}, "task": obj{"ttl": 60000}}
	for _, m := range more {
		for k, v := range m {
			params[k] = v
		}
	}
	id := str(c.ok("tools/call", params), "task", "taskId")
	require.NotEmpty(c.t, id)
	return id
}

// awaitStatus asks for a task's state until it has that status.
func (c *client) awaitStatus(id, status string) (state json.RawMessage) {
	c.t.Helper()
	eventually(c.t, "task "+status, func() bool {
		state = c.ok("tasks/get", obj{"taskId": id})
		return str(state, "status") == status
	})
	return state
}

func taskIDs(c *client) (ids []string) {
	params := obj{}
	for {
		result := c.ok("tasks/list", params)
		for _, task := range each(result, "tasks") {
			ids = append(ids, str(task, "taskId"))
		}
		if at(result, "nextCursor") == nil {
			return ids
		}
		params = obj{"cursor": at(result, "nextCursor")}
	}
}

func TestTasksAreTheirClientsOwn(t *testing.T) {
	taskClients(t, func(t *testing.T, w *world, kind string, connect func() *client) {
		script := func() obj {
			return obj{
				"tools": []obj{taskTool("t", "optional")}, "tasks": obj{"t": obj{"poll": 5000}},
				"resources": []obj{resource("x:1")},
				"on": obj{"task t": actions(do("wait", obj{"name": "go"}), do("result", obj{"result": obj{
					"content":           []obj{{"type": "resource_link", "uri": "x:1", "name": "r"}},
					"structuredContent": json.RawMessage(`[9007199254740993,1e400]`),
				}}))},
			}
		}
		a, b := w.taskBackend("a", kind, script()), w.taskBackend("b", kind, script())
		c, other := connect(), connect()
		caps := at(c.init(), "capabilities")
		require.JSONEq(t, `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`, string(at(caps, "tasks")))
		other.init()

		created := c.ok("tools/call", obj{"name": "a_t", "task": obj{"ttl": 60000}, "arguments": obj{"n": 1}})
		require.JSONEq(t, `{"vendor":1}`, string(at(created, "_meta")))
		require.Equal(t, "1.50", string(at(created, "task", "vendor")))
		require.Equal(t, "5000", string(at(created, "task", "pollInterval")))
		first := str(created, "task", "taskId")
		require.JSONEq(t, `{"name":"t","task":{"ttl":60000},"arguments":{"n":1}}`, string(at(a.received("tools/call")[0].Msg, "params")))
		second := c.startTask("b_t")
		require.NotEqual(t, first, second, "both servers say task-1")
		theirs := other.startTask("a_t")

		require.Equal(t, first, str(c.ok("tasks/get", obj{"taskId": first}), "taskId"))
		require.Equal(t, "working", str(c.ok("tasks/get", obj{"taskId": first}), "status"))
		require.Equal(t, []string{first, second}, taskIDs(c), "its own only")
		require.Equal(t, []string{theirs}, taskIDs(other))
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			for _, id := range []string{theirs, "task-1", "none"} {
				require.Equal(t, -32602, c.fault(method, obj{"taskId": id}).Code, "%s of %s", method, id)
			}
			require.Equal(t, -32602, c.fault(method, obj{}).Code)
		}
		require.Equal(t, -32602, c.fault("tasks/list", obj{"cursor": "x"}).Code)

		waiting := c.begin("tasks/result", obj{"taskId": first})
		a.waitEvent("wait", "result")
		a.do(do("release", obj{"name": "go"}))
		got := c.end(waiting)
		require.Nil(t, got.Error)
		require.Equal(t, first, str(got.Result, "_meta", relatedTask, "taskId"))
		require.Equal(t, in("a", "x:1"), str(got.Result, "content", 0, "uri"))
		require.Equal(t, `[9007199254740993,1e400]`, string(at(got.Result, "structuredContent")))
		c.awaitStatus(first, "completed")
		require.Equal(t, -32602, c.fault("tasks/cancel", obj{"taskId": first}).Code, "it is over")

		cancelled := c.ok("tasks/cancel", obj{"taskId": second})
		require.Equal(t, second, str(cancelled, "taskId"))
		require.Equal(t, "cancelled", str(cancelled, "status"))
		b.waitEvent("gone", "t")
		require.Equal(t, -32000, c.fault("tasks/result", obj{"taskId": second}).Code, "the server's own error")
	})
}

func TestTasksListIsPaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{taskTool("t", "optional")}, "tasks": obj{"t": obj{}}})
	c := w.standalone()
	var made []string
	for range 60 {
		made = append(made, c.startTask("b_t"))
	}
	require.Len(t, each(c.ok("tasks/list", obj{}), "tasks"), 50)
	require.Equal(t, made, taskIDs(c))
	b.do(do("on", obj{"key": "tasks/get", "actions": actions(do("error", obj{"error": obj{"code": -32602, "message": "expired"}}))}))
	require.Empty(t, taskIDs(c), "what its server has forgotten is gone")
	require.Equal(t, -32602, c.fault("tasks/get", obj{"taskId": made[0]}).Code)
}

func TestTasksTellTheirOwnersOnly(t *testing.T) {
	taskClients(t, func(t *testing.T, w *world, kind string, connect func() *client) {
		b := w.taskBackend("b", kind, obj{
			"tools": []obj{taskTool("t", "required")}, "tasks": obj{"t": obj{"required": true}},
			"on": obj{"task t": actions(
				do("wait", obj{"name": "go"}),
				do("task", obj{"text": "input_required"}),
				do("progress", obj{"n": 2}),
				do("notify", obj{"method": "notifications/message", "params": obj{"level": "error", "data": "d"}}),
				do("request", obj{"method": "elicitation/create", "params": obj{"message": "who?", "requestedSchema": obj{"type": "object"}}}),
				do("answers"),
			)},
		})
		c, other := connect(), connect()
		for _, each := range []*client{c, other} {
			each.caps = obj{"elicitation": obj{}}
			each.init()
		}
		c.reply = func(ask message) (any, any) {
			return obj{"action": "accept", "content": obj{"a": 1}, "_meta": obj{relatedTask: obj{"taskId": str(ask.Params, "_meta", relatedTask, "taskId")}}}, nil
		}
		require.Equal(t, -32601, c.fault("tools/call", obj{"name": "b_t"}).Code, "who has tasks must ask for one")
		id := c.startTask("b_t", obj{"_meta": obj{"progressToken": 7, "vendor": 2}})
		require.Equal(t, "2", string(at(b.received("tools/call")[1].Msg, "params", "_meta", "vendor")))
		waiting := c.begin("tasks/result", obj{"taskId": id})
		b.waitEvent("wait", "result")
		b.do(do("release", obj{"name": "go"}))
		got := c.end(waiting)
		require.Nil(t, got.Error, "%s", got.raw)
		require.Contains(t, str(got.Result, "content", 0, "text"), `"action":"accept"`)
		require.Contains(t, str(got.Result, "content", 0, "text"), `"taskId":"task-1"`, "the server's own id in the answer")

		status := c.noted("notifications/tasks/status", nil)
		require.Equal(t, id, str(status.Params, "taskId"))
		require.Equal(t, "input_required", str(status.Params, "status"))
		require.Len(t, c.notesOf("notifications/progress"), 2)
		for _, n := range append(c.notesOf("notifications/progress"), c.notesOf("notifications/message")...) {
			require.Equal(t, id, str(n.Params, "_meta", relatedTask, "taskId"), n.raw)
			require.Less(t, n.seq, got.seq)
		}
		require.Equal(t, "7", string(at(c.notesOf("notifications/progress")[0].Params, "progressToken")))
		ask := c.asked(1)
		require.Equal(t, id, str(ask.Params, "_meta", relatedTask, "taskId"))
		if c.web != nil {
			require.Equal(t, waiting, ask.via, "on the stream of the request for the result")
		}
		other.forget()
		require.Empty(t, other.asks)
		require.Empty(t, other.notesOf("notifications/tasks/status"))
	})
}

func TestTasksEndWithWhatTheyBelongTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{
		"tools": []obj{taskTool("t", "optional"), tool("plain")}, "tasks": obj{"t": obj{}},
		"on": obj{"task t": actions(do("wait", obj{"name": "never"}))},
	})
	w.backend("c", obj{"tools": []obj{taskTool("t", "optional")}})
	c, other := w.bridged(), w.bridged()

	// A tool that runs as no task says so; no other revision has tasks.
	require.Equal(t, -32601, c.fault("tools/call", obj{"name": "c_t", "task": obj{}}).Code)
	old := w.pipe("stdio")
	result := old.ok("initialize", obj{"protocolVersion": "2025-06-18", "capabilities": obj{}, "clientInfo": obj{"name": "old", "version": "1"}})
	require.Nil(t, at(result, "capabilities", "tasks"))
	require.Equal(t, -32601, old.fault("tasks/list", obj{}).Code)
	require.Nil(t, at(old.ok("tools/call", obj{"name": "b_plain", "task": obj{}}), "task"))
	require.Nil(t, at(b.received("tools/call")[0].Msg, "params", "task"), "it means nothing in that revision")

	id := other.startTask("b_t")
	waiting := other.begin("tasks/result", obj{"taskId": id})
	b.waitEvent("wait", "result")
	other.notify("notifications/cancelled", obj{"requestId": json.RawMessage(waiting)})
	b.waitEvent("gone", "result")
	require.Equal(t, "working", str(other.ok("tasks/get", obj{"taskId": id}), "status"), "only the request was cancelled")
	other.close()
	other.prog.ends(patience)
	b.waitReceived("tasks/cancel", 1) // nobody is left who could fetch it
	b.waitEvent("gone", "t")

	id = c.startTask("b_t")
	b.do(do("crash"))
	b.waitStarts(2)
	eventually(t, "the server to be back", func() bool { return c.request("tools/call", obj{"name": "b_plain"}).Error == nil })
	require.Equal(t, -32602, c.fault("tasks/get", obj{"taskId": id}).Code, "another process has another task-1")
}

func TestToolsThatRunAsTasksOnlyAreWaitedFor(t *testing.T) {
	taskClients(t, func(t *testing.T, w *world, kind string, connect func() *client) {
		b := w.taskBackend("b", kind, obj{
			"tools": []obj{taskTool("t", "required"), taskTool("slow", "required"), taskTool("fails", "required"), taskTool("asks", "required"), taskTool("plain", "optional")},
			"tasks": obj{
				"t": obj{"required": true, "poll": 30}, "slow": obj{"required": true, "poll": 20}, "fails": obj{"required": true, "poll": 20},
				"asks": obj{"required": true, "poll": 20}, "plain": obj{},
			},
			"calls": obj{"t": obj{"content": []obj{}, "x": json.RawMessage("1.50")}},
			"on": obj{
				"task t":     actions(do("progress", obj{"n": 3}), do("delay", obj{"ms": 200})),
				"task slow":  actions(do("wait", obj{"name": "never"})),
				"task fails": actions(do("error", obj{"error": obj{"code": -32123, "message": "mine"}})),
				"task asks": actions(
					do("task", obj{"text": "input_required"}),
					do("request", obj{"method": "elicitation/create", "params": obj{"message": "who?", "requestedSchema": obj{"type": "object"}}}),
					do("answers"),
				),
			},
		})
		reply := func(message) (any, any) { return obj{"action": "accept", "content": obj{"a": 1}}, nil }
		old := connect()
		old.caps, old.reply = obj{"elicitation": obj{}}, reply
		old.ok("initialize", obj{"protocolVersion": "2025-06-18", "capabilities": old.caps, "clientInfo": obj{"name": "old", "version": "1"}})
		if old.web != nil {
			old.web.version = "2025-06-18"
		}
		modern := connect()
		modern.caps = obj{"elicitation": obj{}}
		modern.stateless()
		if modern.web != nil {
			modern.web.stateless = true
		}
		for n, c := range []*client{old, modern} {
			m := c.request("tools/call", obj{"name": "b_t", "_meta": obj{"progressToken": "p"}})
			require.Nil(t, m.Error, m.raw)
			require.Equal(t, "1.50", string(at(m.Result, "x")))
			require.NotContains(t, m.raw, "related-task")
			notes := c.notesOf("notifications/progress")
			require.Len(t, notes, 3)
			for _, note := range notes {
				require.Equal(t, "p", str(note.Params, "progressToken"))
				require.NotContains(t, note.raw, "related-task")
				require.Less(t, note.seq, m.seq)
			}
			require.Equal(t, -32123, c.fault("tools/call", obj{"name": "b_fails"}).Code)
			require.Equal(t, "b:plain:", c.callText("b_plain", nil)[:8])
			require.Nil(t, at(b.received("tools/call")[len(b.received("tools/call"))-1].Msg, "params", "task"), "what can be called plainly is")

			id := c.begin("tools/call", obj{"name": "b_slow"})
			b.waitEvents("wait", "never", n+1)
			if c == modern && c.web != nil {
				c.web.abort(id)
			} else {
				c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
			}
			b.waitEvents("gone", "slow", n+1)
			b.waitReceived("tasks/cancel", n+1)
		}
		require.Contains(t, old.callText("b_asks", obj{}), `"action":"accept"`)
		asked := modern.ok("tools/call", obj{"name": "b_asks"})
		require.Equal(t, "input_required", str(asked, "resultType"))
		var key string
		for key = range func() (m map[string]json.RawMessage) { _ = json.Unmarshal(at(asked, "inputRequests"), &m); return }() {
		}
		done := modern.ok("tools/call", obj{"name": "b_asks", "requestState": at(asked, "requestState"), "inputResponses": obj{key: obj{"action": "decline"}}})
		require.Contains(t, str(done, "content", 0, "text"), "decline")
	})
}

func TestTasksExtensionPassesBetweenThoseThatHaveIt(t *testing.T) {
	taskClients(t, func(t *testing.T, w *world, kind string, connect func() *client) {
		script := func() obj {
			return obj{
				"era": "modern", "tools": []obj{tool("t"), tool("only"), tool("asks")},
				"tasks":     obj{"t": obj{"poll": 100}, "only": obj{"required": true}, "asks": obj{}},
				"resources": []obj{resource("x:1")},
				"on": obj{
					"task t": actions(do("wait", obj{"name": "go"}), do("result", obj{"result": obj{"content": []obj{{"type": "resource_link", "uri": "x:1", "name": "r"}}, "n": json.RawMessage("1e400")}})),
					"task asks": actions(
						do("request", obj{"method": "elicitation/create", "params": obj{"message": "who?", "requestedSchema": obj{"type": "object"}}}),
						do("answers"),
					),
				},
			}
		}
		b := w.taskBackend("b", kind, script())
		connectWith := func(caps obj) *client {
			c := connect()
			c.caps = caps
			c.stateless()
			if c.web != nil {
				c.web.stateless = true
			}
			return c
		}
		extended := obj{"elicitation": obj{}, "extensions": obj{tasksExtension: obj{}}}
		c, without := connectWith(extended), connectWith(obj{})
		require.JSONEq(t, `{}`, string(at(c.ok("server/discover", obj{}), "capabilities", "extensions", tasksExtension)))

		// Who does not declare the extension gets results, and is not declared to have it.
		require.Equal(t, "b:t:", str(without.ok("tools/call", obj{"name": "b_t"}), "content", 0, "text")[:4])
		require.Nil(t, at(json.RawMessage(protocolMeta(b.received("tools/call")[0], "clientCapabilities")), "extensions"))
		require.Equal(t, -32021, without.fault("tools/call", obj{"name": "b_only"}).Code)
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			e := without.fault(method, obj{"taskId": "x"})
			require.Equal(t, -32021, e.Code)
			require.JSONEq(t, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, string(at(e.Data, "requiredCapabilities")))
			require.Equal(t, -32602, c.fault(method, obj{"taskId": "x"}).Code)
		}
		for _, method := range []string{"tasks/list", "tasks/result"} {
			require.Equal(t, -32601, c.fault(method, obj{"taskId": "x"}).Code)
		}

		created := c.ok("tools/call", obj{"name": "b_t"})
		require.Equal(t, "task", str(created, "resultType"))
		require.Equal(t, "1.50", string(at(created, "vendor")))
		require.JSONEq(t, `{}`, string(at(json.RawMessage(protocolMeta(b.received("tools/call")[2], "clientCapabilities")), "extensions", tasksExtension)))
		id := str(created, "taskId")
		require.NotContains(t, id, "task-")
		state := c.ok("tasks/get", obj{"taskId": id})
		require.Equal(t, "complete", str(state, "resultType"))
		require.Equal(t, id, str(state, "taskId"))
		require.Equal(t, "working", str(state, "status"))
		asked := b.received("tasks/get")[0]
		require.Equal(t, "task-1", str(asked.Msg, "params", "taskId"))
		if kind == "http" {
			require.Equal(t, "task-1", asked.Headers["mcp-name"])
		}
		b.do(do("release", obj{"name": "go"}))
		state = c.awaitStatus(id, "completed")
		require.Equal(t, in("b", "x:1"), str(state, "result", "content", 0, "uri"))
		require.Equal(t, "1e400", string(at(state, "result", "n")))

		// What a task asks for stands in its state; the answers come by tasks/update.
		id = str(c.ok("tools/call", obj{"name": "b_asks"}), "taskId")
		state = c.awaitStatus(id, "input_required")
		require.Equal(t, "who?", str(state, "inputRequests", "ask 0", "params", "message"))
		require.Equal(t, `"complete"`, string(at(c.ok("tasks/update", obj{"taskId": id, "inputResponses": obj{"ask 0": obj{"action": "accept", "n": json.RawMessage("1.0")}}}), "resultType")))
		require.JSONEq(t, `{"ask 0":{"action":"accept","n":1.0}}`, string(at(b.received("tasks/update")[0].Msg, "params", "inputResponses")))
		state = c.awaitStatus(id, "completed")
		require.Contains(t, str(state, "result", "content", 0, "text"), "accept")

		id = str(c.ok("tools/call", obj{"name": "b_only"}), "taskId")
		c.awaitStatus(id, "completed")
		require.Equal(t, `"complete"`, string(at(c.ok("tasks/cancel", obj{"taskId": id}), "resultType")))

		legacy := connect()
		legacy.init()
		require.Equal(t, "b:t:", legacy.callText("b_t", nil)[:4], "who speaks an older revision gets no task")
		require.Equal(t, -32602, legacy.fault("tasks/get", obj{"taskId": id}).Code)
	})
}

func TestTheNameHeaderOfTaskRequestsIsTheTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	body := string(marshal(obj{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": obj{"taskId": "x", "_meta": obj{
		protocolPrefix + "protocolVersion": modernRevision, protocolPrefix + "clientCapabilities": obj{"extensions": obj{tasksExtension: obj{}}},
	}}}))
	for name, code := range map[string]string{"x": "-32602", "y": "-32020", "": "-32020"} {
		got := s.do("POST", "/mcp", map[string]string{"MCP-Protocol-Version": modernRevision, "Mcp-Method": "tasks/get", "Mcp-Name": name}, body)
		require.Contains(t, got.body, code, fmt.Sprintf("Mcp-Name %q", name))
	}
	require.NotContains(t, strings.ToLower(s.stderr.String()), "panic")
}

func TestTasksQuestionsWaitForTheRequestForTheResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{taskTool("t", "optional")}, "tasks": obj{"t": obj{}}, "on": obj{"task t": actions(
		do("task", obj{"text": "input_required"}),
		do("request", obj{"method": "elicitation/create", "params": obj{"message": "who?", "requestedSchema": obj{"type": "object"}}}),
		do("answers"),
	)}})
	c := w.serve().client(false, obj{"elicitation": obj{}})
	c.reply = func(message) (any, any) { return obj{"action": "decline"}, nil }
	id := c.startTask("b_t")
	c.awaitStatus(id, "input_required")
	require.Contains(t, str(c.ok("tasks/result", obj{"taskId": id}), "content", 0, "text"), "decline")
}

func TestTasksMessagesMayComeBeforeTheTaskIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{taskTool("t", "optional")}, "tasks": obj{"t": obj{}}, "on": obj{
		"create t": actions(
			do("notify", obj{"method": "notifications/tasks/status", "params": obj{"taskId": "task-1", "status": "working"}}),
			do("progress", obj{"n": 1}),
			do("wait", obj{"name": "go"}),
		),
		"task t": actions(
			do("request", obj{"method": "elicitation/create", "params": obj{"message": "who?", "requestedSchema": obj{"type": "object"}}}),
			do("answers"),
		),
	}})
	c := w.pipe("stdio", "--standalone")
	c.caps = obj{"elicitation": obj{}}
	c.reply = func(message) (any, any) { return obj{"action": "decline"}, nil }
	c.init()
	call := c.begin("tools/call", obj{"name": "b_t", "task": obj{}, "_meta": obj{"progressToken": 1}})
	b.waitEvent("wait", "go")
	c.noted("notifications/progress", nil)
	require.Empty(t, c.notesOf("notifications/tasks/status"), "the client does not know it yet")
	b.do(do("release", obj{"name": "go"}))
	created := c.end(call)
	id := str(created.Result, "task", "taskId")
	require.Contains(t, str(c.ok("tasks/result", obj{"taskId": id}), "content", 0, "text"), "decline")
	status := c.noted("notifications/tasks/status", nil)
	require.Equal(t, id, str(status.Params, "taskId"))
	require.Greater(t, status.seq, created.seq)
}

func TestCommandsWaitForTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{taskTool("t", "required")}, "tasks": obj{"t": obj{"required": true, "poll": 20}}, "on": obj{
		"task t": actions(do("delay", obj{"ms": 100}), do("text", obj{"text": "done"})),
	}})
	require.Equal(t, "done\n", w.succeeds("call", "b_t"))
}

func TestListensNameNoTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pipe("stdio", "--standalone").stateless()
	listen := obj{"notifications": obj{"taskIds": []string{"x"}}}
	require.Equal(t, -32021, c.fault("subscriptions/listen", listen).Code)
	c.caps = obj{"extensions": obj{tasksExtension: obj{}}}
	c.ok("subscriptions/listen", listen)
	require.JSONEq(t, `{}`, string(at(c.noted("notifications/subscriptions/acknowledged", nil).Params, "notifications")))
}

func TestTasksOfASessionAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 1024
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{taskTool("t", "optional")}, "tasks": obj{"t": obj{}}, "on": obj{"task t": actions(do("wait", obj{"name": "never"}))}})
	c, other := w.bridged(), w.bridged()
	for range limit {
		c.startTask("b_t")
	}
	e := c.fault("tools/call", obj{"name": "b_t", "task": obj{}})
	require.Equal(t, -32603, e.Code)
	require.Contains(t, e.Message, "1024")
	require.Equal(t, limit, b.count("tools/call"), "the server is not even asked")
	other.startTask("b_t")
}

func TestAChangedServerIsReplacedWhileItsTasksEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{
		"tools": []obj{taskTool("t", "optional")}, "tasks": obj{"t": obj{}},
		"on": obj{"task t": actions(do("wait", obj{"name": "go"}), do("text", obj{"text": "done by the old one"}))},
	}, obj{"env": obj{"WHICH": "first"}})
	c := w.bridged()
	id := c.startTask("b_t")
	first := b.waitStarts(1)
	w.edit(func() { b.conf["env"] = obj{"WHICH": "second"} })
	b.waitStarts(2)
	eventually(t, "the new process to serve", func() bool {
		c.startTask("b_t")
		b.catchUp()
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.ContainsFunc(b.events, func(e told) bool { return e.Ev == "task" && e.proc != first })
	})
	require.False(t, first.gone, "its task is under way")
	b.doAt(first, obj{"do": "release", "name": "go"})
	c.awaitStatus(id, "completed")
	require.Equal(t, "done by the old one", str(c.ok("tasks/result", obj{"taskId": id}), "content", 0, "text"))
}

func TestCallThatMakesATaskIsNotCancelledByANotice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{
		"tools": []obj{taskTool("work", "optional")}, "tasks": obj{"work": obj{}},
		"on": obj{"create work": actions(do("wait", obj{"name": "made"})), "task work": actions(do("hang"))},
	})
	c := w.standalone()
	id := c.begin("tools/call", obj{"name": "b_work", "arguments": obj{}, "task": obj{"ttl": 60000}})
	b.waitEvent("wait", "made")
	c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
	c.ok("ping", nil)
	b.do(do("release", obj{"name": "made"}))
	b.waitReceived("tasks/cancel", 1)
	require.Zero(t, b.count("notifications/cancelled"))
}

// Another server that knows all names of a task, or guesses them, says nothing
// about it, whether the client made the task or the gateway did.
func TestWhatIsSaidOfATaskCountsFromItsServerOnly(t *testing.T) {
	taskClients(t, func(t *testing.T, w *world, kind string, connect func() *client) {
		tools := []obj{taskTool("t", "optional"), taskTool("only", "required")}
		work := actions(do("wait", obj{"name": "go"}), do("progress", obj{"n": 2}), do("text", obj{"text": "done"}))
		b := w.taskBackend("b", kind, obj{"tools": tools, "tasks": obj{"t": obj{}, "only": obj{}}, "on": obj{"task t": work, "task only": work}})
		// It has a task of its own, so that its messages about tasks are heeded.
		evil := w.taskBackend("evil", kind, obj{"tools": append(tools, tool("ping")), "tasks": obj{"t": obj{}}, "on": obj{
			"task t": actions(do("wait", obj{"name": "never"})),
		}})
		c := connect()
		c.caps = obj{"elicitation": obj{}}
		c.init()
		if c.web != nil {
			c.listen()
		}
		id := c.startTask("b_t", obj{"_meta": obj{"progressToken": "mine"}})
		c.startTask("evil_t", obj{"_meta": obj{"progressToken": "other"}})
		token := str(b.waitReceived("tools/call", 1).Msg, "params", "_meta", "progressToken")
		require.Regexp(t, "^goblin-task-[A-Z2-7]{26}$", token, "128 bits")
		second := str(evil.waitReceived("tools/call", 1).Msg, "params", "_meta", "progressToken")
		require.NotEqual(t, token, second)
		var known string
		eventually(t, "the task's name at its server", func() bool {
			c.ok("tasks/get", obj{"taskId": id})
			calls := b.received("tasks/get")
			known = str(calls[len(calls)-1].Msg, "params", "taskId")
			return known != ""
		})
		for _, guess := range []any{token, "goblin-task-1", "goblin-task-2", "goblin-1", "mine", id, known, 1, 2, 3, 4} {
			evil.do(do("notify", obj{"method": "notifications/progress", "params": obj{"progressToken": guess, "progress": 99, "message": "forged"}}))
		}
		for _, name := range []string{id, known} {
			evil.do(do("notify", obj{"method": "notifications/tasks/status", "params": obj{
				"taskId": name, "status": "failed", "statusMessage": "forged", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 1,
			}}))
			evil.do(do("notify", obj{"method": "notifications/message", "params": obj{"level": "error", "data": "forged", "_meta": obj{relatedTask: obj{"taskId": name}}}}))
		}
		c.callText("evil_ping", nil)
		b.do(do("release", obj{"name": "go"}))
		c.awaitStatus(id, "completed")
		eventually(t, "the progress", func() bool { return len(c.notesOf("notifications/progress")) >= 2 })
		for _, n := range c.notesOf("notifications/progress") {
			require.Equal(t, "mine", str(n.Params, "progressToken"))
			require.NotContains(t, n.raw, "forged")
		}
		for _, n := range c.notesOf("notifications/tasks/status") { // both servers call their first one the same
			require.False(t, str(n.Params, "taskId") == id && strings.Contains(n.raw, "forged"), n.raw)
		}
		for _, n := range c.notesOf("notifications/message") {
			require.NotContains(t, n.raw, id, "a line of another server is not of the task")
		}

		other := connect()
		other.init()
		for _, name := range []string{id, known, token} {
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
				require.Equal(t, -32602, other.fault(method, obj{"taskId": name}).Code)
			}
		}
		require.Empty(t, taskIDs(other))
	})
}
