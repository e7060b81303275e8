package downstream_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

// A client has left if its session or connection closes before the answer. Receiving the
// answer or cancelling the request is not leaving.
func TestLeftReportsAClosedSessionOrConnection(t *testing.T) {
	t.Run("streams", func(t *testing.T) {
		overEach(t, func(t *testing.T, dial func(downstream.Options) *client) {
			h := newScript()
			exchanges := make(chan *downstream.Request, 1)
			release := make(chan struct{})
			h.handle = func(x *downstream.Request) {
				exchanges <- x
				select {
				case <-release:
				case <-x.Context().Done():
				}
				x.Reply([]byte(`{}`))
			}
			c := dial(downstream.Options{Handler: h})
			s := <-h.opened

			c.send(request("1", "answered", ""))
			x := <-exchanges
			release <- struct{}{}
			c.line()
			require.False(t, x.ClientLeft(), "answered")

			c.send(request("2", "cancelled", ""))
			x = <-exchanges
			c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
			<-x.Context().Done()
			require.True(t, x.Cancelled())
			require.False(t, x.ClientLeft(), "cancelled")

			c.send(request("3", "left", ""))
			x = <-exchanges
			s.Close(io.EOF)
			<-h.closed
			require.True(t, x.ClientLeft(), "its session is closed")
		})
	})
	for _, accept := range []string{"application/json, text/event-stream", "text/event-stream"} {
		t.Run("HTTP, "+accept, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				exchanges, release := make(chan *downstream.Request, 1), make(chan struct{})
				c, _, stop := serve(t, downstream.HTTPOptions{})
				defer stop()
				c.h.handle = func(x *downstream.Request) {
					exchanges <- x
					<-release
					x.Reply([]byte(`{}`))
				}
				id := c.open()
				call := func(ctx context.Context, number string) *downstream.Request {
					go func() {
						if res, err := c.try(ctx, "POST", id, request(number, "slow", ""), "Accept", accept); err == nil {
							_, _ = io.Copy(io.Discard, res.Body)
							res.Body.Close()
						}
					}()
					return <-exchanges
				}
				x := call(t.Context(), "1")
				release <- struct{}{}
				synctest.Wait()
				require.False(t, x.ClientLeft(), "answered")

				ctx, hangUp := context.WithCancel(t.Context())
				x = call(ctx, "2")
				hangUp()
				synctest.Wait()
				release <- struct{}{}
				synctest.Wait()
				require.True(t, x.ClientLeft(), "it hung up")
				require.False(t, x.Cancelled(), "the request was completed")
			})
		})
	}
	t.Run("stateless", func(t *testing.T) {
		h := newScript()
		c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Handler: h}})
		exchanges := make(chan *downstream.Request, 1)
		h.handle = func(x *downstream.Request) {
			x.Notify("", "notifications/x", nil)
			exchanges <- x
			<-x.Context().Done()
		}
		ctx, hangUp := context.WithCancel(t.Context())
		require.Equal(t, "notifications/x", c.postModern(ctx, "1", "tools/list", "").message().Method)
		x := <-exchanges
		hangUp()
		<-x.Context().Done()
		require.True(t, x.ClientLeft())
	})
}
