package calls

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestR3_35_C23_ErrorsOfBackendsPassUnchanged(t *testing.T) {
	t.Parallel()
	fault := e2e.Obj{"code": -32603, "message": "boom <&> ü", "data": e2e.Obj{"n": 1, "deep": []any{nil, "x"}}}
	w := e2e.NewWorld(t)
	w.Backend("bad", e2e.Merge(e2e.Filesystem(), []e2e.Obj{{
		"prompts": []e2e.Obj{e2e.Prompt("p")},
		"on": e2e.Obj{
			"resources/read": e2e.Actions(e2e.Do("error", e2e.Obj{"error": fault})),
			"tools/call":     e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32000, "message": "application"}})),
			"prompts/get":    e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": 7, "message": "seven", "data": "text"}})),
		},
	}}))
	c := w.Standalone()
	m := c.Request("resources/read", e2e.Obj{"uri": e2e.In("bad", e2e.AppLog)})
	require.JSONEq(t, string(e2e.Marshal(fault)), string(m.Error))
	require.JSONEq(t, `{"code":-32000,"message":"application"}`, string(c.Request("tools/call", e2e.Obj{"name": "bad_stat"}).Error))
	require.JSONEq(t, `{"code":7,"message":"seven","data":"text"}`, string(c.Request("prompts/get", e2e.Obj{"name": "bad/p"}).Error))
}

func TestR3_35_CrashIsAConnectionError(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"resources/read": e2e.Actions(e2e.Do("crash", e2e.Obj{"code": 3, "times": 1, "starts": 1}))}
	w.Backend("filesystem", script)
	c := w.Standalone()
	e := c.Fault("resources/read", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
	require.Equal(t, -32603, e.Code)
	require.Equal(t, "CONNECTION_ERROR", e.Kind())
	require.Equal(t, "filesystem", e2e.Str(e.Data, "server"))
	require.Contains(t, e.Message, "filesystem")
}

func TestR3_35_B14_SilenceIsATimeout(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"resources/read": e2e.Actions(e2e.Do("hang")), "tools/call stat": e2e.Actions(e2e.Do("hang"))}
	fs := w.Backend("filesystem", script, e2e.Obj{"timeout": "2s"})
	c := w.Standalone()
	read := c.Begin("resources/read", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
	call := c.Begin("tools/call", e2e.Obj{"name": "filesystem_stat"})
	fault := e2e.ParseError(t, c.End(read))
	require.Equal(t, -32603, fault.Code)
	for _, e := range []e2e.RpcError{fault, e2e.ParseFailure(t, c.End(call))} {
		require.JSONEq(t, `{"code":"REQUEST_TIMEOUT","server":"filesystem"}`, string(e.Data))
		require.Regexp(t, `^server "filesystem": no answer to .* within 2s \((call_)?timeout\)$`, e.Message)
	}
	// The backend is told, with the ids that it knows.
	var asked, cancelled []string
	for i, method := range []string{"resources/read", "tools/call"} {
		asked = append(asked, string(e2e.At(fs.WaitReceived(method, 1).Msg, "id")))
		cancelled = append(cancelled, string(e2e.At(fs.WaitReceived("notifications/cancelled", i+1).Msg, "params", "requestId")))
	}
	require.ElementsMatch(t, asked, cancelled)
	require.Equal(t, "filesystem:move:", c.CallText("filesystem_move", nil)[:len("filesystem:move:")])
}

func TestMalformedReplyIsABadReply(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{
		"tools/call stat": e2e.Actions(e2e.Do("result", e2e.Obj{"result": "just text"})),
		"tools/call move": e2e.Actions(e2e.Do("error", e2e.Obj{"error": "no object"})),
		"resources/read":  e2e.Actions(e2e.Do("result", e2e.Obj{"result": []int{1}})),
	}
	w.Backend("filesystem", script)
	c := w.Standalone()
	read := c.Fault("resources/read", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
	require.Equal(t, -32603, read.Code)
	for _, e := range []e2e.RpcError{read, c.Fails(e2e.Obj{"name": "filesystem_stat"}), c.Fails(e2e.Obj{"name": "filesystem_move"})} {
		require.JSONEq(t, `{"code":"BAD_REPLY","server":"filesystem"}`, string(e.Data), e.Message)
		require.Contains(t, e.Message, "filesystem")
	}
}

func TestNamesAskedBeforeTheFirstListWaitForIt(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"initialize": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "up"}))}
	fs := w.Backend("filesystem", script)
	c := w.Standalone()
	call := c.Begin("tools/call", e2e.Obj{"name": "filesystem_stat", "arguments": e2e.Obj{}})
	read := c.Begin("resources/read", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
	list := c.Begin("resources/list", nil)
	fs.WaitEvent("wait", "up")
	c.Ok("ping", nil)
	fs.Do(e2e.Do("release", e2e.Obj{"name": "up"}))
	require.Equal(t, "filesystem:stat:{}", e2e.Str(c.End(call).Result, "content", 0, "text"))
	require.Equal(t, "filesystem "+e2e.AppLog, e2e.Str(c.End(read).Result, "contents", 0, "text"))
	require.NotEmpty(t, e2e.Each(c.End(list).Result, "resources"))
}
