//go:build e2e

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
