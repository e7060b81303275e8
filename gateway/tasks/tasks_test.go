package tasks

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

func TestMessagesNameTheirTask(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct{ mapped, without string }{
		`{"a":1e400}`: {`{"a":1e400}`, `{"a":1e400}`},
		`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1","x":1}},"a":1}`: {
			`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"own","x":1}},"a":1}`, `{"a":1}`,
		},
		`{"_meta":{"io.modelcontextprotocol\/related-task":{"taskId":"t\u002d1"},"k":1.0}}`: {
			`{"_meta":{"io.modelcontextprotocol\/related-task":{"taskId":"own"},"k":1.0}}`, `{"_meta":{"k":1.0}}`,
		},
		`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-2"}}}`: {
			`{}`, `{}`, // another client's task
		},
		`{"_meta":{"io.modelcontextprotocol/related-task":7}}`: {
			`{"_meta":{"io.modelcontextprotocol/related-task":7}}`, `{"_meta":{"io.modelcontextprotocol/related-task":7}}`,
		},
		`{"text":"related-task"}`: {`{"text":"related-task"}`, `{"text":"related-task"}`},
	} {
		require.Equal(t, want.mapped, string(inflight.ReplaceTaskID([]byte(in), "t-1", "own")), in)
		require.Equal(t, want.without, string(inflight.DropTaskID([]byte(in))), in)
	}
}

func FuzzTaskNames(f *testing.F) {
	f.Add([]byte(`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}},"taskId":"t","ttl":1e400,"task":{}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if rawjson.Valid(in) != nil || !rawjson.IsObject(in) {
			return
		}
		for _, out := range [][]byte{inflight.ReplaceTaskID(in, "t", "own"), inflight.DropTaskID(in), replaceID(in, "own"), rawjson.RemoveMember(in, "task")} {
			require.NoError(t, rawjson.Valid(out), "%s", out)
		}
	})
}

func TestPollIntervalsAreBounded(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]time.Duration{
		`{}`:                      defaultPoll,
		`{"pollInterval":null}`:   defaultPoll,
		`{"pollInterval":"1"}`:    defaultPoll,
		`{"pollInterval":1500}`:   1500 * time.Millisecond,
		`{"pollInterval":2.5e3}`:  2500 * time.Millisecond,
		`{"pollInterval":0}`:      minPoll,
		`{"pollInterval":-1e300}`: minPoll,
		`{"pollInterval":1e300}`:  maxPoll,
		`{"pollInterval":1e400}`:  defaultPoll,
	} {
		require.Equal(t, want, pollInterval([]byte(state)), state)
	}
}

func TestTasksExpireAfterTheirTimeToLive(t *testing.T) {
	t.Parallel()
	all := New(Options{})
	for state, want := range map[string]time.Duration{
		`{"ttl":60000}`: time.Minute, `{"ttl":0}`: 0, `{"ttl":null}`: maxTaskLife, `{}`: maxTaskLife,
		`{"ttl":-5}`: maxTaskLife, `{"ttl":1e400}`: maxTaskLife, `{"ttl":99999999999}`: maxTaskLife,
	} {
		own := &Task{ServerTaskID: state}
		require.NoError(t, all.add(own, []byte(state)))
		require.InDelta(t, (want + taskGrace).Seconds(), all.timeToLive(own).Seconds(), 60, state)
	}
}

func TestATaskThatNobodyFetchesKeepsItsServerBusyAsLongAsItLives(t *testing.T) {
	s := New(Options{})
	own := &Task{}
	require.NoError(t, s.add(own, []byte(`{"taskId":"1","status":"completed","ttl":0}`)))
	require.True(t, s.hasOpen(nil))
	own.expires = time.Now().Add(-time.Hour)
	require.False(t, s.hasOpen(nil))
}

func TestTasksOfWhichNothingIsToBeHadKeepNoServerBusy(t *testing.T) {
	t.Parallel()
	for status, busy := range map[string]struct{ older, newer bool }{
		"working": {true, true}, "input_required": {true, true}, "cancelled": {false, false},
		"completed": {true, false}, "failed": {true, false}, // older clients fetch the result separately
	} {
		for modern, want := range map[bool]bool{false: busy.older, true: busy.newer} {
			s := New(Options{})
			own := &Task{modern: modern}
			require.NoError(t, s.add(own, []byte(`{"status":"`+status+`"}`)))
			require.Equal(t, want, s.hasOpen(nil), "%s %v", status, modern)
			s.markFetched(own)
			require.False(t, s.hasOpen(nil))
		}
	}
}

func TestTasksThatAreOverMakeRoom(t *testing.T) {
	t.Parallel()
	all := New(Options{})
	var kept []*Task
	add := func(state string) error {
		own := &Task{Server: "a", ServerTaskID: fmt.Sprint(len(kept)), modern: true}
		kept = append(kept, own)
		return all.add(own, []byte(state))
	}
	for i := range maxStatelessTasks / serverDivisor {
		require.NoError(t, add(`{"status":"working"}`), i)
	}
	require.ErrorContains(t, add(`{"status":"working"}`), `at most 1024 at server "a" for clients without a session`)
	all.updateState(kept[9], []byte(`{"status":"working"}`))
	all.updateState(kept[7], []byte(`{"status":"completed"}`))
	kept[3].final, kept[5].final = true, true // their results were not fetched
	all.updateState(kept[8], []byte(`{"status":"failed"}`))
	kept[2].expires = time.Now().Add(-time.Hour)
	for _, i := range []int{2, 7, 8, 3, 5} {
		require.NotNil(t, all.all[kept[i].id])
		require.NoError(t, all.checkRoom(nil, "a"))
		require.NotNil(t, all.all[kept[i].id], "checkRoom evicts nothing")
		require.NoError(t, add(`{"status":"working"}`))
		require.Nil(t, all.all[kept[i].id], i)
	}
	require.Error(t, add(`{"status":"working"}`), "the others are still working")
}

func TestNoServerTakesTheRoomOfAnothersTasks(t *testing.T) {
	t.Parallel()
	all := New(Options{})
	fill := func(owner *downstream.Session, server string) (n int, err error) {
		for ; n < maxTasks; n++ {
			if err := all.add(&Task{Server: server, owner: owner, ServerTaskID: fmt.Sprint(n)}, []byte(`{"status":"working"}`)); err != nil {
				return n, err
			}
		}
		return n, nil
	}
	var sessions []*downstream.Session
	for range 16 {
		sessions = append(sessions, new(downstream.Session))
	}
	for i, row := range []struct {
		owner  *downstream.Session
		server string
		room   int
		bound  string
	}{
		{nil, "a", 1024, `at server "a" for clients without a session`},
		{nil, "b", 1024, `at server "b" for clients without a session`},
		{sessions[0], "a", 1024, "per session"},
		{sessions[1], "a", 1024, "per session"},
		{sessions[2], "a", 0, `at most 2048 at server "a" for sessions`},
		{sessions[2], "b", 1024, "per session"},
		{nil, "c", 1024, `at server "c" for clients without a session`},
		{nil, "d", 1024, "at most 4096 for all clients without a session"},
		{nil, "e", 0, "at most 4096 for all clients without a session"},
		{sessions[3], "e", 1024, "per session"},
		{sessions[4], "f", 0, "at most 8192 in total"},
	} {
		n, err := fill(row.owner, row.server)
		require.Equal(t, row.room, n, i)
		require.ErrorContains(t, err, row.bound, i)
	}
	all.Drop(nil) // closes the connection
	n, _ := fill(sessions[4], "f")
	require.Equal(t, 1024, n, "a finished task frees its slot")
}

func TestTasksOfOurOwnNeedNoRoom(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	first := &Task{Server: "a", owner: new(downstream.Session)}
	for i := range maxSessionTasks {
		own := first
		if i > 0 {
			own = &Task{Server: "a", owner: first.owner}
		}
		require.NoError(t, s.add(own, nil))
	}
	require.Error(t, s.add(&Task{Server: "a", owner: first.owner}, nil))
	require.NoError(t, s.add(&Task{Server: "a", gatewayCall: new(inflight.Request)}, nil), "the gateway's own task takes no slot")
	first.expires = time.Now().Add(-1)
	require.NoError(t, s.checkRoom(first.owner, "a"), "expired tasks are evicted")
}

type other struct{ upstream.Conn }

type recorder struct {
	upstream.Conn
	called chan string
}

func (r recorder) Call(c *upstream.Call) (jsonrpc.Reply, error) {
	r.called <- c.Method + " " + string(c.Params)
	return jsonrpc.Reply{Result: []byte("{}")}, nil
}

func TestWhatGoesOnIsCancelledWhenItsClientHasGone(t *testing.T) {
	t.Parallel()
	s, conn, gone := New(Options{}), recorder{called: make(chan string, 9)}, new(downstream.Session)
	for id, status := range map[string]string{"1": "working", "2": "completed", "3": "failed", "4": "cancelled"} {
		require.NoError(t, s.add(&Task{Conn: conn, ServerTaskID: id, owner: gone}, []byte(`{"status":"`+status+`"}`)))
	}
	others := &Task{Conn: conn, ServerTaskID: "5", owner: new(downstream.Session)}
	require.NoError(t, s.add(others, nil))
	s.Release(gone)
	s.Wait()
	close(conn.called)
	var called []string
	for c := range conn.called {
		called = append(called, c)
	}
	require.Equal(t, []string{`tasks/cancel {"taskId":"1"}`}, called)
	require.Equal(t, map[string]*Task{others.id: others}, s.all)
}

func TestTasksEndWithTheirConnectionUnlessTheyOutliveIt(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	bound, durable, away := &Task{Conn: other{}}, &Task{Conn: other{}, modern: true, durable: true}, &Task{}
	for _, own := range []*Task{bound, durable, away} {
		require.NoError(t, s.add(own, nil))
	}
	s.Drop(other{})
	require.Equal(t, map[string]*Task{durable.id: durable, away.id: away}, s.all)
}

func TestWhatIsSaidOfATaskBeforeItIsKnownIsKeptWithinBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ said, bytes, kept int }{
		"few":  {3, 10, 3},
		"many": {maxQueued + 10, 10, maxQueued},
		"long": {6, 1 << 20, maxQueuedBytes >> 20},
	} {
		s := New(Options{})
		done := s.addPendingCall(other{})
		for range c.said {
			own, kept := s.matchTask(other{}, taskNotice{taskID: "1", params: make([]byte, c.bytes)})
			require.Nil(t, own)
			require.True(t, kept, "kept for the pending call")
		}
		_, kept := s.matchTask(nil, taskNotice{taskID: "1"})
		require.False(t, kept, "no call is pending on that connection")
		require.Empty(t, s.publish(&Task{Conn: other{}, ServerTaskID: "2"}), name)
		require.Len(t, s.publish(&Task{Conn: other{}, ServerTaskID: "1"}), c.kept, name)
		require.Empty(t, s.publish(&Task{Conn: other{}, ServerTaskID: "1"}), "reported once")
		done()
		_, kept = s.matchTask(other{}, taskNotice{taskID: "1"})
		require.False(t, kept)
	}
}

func TestWhoseATaskIs(t *testing.T) {
	t.Parallel()
	reg := registry.New(registry.Options{Servers: []string{"s", "hidden"}})
	reg.SetVisible("s", true)
	reg.SetList("s", registry.Tool, [][]byte{[]byte(`{"name":"t","inputSchema":{"type":"object"}}`)})
	seen := reg.Load()
	mine := new(downstream.Session)
	for name, c := range map[string]struct {
		task   *Task
		modern bool
		found  bool
	}{
		"one's own":                    {task: &Task{owner: mine}, found: true},
		"another session's":            {task: &Task{owner: new(downstream.Session)}},
		"one of the other kind":        {task: &Task{owner: mine, modern: true}},
		"asked for as the other kind":  {task: &Task{owner: mine}, modern: true},
		"the gateway's own":            {task: &Task{owner: mine, gatewayCall: new(inflight.Request)}},
		"of a server that is not seen": {task: &Task{owner: mine, Server: "away"}},
		"expired":                      {task: &Task{owner: mine, expires: time.Now().Add(-time.Hour)}},
	} {
		s := New(Options{})
		own := c.task
		if own.Server == "" {
			own.Server, own.Tool = "s", "t"
		}
		expires := own.expires
		require.NoError(t, s.add(own, nil))
		if !expires.IsZero() {
			own.expires = expires
		}
		found, err := s.Find(mine, seen, c.modern, own.id)
		if !c.found {
			require.ErrorIs(t, err, errNotFound, name)
			continue
		}
		require.NoError(t, err, name)
		require.Same(t, own, found)
		_, err = s.Find(mine, seen, c.modern, own.id+"0")
		require.ErrorIs(t, err, errNotFound)
	}
}
