//go:build e2e

package calls

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestTasksListIsPaged(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{taskTool("t", "optional")}, "tasks": e2e.Obj{"t": e2e.Obj{}}})
	c := w.Standalone()
	var made []string
	for range 60 {
		made = append(made, startTask(c, "b_t"))
	}
	require.Len(t, e2e.Each(c.Ok("tasks/list", e2e.Obj{}), "tasks"), 50)
	require.Equal(t, made, taskIDs(c))
	b.Do(e2e.Do("on", e2e.Obj{"key": "tasks/get", "actions": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32602, "message": "expired"}}))}))
	require.Empty(t, taskIDs(c), "a task that its server has forgotten is unknown")
	require.Equal(t, -32602, c.Fault("tasks/get", e2e.Obj{"taskId": made[0]}).Code)
}

func TestTheNameHeaderOfTaskRequestsIsTheTask(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	s := w.Served()
	body := string(e2e.Marshal(e2e.Obj{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": e2e.Obj{"taskId": "x", "_meta": e2e.Obj{
		e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{"extensions": e2e.Obj{e2e.TasksExtension: e2e.Obj{}}},
	}}}))
	for name, code := range map[string]string{"x": "-32602", "y": "-32020", "": "-32020"} {
		got := s.Do("POST", "/mcp", map[string]string{"MCP-Protocol-Version": e2e.ModernRevision, "Mcp-Method": "tasks/get", "Mcp-Name": name}, body)
		require.Contains(t, got.Body, code, fmt.Sprintf("Mcp-Name %q", name))
	}
	require.NotContains(t, strings.ToLower(s.Stderr.String()), "panic")
}

func TestTasksQuestionsWaitForTheRequestForTheResult(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{taskTool("t", "optional")}, "tasks": e2e.Obj{"t": e2e.Obj{}}, "on": e2e.Obj{"task t": e2e.Actions(
		e2e.Do("task", e2e.Obj{"text": "input_required"}),
		e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "who?", "requestedSchema": e2e.Obj{"type": "object"}}}),
		e2e.Do("answers"),
	)}})
	c := w.Served().Client(false, e2e.Obj{"elicitation": e2e.Obj{}})
	c.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"action": "decline"}, nil }
	id := startTask(c, "b_t")
	awaitStatus(c, id, "input_required")
	require.Contains(t, e2e.Str(c.Ok("tasks/result", e2e.Obj{"taskId": id}), "content", 0, "text"), "decline")
}

func TestTasksMessagesMayComeBeforeTheTaskIsKnown(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{taskTool("t", "optional")}, "tasks": e2e.Obj{"t": e2e.Obj{}}, "on": e2e.Obj{
		"create t": e2e.Actions(
			e2e.Do("notify", e2e.Obj{"method": "notifications/tasks/status", "params": e2e.Obj{"taskId": "task-1", "status": "working"}}),
			e2e.Do("progress", e2e.Obj{"n": 1}),
			e2e.Do("wait", e2e.Obj{"name": "go"}),
		),
		"task t": e2e.Actions(
			e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "who?", "requestedSchema": e2e.Obj{"type": "object"}}}),
			e2e.Do("answers"),
		),
	}})
	c := w.Pipe("stdio", "--standalone")
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	c.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"action": "decline"}, nil }
	c.Init()
	call := c.Begin("tools/call", e2e.Obj{"name": "b_t", "task": e2e.Obj{}, "_meta": e2e.Obj{"progressToken": 1}})
	b.WaitEvent("wait", "go")
	c.WaitNote("notifications/progress", nil)
	require.Empty(t, c.NotesOf("notifications/tasks/status"), "the client does not know it yet")
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	created := c.End(call)
	id := e2e.Str(created.Result, "task", "taskId")
	require.Contains(t, e2e.Str(c.Ok("tasks/result", e2e.Obj{"taskId": id}), "content", 0, "text"), "decline")
	status := c.WaitNote("notifications/tasks/status", nil)
	require.Equal(t, id, e2e.Str(status.Params, "taskId"))
	require.Greater(t, status.Seq, created.Seq)
}

func TestListensNameNoTasks(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	c := w.Pipe("stdio", "--standalone").Stateless()
	listen := e2e.Obj{"notifications": e2e.Obj{"taskIds": []string{"x"}}}
	require.Equal(t, -32021, c.Fault("subscriptions/listen", listen).Code)
	c.Caps = e2e.Obj{"extensions": e2e.Obj{e2e.TasksExtension: e2e.Obj{}}}
	c.Ok("subscriptions/listen", listen)
	require.JSONEq(t, `{}`, string(e2e.At(c.WaitNote("notifications/subscriptions/acknowledged", nil).Params, "notifications")))
}

func TestTasksOfASessionAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 1024
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{taskTool("t", "optional")}, "tasks": e2e.Obj{"t": e2e.Obj{}}, "on": e2e.Obj{"task t": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"}))}})
	c, other := w.Join(), w.Join()
	for range limit {
		startTask(c, "b_t")
	}
	e := c.Fault("tools/call", e2e.Obj{"name": "b_t", "task": e2e.Obj{}})
	require.Equal(t, -32603, e.Code)
	require.Contains(t, e.Message, "1024")
	require.Equal(t, limit, b.Count("tools/call"), "the server gets no request")
	startTask(other, "b_t")
}

func TestTasksThatWereFetchedMakeRoom(t *testing.T) {
	t.Parallel()
	const limit = 1024
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{
		"tools": []e2e.Obj{taskTool("t", "optional"), taskTool("quick", "optional")}, "tasks": e2e.Obj{"t": e2e.Obj{}, "quick": e2e.Obj{}},
		"on": e2e.Obj{"task t": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"}))},
	})
	c := w.Join()
	first := startTask(c, "b_t")
	fetched := startTask(c, "b_quick")
	c.Ok("tasks/result", e2e.Obj{"taskId": fetched})
	for range limit - 1 {
		startTask(c, "b_t")
	}
	require.Contains(t, c.Fault("tools/call", e2e.Obj{"name": "b_t", "task": e2e.Obj{}}).Message, "at most 1024 per session")
	require.Equal(t, -32602, c.Fault("tasks/get", e2e.Obj{"taskId": fetched}).Code)
	require.Equal(t, "working", e2e.Str(c.Ok("tasks/get", e2e.Obj{"taskId": first}), "status"))
}

// Clients of stateless HTTP share one quota. One server's tasks leave space for those of
// others.
func TestTasksOfOneServerLeaveRoomForThoseOfOthers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	for _, name := range []string{"loud", "calm"} {
		w.Backend(name, e2e.Obj{
			"era": "modern", "tools": []e2e.Obj{e2e.Tool("t")}, "tasks": e2e.Obj{"t": e2e.Obj{}},
			"on": e2e.Obj{"task t": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"}))},
		})
	}
	s := w.Served()
	c, other := s.Stateless(), s.Stateless()
	c.Caps = e2e.Obj{"extensions": e2e.Obj{e2e.TasksExtension: e2e.Obj{}}}
	other.Caps = c.Caps
	for i := range 1024 {
		require.NotEmpty(t, e2e.Str(c.Ok("tools/call", e2e.Obj{"name": "loud_t"}), "taskId"), i)
	}
	require.Contains(t, c.Fault("tools/call", e2e.Obj{"name": "loud_t"}).Message, `at most 1024 at server "loud"`)
	require.NotEmpty(t, e2e.Str(other.Ok("tools/call", e2e.Obj{"name": "calm_t"}), "taskId"))
}

func TestAChangedServerIsReplacedWhileItsTasksEnd(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{
		"tools": []e2e.Obj{taskTool("t", "optional")}, "tasks": e2e.Obj{"t": e2e.Obj{}},
		"on": e2e.Obj{"task t": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("text", e2e.Obj{"text": "done by the old one"}))},
	}, e2e.Obj{"env": e2e.Obj{"WHICH": "first"}})
	c := w.Join()
	id := startTask(c, "b_t")
	first := b.WaitStarts(1)
	w.Edit(func() { b.Conf["env"] = e2e.Obj{"WHICH": "second"} })
	b.WaitStarts(2)
	e2e.Eventually(t, "the new process serves", func() bool {
		startTask(c, "b_t")
		b.CatchUp()
		b.Mu.Lock()
		defer b.Mu.Unlock()
		return slices.ContainsFunc(b.Events, func(e e2e.Event) bool { return e.Ev == "task" && e.Proc != first })
	})
	require.False(t, first.Gone, "its task is running")
	b.DoAt(first, e2e.Obj{"do": "release", "name": "go"})
	awaitStatus(c, id, "completed")
	require.Equal(t, "done by the old one", e2e.Str(c.Ok("tasks/result", e2e.Obj{"taskId": id}), "content", 0, "text"))
}

func TestCallThatMakesATaskIsNotCancelledByANotice(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{
		"tools": []e2e.Obj{taskTool("work", "optional")}, "tasks": e2e.Obj{"work": e2e.Obj{}},
		"on": e2e.Obj{"create work": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "made"})), "task work": e2e.Actions(e2e.Do("hang"))},
	})
	c := w.Standalone()
	id := c.Begin("tools/call", e2e.Obj{"name": "b_work", "arguments": e2e.Obj{}, "task": e2e.Obj{"ttl": 60000}})
	b.WaitEvent("wait", "made")
	c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
	c.Ok("ping", nil)
	b.Do(e2e.Do("release", e2e.Obj{"name": "made"}))
	b.WaitReceived("tasks/cancel", 1)
	require.Zero(t, b.Count("notifications/cancelled"))
}

func TestTasksEndWithWhatTheyBelongTo(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{
		"tools": []e2e.Obj{taskTool("t", "optional"), e2e.Tool("plain")}, "tasks": e2e.Obj{"t": e2e.Obj{}},
		"on": e2e.Obj{"task t": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"}))},
	})
	w.Backend("c", e2e.Obj{"tools": []e2e.Obj{taskTool("t", "optional")}})
	c, other := w.Join(), w.Join()

	// A tool that doesn't run as a task is refused; no other revision has tasks.
	require.Equal(t, -32601, c.Fault("tools/call", e2e.Obj{"name": "c_t", "task": e2e.Obj{}}).Code)
	old := w.Socket()
	result := old.Ok("initialize", e2e.Obj{"protocolVersion": "2025-06-18", "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "old", "version": "1"}})
	require.Nil(t, e2e.At(result, "capabilities", "tasks"))
	require.Equal(t, -32601, old.Fault("tasks/list", e2e.Obj{}).Code)
	require.Nil(t, e2e.At(old.Ok("tools/call", e2e.Obj{"name": "b_plain", "task": e2e.Obj{}}), "task"))
	require.Nil(t, e2e.At(b.Received("tools/call")[0].Msg, "params", "task"), "it means nothing in that revision")

	id := startTask(other, "b_t")
	waiting := other.Begin("tasks/result", e2e.Obj{"taskId": id})
	b.WaitEvent("wait", "result")
	other.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(waiting)})
	b.WaitEvent("gone", "result")
	require.Equal(t, "working", e2e.Str(other.Ok("tasks/get", e2e.Obj{"taskId": id}), "status"), "only the request was cancelled")
	other.Close()
	b.WaitReceived("tasks/cancel", 1) // no client is left that could fetch it
	b.WaitEvent("gone", "t")

	id = startTask(c, "b_t")
	b.Do(e2e.Do("crash"))
	b.WaitStarts(2)
	e2e.Eventually(t, "the server is connected again", func() bool { return c.Works(e2e.Obj{"name": "b_plain"}) })
	require.Equal(t, -32602, c.Fault("tasks/get", e2e.Obj{"taskId": id}).Code, "another process has another task-1")
}

func TestTasksTellTheirOwnersOnly(t *testing.T) {
	taskClients(t, func(t *testing.T, w *e2e.World, kind string, connect func() *e2e.Client) {
		b := w.TaskBackend("b", kind, e2e.Obj{
			"tools": []e2e.Obj{taskTool("t", "required")}, "tasks": e2e.Obj{"t": e2e.Obj{"required": true}},
			"on": e2e.Obj{"task t": e2e.Actions(
				e2e.Do("wait", e2e.Obj{"name": "go"}),
				e2e.Do("task", e2e.Obj{"text": "input_required"}),
				e2e.Do("progress", e2e.Obj{"n": 2}),
				e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": "error", "data": "d"}}),
				e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "who?", "requestedSchema": e2e.Obj{"type": "object"}}}),
				e2e.Do("answers"),
			)},
		})
		c, other := connect(), connect()
		for _, each := range []*e2e.Client{c, other} {
			each.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
			each.Init()
		}
		c.Reply = func(ask e2e.Message) (any, any) {
			return e2e.Obj{"action": "accept", "content": e2e.Obj{"a": 1}, "_meta": e2e.Obj{relatedTask: e2e.Obj{"taskId": e2e.Str(ask.Params, "_meta", relatedTask, "taskId")}}}, nil
		}
		require.Equal(t, -32601, c.Fault("tools/call", e2e.Obj{"name": "b_t"}).Code, "a client with tasks must request one")
		id := startTask(c, "b_t", e2e.Obj{"_meta": e2e.Obj{"progressToken": 7, "vendor": 2}})
		require.Equal(t, "2", string(e2e.At(b.Received("tools/call")[1].Msg, "params", "_meta", "vendor")))
		waiting := c.Begin("tasks/result", e2e.Obj{"taskId": id})
		b.WaitEvent("wait", "result")
		b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
		got := c.End(waiting)
		require.Nil(t, got.Error, "%s", got.Raw)
		require.Contains(t, e2e.Str(got.Result, "content", 0, "text"), `"action":"accept"`)
		require.Contains(t, e2e.Str(got.Result, "content", 0, "text"), `"taskId":"task-1"`, "the server's own id in the answer")

		status := c.WaitNote("notifications/tasks/status", nil)
		require.Equal(t, id, e2e.Str(status.Params, "taskId"))
		require.Equal(t, "input_required", e2e.Str(status.Params, "status"))
		require.Len(t, c.NotesOf("notifications/progress"), 2)
		for _, n := range append(c.NotesOf("notifications/progress"), c.NotesOf("notifications/message")...) {
			require.Equal(t, id, e2e.Str(n.Params, "_meta", relatedTask, "taskId"), n.Raw)
			require.Less(t, n.Seq, got.Seq)
		}
		require.Equal(t, "7", string(e2e.At(c.NotesOf("notifications/progress")[0].Params, "progressToken")))
		ask := c.WaitAsks(1)
		require.Equal(t, id, e2e.Str(ask.Params, "_meta", relatedTask, "taskId"))
		if c.Web != nil {
			require.Equal(t, waiting, ask.Via, "on the stream of the request for the result")
		}
		other.Forget()
		require.Empty(t, other.Asks)
		require.Empty(t, other.NotesOf("notifications/tasks/status"))
	})
}

// Messages of other servers about a task are ignored, even if they know or guess its
// names. This holds for tasks of clients and of the gateway.
func TestWhatIsSaidOfATaskCountsFromItsServerOnly(t *testing.T) {
	taskClients(t, func(t *testing.T, w *e2e.World, kind string, connect func() *e2e.Client) {
		tools := []e2e.Obj{taskTool("t", "optional"), taskTool("only", "required")}
		work := e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("progress", e2e.Obj{"n": 2}), e2e.Do("text", e2e.Obj{"text": "done"}))
		b := w.TaskBackend("b", kind, e2e.Obj{"tools": tools, "tasks": e2e.Obj{"t": e2e.Obj{}, "only": e2e.Obj{}}, "on": e2e.Obj{"task t": work, "task only": work}})
		// It has its own task, so that its messages about tasks are processed.
		evil := w.TaskBackend("evil", kind, e2e.Obj{"tools": append(tools, e2e.Tool("ping")), "tasks": e2e.Obj{"t": e2e.Obj{}}, "on": e2e.Obj{
			"task t": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"})),
		}})
		c := connect()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		c.Init()
		if c.Web != nil {
			c.Listen()
		}
		id := startTask(c, "b_t", e2e.Obj{"_meta": e2e.Obj{"progressToken": "mine"}})
		startTask(c, "evil_t", e2e.Obj{"_meta": e2e.Obj{"progressToken": "other"}})
		token := e2e.Str(b.WaitReceived("tools/call", 1).Msg, "params", "_meta", "progressToken")
		require.Regexp(t, "^goblin-task-[A-Z2-7]{26}$", token, "128 bits")
		second := e2e.Str(evil.WaitReceived("tools/call", 1).Msg, "params", "_meta", "progressToken")
		require.NotEqual(t, token, second)
		var known string
		e2e.Eventually(t, "the task's name at its server", func() bool {
			c.Ok("tasks/get", e2e.Obj{"taskId": id})
			calls := b.Received("tasks/get")
			known = e2e.Str(calls[len(calls)-1].Msg, "params", "taskId")
			return known != ""
		})
		for _, guess := range []any{token, "goblin-task-1", "goblin-task-2", "goblin-1", "mine", id, known, 1, 2, 3, 4} {
			evil.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/progress", "params": e2e.Obj{"progressToken": guess, "progress": 99, "message": "forged"}}))
		}
		for _, name := range []string{id, known} {
			evil.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/tasks/status", "params": e2e.Obj{
				"taskId": name, "status": "failed", "statusMessage": "forged", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 1,
			}}))
			evil.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": "error", "data": "forged", "_meta": e2e.Obj{relatedTask: e2e.Obj{"taskId": name}}}}))
		}
		c.CallText("evil_ping", nil)
		b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
		awaitStatus(c, id, "completed")
		e2e.Eventually(t, "the progress", func() bool { return len(c.NotesOf("notifications/progress")) >= 2 })
		for _, n := range c.NotesOf("notifications/progress") {
			require.Equal(t, "mine", e2e.Str(n.Params, "progressToken"))
			require.NotContains(t, n.Raw, "forged")
		}
		for _, n := range c.NotesOf("notifications/tasks/status") { // both servers give their first task the same name
			require.False(t, e2e.Str(n.Params, "taskId") == id && strings.Contains(n.Raw, "forged"), n.Raw)
		}
		for _, n := range c.NotesOf("notifications/message") {
			require.NotContains(t, n.Raw, id, "a line of another server doesn't belong to the task")
		}

		other := connect()
		other.Init()
		for _, name := range []string{id, known, token} {
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
				require.Equal(t, -32602, other.Fault(method, e2e.Obj{"taskId": name}).Code)
			}
		}
		require.Empty(t, taskIDs(other))
	})
}
