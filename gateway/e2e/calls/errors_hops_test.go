//go:build e2e

package calls

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

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
}

func TestErrorCodesThatAreLocalToAHopAreNotPassedOn(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"tools/call stat": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32022, "message": "unsupported version", "data": e2e.Obj{"supported": []string{"x"}}}}))}
	w.Backend("filesystem", script)
	c := w.Standalone()
	e := c.Fault("tools/call", e2e.Obj{"name": "filesystem_stat"})
	require.NotEqual(t, -32022, e.Code)
	require.Contains(t, e.Message, "filesystem")
}
