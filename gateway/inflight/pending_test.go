package inflight

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	"goblin/gateway/telemetry"
	"goblin/registry/rawjson"
)

// patient answers requests only after their cancellation.
type patient struct{ Clients }

func (p *patient) SessionOpened(s *downstream.Session)                  { p.Open(s) }
func (p *patient) SessionClosed(s *downstream.Session)                  { p.Close(s) }
func (*patient) HandleNotification(*downstream.Session, string, []byte) {}
func (*patient) Handle(x *downstream.Request)                           { <-x.Context().Done() }

// talk starts a session in a bubble of synctest. send sends a line, and line reads one.
func talk(t *testing.T, clients *patient) (send func(method string), line func() string) {
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = downstream.ServeStream(t.Context(), downstream.Options{Handler: clients}, "stdio", far, far)
	}()
	t.Cleanup(func() { near.Close(); <-ended })
	lines, id := bufio.NewScanner(near), 0
	send = func(method string) {
		id++
		fmt.Fprintf(near, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n", id, method)
		time.Sleep(time.Second)
	}
	return send, func() string {
		lines.Scan()
		return lines.Text()
	}
}

func TestRequestsUnderWayAreShownInTheirOrderAndWithdrawnAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clients := &patient{}
		w := Pending{Table: NewTable(), Clients: &clients.Clients, Journal: &telemetry.Journal{}}
		methods := func() (all []string) {
			for _, r := range w.All() {
				all = append(all, r.Method)
			}
			return all
		}
		begins, _ := talk(t, clients)
		begins("initialize")
		one, _ := talk(t, clients)
		time.Sleep(time.Second)
		other, heard := talk(t, clients)
		one("first")
		other("second")
		other("subscriptions/listen")
		one("third")
		other("fourth")
		require.Equal(t, []string{"initialize", "first", "second", "third", "fourth"}, methods(), "endless requests do not delay it")

		all := w.All()
		require.False(t, w.Cancel(all[0].Session, all[0].ID), "initialize cannot be cancelled")
		require.False(t, w.Cancel(all[1].Session, "99"))
		require.False(t, w.Cancel("nobody", all[1].ID))
		require.True(t, w.Cancel(all[2].Session, all[2].ID))
		answer := []byte(heard())
		require.Equal(t, `"CANCELLED"`, string(rawjson.Path(answer, "error", "data", "code")), "%s", answer)
		synctest.Wait()
		require.Equal(t, []string{"initialize", "first", "third", "fourth"}, methods())
		require.False(t, w.Cancel(all[2].Session, all[2].ID), "it is no longer in flight")
	})
}
