//go:build e2e

package limits

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A client learns that its user has finished, regardless of other servers' requests.
func TestNoServerTakesTheElicitationsOfAnother(t *testing.T) {
	t.Parallel()
	const complete = "notifications/elicitation/complete"
	w := e2e.NewWorld(t)
	logins := func(prefix string, n int) e2e.Obj {
		var demanded []e2e.Obj
		for i := range n {
			demanded = append(demanded, e2e.Obj{"mode": "url", "elicitationId": fmt.Sprintf("%s%d", prefix, i), "url": "https://x.example", "message": "m"})
		}
		return e2e.Obj{"tools": []e2e.Obj{e2e.Tool("login")}, "on": e2e.Obj{"tools/call login": e2e.Actions(e2e.Do("error", e2e.Obj{
			"error": e2e.Obj{"code": -32042, "message": "log in first", "data": e2e.Obj{"elicitations": demanded}},
		}))}}
	}
	good := w.Backend("good", logins("g", 1))
	var loud []*e2e.Backend
	for i := range 9 { // more than fit together
		loud = append(loud, w.Backend(fmt.Sprintf("loud%d", i), logins("l", 1_100)))
	}
	c, other := w.Join(), w.Join()
	heard := func(c *e2e.Client, b *e2e.Backend, id string) {
		b.Do(e2e.Do("notify", e2e.Obj{"method": complete, "params": e2e.Obj{"elicitationId": id}}))
		c.WaitNote(complete, func(p json.RawMessage) bool { return e2e.Str(p, "elicitationId") == id })
	}
	require.Equal(t, -32042, c.Fault("tools/call", e2e.Obj{"name": "good_login"}).Code)
	for i := range loud {
		require.Equal(t, -32042, other.Fault("tools/call", e2e.Obj{"name": fmt.Sprintf("loud%d_login", i)}).Code)
	}
	heard(c, good, "g0")
	loud[8].Do(e2e.Do("notify", e2e.Obj{"method": complete, "params": e2e.Obj{"elicitationId": "l0"}}))
	heard(other, loud[8], "l1099")
	require.Len(t, other.NotesOf(complete), 1, "its own oldest one was evicted")
}
