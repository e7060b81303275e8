package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestR3_34_CodeOfUnknownResourceInLegacyRevisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("filesystem", filesystem())
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		c := w.pipe("stdio", "--standalone")
		result := c.ok("initialize", obj{"protocolVersion": version, "capabilities": obj{}, "clientInfo": obj{"name": "e", "version": "1"}})
		require.Equal(t, version, str(result, "protocolVersion"))
		c.notify("notifications/initialized", nil)
		uri := in("filesystem", "file:///nope")
		e := c.fault("resources/read", obj{"uri": uri})
		require.Equal(t, -32002, e.Code, version)
		require.Equal(t, "RESOURCE_NOT_FOUND", e.kind())
		require.Contains(t, e.Message, uri)
		c.close()
	}
}

func TestR3_35_C23_ErrorsOfBackendsPassUnchanged(t *testing.T) {
	t.Parallel()
	fault := obj{"code": -32603, "message": "boom <&> ü", "data": obj{"n": 1, "deep": []any{nil, "x"}}}
	w := newWorld(t)
	w.backend("bad", merge(filesystem(), []obj{{
		"prompts": []obj{prompt("p")},
		"on": obj{
			"resources/read": actions(do("error", obj{"error": fault})),
			"tools/call":     actions(do("error", obj{"error": obj{"code": -32000, "message": "application"}})),
			"prompts/get":    actions(do("error", obj{"error": obj{"code": 7, "message": "seven", "data": "text"}})),
		},
	}}))
	c := w.standalone()
	m := c.request("resources/read", obj{"uri": in("bad", appLog)})
	require.JSONEq(t, string(marshal(fault)), string(m.Error))
	require.JSONEq(t, `{"code":-32000,"message":"application"}`, string(c.request("tools/call", obj{"name": "bad_stat"}).Error))
	require.JSONEq(t, `{"code":7,"message":"seven","data":"text"}`, string(c.request("prompts/get", obj{"name": "bad/p"}).Error))
}

func TestErrorForAURIKeepsItsCodeUnlessItsRevisionHasAnother(t *testing.T) {
	t.Parallel()
	for era, code := range map[string]string{"": "-32602", "modern": "-32002"} {
		t.Run("server of era "+era, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.backend("b", obj{"era": era, "resources": []obj{resource("x:1")}, "on": obj{
				"resources/read": actions(do("error", obj{"error": json.RawMessage(`{"vendor":1,"data":{"uri":"x:1"},"code":-32602,"message":"no"}`)})),
			}})
			got := w.standalone().request("resources/read", obj{"uri": in("b", "x:1")})
			require.Equal(t, `{"vendor":1,"data":{"uri":"mcp://b/x:1"},"code":`+code+`,"message":"no"}`, string(got.Error))
		})
	}
}

func TestR3_35_FailedReadIsLoggedWithServerAndURI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"resources/read": actions(do("error", obj{"error": obj{"code": -32603, "message": "boom"}}))}
	w.backend("filesystem", script)
	c := w.standalone()
	c.fault("resources/read", obj{"uri": in("filesystem", appLog)})
	eventually(t, "a log line with server and URI", func() bool {
		for line := range strings.Lines(c.prog.stderr.String()) {
			if strings.Contains(line, "filesystem") && strings.Contains(line, appLog) {
				return true
			}
		}
		return false
	})
}

func TestR3_35_CrashIsAConnectionError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"resources/read": actions(do("crash", obj{"code": 3, "times": 1, "starts": 1}))}
	w.backend("filesystem", script)
	c := w.standalone()
	e := c.fault("resources/read", obj{"uri": in("filesystem", appLog)})
	require.Equal(t, -32603, e.Code)
	require.Equal(t, "CONNECTION_ERROR", e.kind())
	require.Equal(t, "filesystem", str(e.Data, "server"))
	require.Contains(t, e.Message, "filesystem")
}

func TestR3_35_B14_SilenceIsATimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"resources/read": actions(do("hang")), "tools/call stat": actions(do("hang"))}
	fs := w.backend("filesystem", script, obj{"timeout": "2s"})
	c := w.standalone()
	for _, m := range []message{
		c.request("resources/read", obj{"uri": in("filesystem", appLog)}), c.request("tools/call", obj{"name": "filesystem_stat"}),
	} {
		e := parseError(t, m)
		require.Equal(t, -32603, e.Code)
		require.Equal(t, "REQUEST_TIMEOUT", e.kind())
		require.Equal(t, "filesystem", str(e.Data, "server"))
		require.Regexp(t, `^server "filesystem": no answer to .* within 2s \(timeout\)$`, e.Message)
	}
	// The backend is told, with the id that it knows.
	for i, method := range []string{"resources/read", "tools/call"} {
		asked := fs.waitReceived(method, 1)
		cancel := fs.waitReceived("notifications/cancelled", i+1)
		require.Equal(t, string(at(asked.Msg, "id")), string(at(cancel.Msg, "params", "requestId")))
	}
	require.Equal(t, "filesystem:move:", c.callText("filesystem_move", nil)[:len("filesystem:move:")])
}

func TestMalformedReplyIsABadReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{
		"tools/call stat": actions(do("result", obj{"result": "just text"})),
		"tools/call move": actions(do("error", obj{"error": "no object"})),
		"resources/read":  actions(do("result", obj{"result": []int{1}})),
	}
	w.backend("filesystem", script)
	c := w.standalone()
	for _, m := range []message{
		c.request("tools/call", obj{"name": "filesystem_stat"}), c.request("tools/call", obj{"name": "filesystem_move"}),
		c.request("resources/read", obj{"uri": in("filesystem", appLog)}),
	} {
		e := parseError(t, m)
		require.Equal(t, -32603, e.Code, m.raw)
		require.Equal(t, "BAD_REPLY", e.kind(), m.raw)
		require.Equal(t, "filesystem", str(e.Data, "server"))
		require.Contains(t, e.Message, "filesystem")
	}
}

func TestNamesAskedBeforeTheFirstListWaitForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"initialize": actions(do("wait", obj{"name": "up"}))}
	fs := w.backend("filesystem", script)
	c := w.standalone()
	call := c.begin("tools/call", obj{"name": "filesystem_stat", "arguments": obj{}})
	read := c.begin("resources/read", obj{"uri": in("filesystem", appLog)})
	list := c.begin("resources/list", nil)
	fs.waitEvent("wait", "up")
	c.ok("ping", nil)
	fs.do(do("release", obj{"name": "up"}))
	require.Equal(t, "filesystem:stat:{}", str(c.end(call).Result, "content", 0, "text"))
	require.Equal(t, "filesystem "+appLog, str(c.end(read).Result, "contents", 0, "text"))
	require.NotEmpty(t, each(c.end(list).Result, "resources"))
}

func TestNamesStillUnknownAfterStartupWaitTellWhoIsPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["startup_wait"] = "200ms"
	script := filesystem()
	script["on"] = obj{"initialize": actions(do("hang"))}
	w.backend("slow", script)
	w.backend("s3", s3())
	c := w.standalone()
	c.waitListed("resources", in("s3", "s3://bucket/config/app.json"), true)
	e := c.fault("resources/read", obj{"uri": in("slow", appLog)})
	require.Equal(t, "RESOURCE_NOT_FOUND", e.kind())
	require.JSONEq(t, `["slow"]`, string(at(e.Data, "pending")))
	require.Equal(t, "s3 s3://bucket/config/app.json", c.readText(in("s3", "s3://bucket/config/app.json")))
}

func TestErrorCodesThatAreLocalToAHopAreNotPassedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"tools/call stat": actions(do("error", obj{"error": obj{"code": -32022, "message": "unsupported version", "data": obj{"supported": []string{"x"}}}}))}
	w.backend("filesystem", script)
	c := w.standalone()
	e := c.fault("tools/call", obj{"name": "filesystem_stat"})
	require.NotEqual(t, -32022, e.Code)
	require.Contains(t, e.Message, "filesystem")
}
