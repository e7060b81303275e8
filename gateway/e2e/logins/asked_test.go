//go:build e2e

package logins

import (
	"encoding/json"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

var (
	opens    = e2e.Obj{"elicitation": e2e.Obj{"form": e2e.Obj{}, "url": e2e.Obj{}}}
	agrees   = func(e2e.Message) (any, any) { return e2e.Obj{"action": "accept"}, nil }
	declines = func(e2e.Message) (any, any) { return e2e.Obj{"action": "decline"}, nil }
)

// invited checks what a client is asked because of the server shop, and gives the page to
// open.
func (r *realm) invited(params json.RawMessage) (page string) {
	r.t.Helper()
	require.Equal(r.t, "url", e2e.Str(params, "mode"))
	require.Contains(r.t, e2e.Str(params, "message"), `Server "shop" needs you to log in`)
	page = e2e.Str(params, "url")
	require.True(r.t, strings.HasPrefix(page, r.server.URL+"/authorize?"), page)
	return page
}

// closed waits until nobody listens for the redirect of a page.
func (r *realm) closed(page string) {
	r.t.Helper()
	u, err := url.Parse(page)
	require.NoError(r.t, err)
	back, err := url.Parse(u.Query().Get("redirect_uri"))
	require.NoError(r.t, err)
	e2e.Eventually(r.t, "the end of the login", func() bool {
		conn, err := net.Dial("tcp", back.Host)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

// A call that needs a login asks its client to open the page. It fails if the user does
// not want to, and is answered when the user has logged in, with others that wait.
func TestACallThatNeedsALoginAsksForItAndGoesOn(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	c := w.Pipe("stdio", "--standalone")
	c.Caps = opens
	c.Init()

	call := e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}}
	id := c.Begin("tools/call", call)
	page := r.invited(c.Asked(1).Params)
	c.Answer(c.Asked(1), declines)
	f := e2e.ParseFailure(t, c.End(id))
	require.Contains(t, f.Message, "declined")
	require.JSONEq(t, `{"code":"LOGIN_REQUIRED","server":"shop","command":"goblin login shop"}`, string(f.Data))
	r.closed(page)

	ids := []string{c.Begin("tools/call", call), c.Begin("tools/call", call)}
	ask := c.Asked(2)
	c.Answer(ask, agrees)
	r.visit(r.invited(ask.Params))
	for _, id := range ids {
		m := c.End(id)
		require.False(t, m.Failed(), m.Raw)
	}
	done := c.Noted("notifications/elicitation/complete", nil)
	require.NotEmpty(t, e2e.Str(ask.Params, "elicitationId"))
	require.Equal(t, e2e.Str(ask.Params, "elicitationId"), e2e.Str(done.Params, "elicitationId"))
	require.Len(t, c.Asks, 2, "one question for all calls of a client")
	require.Equal(t, 1, r.count("authorization_code"))
	r.closed(e2e.Str(ask.Params, "url"))
}
