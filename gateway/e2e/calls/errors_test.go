//go:build e2e

package calls

import (
	"encoding/json"
	"strings"
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

func TestErrorForAURIKeepsItsCodeUnlessItsRevisionHasAnother(t *testing.T) {
	t.Parallel()
	for era, code := range map[string]string{"": "-32602", "modern": "-32002"} {
		t.Run("server of era "+era, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("b", e2e.Obj{"era": era, "resources": []e2e.Obj{e2e.Resource("x:1")}, "on": e2e.Obj{
				"resources/read": e2e.Actions(e2e.Do("error", e2e.Obj{"error": json.RawMessage(`{"vendor":1,"data":{"uri":"x:1"},"code":-32602,"message":"no"}`)})),
			}})
			got := w.Standalone().Request("resources/read", e2e.Obj{"uri": e2e.In("b", "x:1")})
			require.Equal(t, `{"vendor":1,"data":{"uri":"mcp://b/x:1"},"code":`+code+`,"message":"no"}`, string(got.Error))
		})
	}
}

func TestNamesStillUnknownAfterStartupWaitTellWhoIsPending(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "200ms"
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"initialize": e2e.Actions(e2e.Do("hang"))}
	w.Backend("slow", script)
	w.Backend("s3", e2e.S3())
	c := w.Standalone()
	c.WaitListed("resources", e2e.In("s3", "s3://bucket/config/app.json"), true)
	e := c.Fault("resources/read", e2e.Obj{"uri": e2e.In("slow", e2e.AppLog)})
	require.Equal(t, "RESOURCE_NOT_FOUND", e.Kind())
	require.JSONEq(t, `["slow"]`, string(e2e.At(e.Data, "pending")))
	require.Equal(t, "s3 s3://bucket/config/app.json", c.ReadText(e2e.In("s3", "s3://bucket/config/app.json")))
	e = c.Fault("tools/call", e2e.Obj{"name": "s3_nope"})
	require.Equal(t, "TOOL_NOT_FOUND", e.Kind())
	require.Empty(t, e2e.At(e.Data, "pending"), "no other server can use the prefix of s3")
}

func TestErrorCodesThatAreLocalToAHopAreNotPassedOn(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"tools/call stat": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32022, "message": "unsupported version", "data": e2e.Obj{"supported": []string{"x"}}}}))}
	w.Backend("filesystem", script)
	c := w.Standalone()
	e := c.Fails(e2e.Obj{"name": "filesystem_stat"})
	require.Equal(t, "BAD_REPLY", e.Kind())
	require.Contains(t, e.Message, "filesystem")
}

func TestR3_34_CodeOfUnknownResourceInLegacyRevisions(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("filesystem", e2e.Filesystem())
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		c := w.Socket()
		result := c.Ok("initialize", e2e.Obj{"protocolVersion": version, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "e", "version": "1"}})
		require.Equal(t, version, e2e.Str(result, "protocolVersion"))
		c.Notify("notifications/initialized", nil)
		uri := e2e.In("filesystem", "file:///nope")
		e := c.Fault("resources/read", e2e.Obj{"uri": uri})
		require.Equal(t, -32002, e.Code, version)
		require.Equal(t, "RESOURCE_NOT_FOUND", e.Kind())
		require.Contains(t, e.Message, uri)
		c.Close()
	}
}

func TestR3_35_FailedReadIsLoggedWithServerAndURI(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"resources/read": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32603, "message": "boom"}}))}
	w.Backend("filesystem", script)
	c := w.Standalone()
	c.Fault("resources/read", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
	e2e.Eventually(t, "a log line with server and URI", func() bool {
		for line := range strings.Lines(c.Prog.Stderr.String()) {
			if strings.Contains(line, "filesystem") && strings.Contains(line, e2e.AppLog) {
				return true
			}
		}
		return false
	})
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
	// The server receives the cancellations with its own ids.
	var asked, cancelled []string
	for i, method := range []string{"resources/read", "tools/call"} {
		asked = append(asked, string(e2e.At(fs.WaitReceived(method, 1).Msg, "id")))
		cancelled = append(cancelled, string(e2e.At(fs.WaitReceived("notifications/cancelled", i+1).Msg, "params", "requestId")))
	}
	require.ElementsMatch(t, asked, cancelled)
	require.Equal(t, "filesystem:move:", c.CallText("filesystem_move", nil)[:len("filesystem:move:")])
}
