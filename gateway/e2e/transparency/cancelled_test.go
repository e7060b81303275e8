//go:build e2e

package transparency

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestCancelledCallsAmongManyAreNotAnsweredAndFreeTheirPlace(t *testing.T) {
	everyRoute(t, func(t *testing.T, r route) {
		w := e2e.NewWorld(t)
		w.Gateway["limits"] = e2e.Obj{"in_flight": crowd * 4 / 3} // room for all; a slot that is not released is noticed
		r.start(w, crowded(crowd, func(string) []e2e.Obj { return nil }))
		c := r.through
		put(c, "tools/list", "{}")
		for round := range 3 {
			var ids []string
			for i := range crowd {
				ids = append(ids, send(c, "tools/call", fmt.Sprintf(`{"name":"b_t%d"}`, i)))
			}
			r.b.WaitEvents("wait", "all", crowd*(round+1))
			if round == 2 {
				r.b.Do(e2e.Do("release", e2e.Obj{"name": "all"}))
				for _, id := range ids {
					require.Nil(t, c.End(id).Error)
				}
				return
			}
			for _, id := range ids {
				r.cancel(id)
			}
			r.b.WaitEvents("gone", "", crowd*(round+1))
			put(c, "tools/list", "{}")
			c.Mu.Lock()
			for _, id := range ids {
				require.Empty(t, c.Replies[id])
			}
			c.Mu.Unlock()
		}
	})
}

// cancel cancels a request as the client's revision and transport require.
func (r route) cancel(id string) {
	if r.front == "http" && r.client == "modern" {
		r.through.Web.Abort(id)
		return
	}
	r.through.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
}

func TestQuestionsOfCancelledCallsAreWithdrawn(t *testing.T) {
	t.Parallel()
	for _, back := range []string{"stdio", "http"} {
		t.Run(back, func(t *testing.T) {
			t.Parallel()
			const n = 60 // a server may have 64 open requests
			w := e2e.NewWorld(t)
			script := crowded(n, func(string) []e2e.Obj { return e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create"})) })
			start := map[string]func() *e2e.Backend{
				"stdio": func() *e2e.Backend { return w.Backend("b", script) },
				"http":  func() *e2e.Backend { return w.Remote("b", "/mcp", script) },
			}
			b := start[back]()
			c := w.Pipe("stdio", "--standalone")
			c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
			c.Init()
			c.Names("tools")
			var ids []string
			for i := range n {
				ids = append(ids, c.Begin("tools/call", e2e.Obj{"name": fmt.Sprintf("b_t%d", i)}))
			}
			b.WaitEvents("wait", "all", n)
			b.Do(e2e.Do("release", e2e.Obj{"name": "all"}))
			c.WaitAsks(n)
			for _, id := range ids {
				c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
			}
			open := map[string]bool{}
			for i := range n {
				open[string(c.WaitAsks(i+1).ID)] = true
			}
			require.Len(t, open, n)
			c.Wait("the end of all requests", func() bool {
				for _, n := range c.Notes {
					if n.Method == "notifications/cancelled" {
						delete(open, string(e2e.At(n.Params, "requestId")))
					}
				}
				return len(open) == 0
			})
			c.Ok("ping", nil)
			for _, id := range ids {
				require.Empty(t, c.Replies[id])
			}
		})
	}
}
