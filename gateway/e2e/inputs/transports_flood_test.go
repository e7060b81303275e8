//go:build e2e

package inputs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// flooded returns a world whose server "b" works on slow calls until it is released.
func flooded(t *testing.T, slots int, conf e2e.Obj) (*e2e.World, *e2e.Backend) {
	w := e2e.NewWorld(t)
	w.Gateway["limits"] = e2e.Obj{"in_flight": slots}
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("slow"), e2e.Tool("quick")}, "on": e2e.Obj{
		"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"})),
	}}, conf)
	return w, b
}

// floodServer sends n slow calls with a progress token each.
func floodServer(c *e2e.Client, n int) (ids []string) {
	for i := range n {
		ids = append(ids, c.Begin("tools/call", e2e.Obj{"name": "b_slow", "_meta": e2e.Obj{"progressToken": fmt.Sprint("p", i)}}))
	}
	return ids
}

func reportsWait(m e2e.Message) bool {
	return m.Method == "notifications/progress" && strings.Contains(e2e.Str(m.Params, "message"), "waiting for a free slot at server b")
}

func TestAClientThatFloodsAServerHearsThatItWaitsAndLeavesSlotsToOthers(t *testing.T) {
	for _, row := range []struct{ slots, calls, held int }{{256, 10_000, 192}, {40, 300, 30}, {8, 100, 7}, {2, 20, 1}} {
		t.Run(fmt.Sprint(row.slots), func(t *testing.T) {
			t.Parallel()
			w, b := flooded(t, row.slots, nil)
			busy, other := w.Join(), w.Join()
			ids := floodServer(busy, row.calls)
			b.WaitEvents("wait", "go", row.held)
			for range 5 {
				require.Equal(t, "b:quick:{}", other.CallText("b_quick", e2e.Obj{}))
			}
			busy.Wait("the notification that it is waiting", func() bool {
				for _, m := range busy.Notes {
					if reportsWait(m) {
						return true
					}
				}
				return false
			})
			require.Equal(t, row.held, b.Count("tools/call")-5, "no more than its share")
			b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
			for _, id := range ids {
				require.Contains(t, busy.End(id).Raw, "b:slow:")
			}
		})
	}
}

func TestTheErrorOfCallTimeoutNamesTheQueue(t *testing.T) {
	t.Parallel()
	w, b := flooded(t, 4, e2e.Obj{"call_timeout": "1s"})
	c, other := w.Join(), w.Join()
	ids := floodServer(c, 40)
	b.WaitEvents("wait", "go", 3)
	queued := 0
	for _, id := range ids {
		m := c.End(id)
		require.Nil(t, m.Error, "agents mistake errors for a broken connection")
		require.Contains(t, m.Raw, `"isError":true`)
		require.Contains(t, m.Raw, "REQUEST_TIMEOUT")
		if strings.Contains(m.Raw, "no free slot within") {
			require.Regexp(t, `server \\"b\\": no free slot within 1s \(call_timeout\): \d calls? of this client and \d of others (is|are) in flight \(limits.in_flight: 4\)`, m.Raw)
			queued++
		}
	}
	require.NotZero(t, queued)
	require.Equal(t, "b:quick:{}", other.CallText("b_quick", e2e.Obj{}))
}

// A client may open many HTTP sessions, each of which counts as a client.
func TestManySessionsOfOneHTTPClientLeaveSlotsToOthers(t *testing.T) {
	for _, slots := range []int{3, 40} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			t.Parallel()
			w, b := flooded(t, slots, nil)
			s := w.Served()
			var ids [][]string
			var busy []*e2e.Client
			for range 8 {
				c := s.Client(false)
				busy, ids = append(busy, c), append(ids, floodServer(c, slots))
			}
			b.WaitEvents("wait", "go", slots*3/4)
			other := w.Join()
			for range 5 {
				require.Equal(t, "b:quick:{}", other.CallText("b_quick", e2e.Obj{}))
			}
			b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
			for i, c := range busy {
				for _, id := range ids[i] {
					require.Contains(t, c.End(id).Raw, "b:slow:")
				}
			}
		})
	}
}
