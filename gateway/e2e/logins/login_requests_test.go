//go:build e2e

package logins

import (
	"encoding/json"
	"net"
	"net/http"
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

// invited checks the request that a client gets because of the server shop. It returns
// the page to open.
func (r *realm) invited(params json.RawMessage) (page string) {
	r.t.Helper()
	require.Equal(r.t, "url", e2e.Str(params, "mode"))
	require.Contains(r.t, e2e.Str(params, "message"), `Server "shop" needs you to log in`)
	page = e2e.Str(params, "url")
	require.True(r.t, strings.HasPrefix(page, r.server.URL+"/authorize?"), page)
	return page
}

// closed waits until the listener for a page's redirect is closed.
func (r *realm) closed(page string) {
	r.t.Helper()
	u, err := url.Parse(page)
	require.NoError(r.t, err)
	back, err := url.Parse(u.Query().Get("redirect_uri"))
	require.NoError(r.t, err)
	e2e.Eventually(r.t, "the login expires", func() bool {
		conn, err := net.Dial("tcp", back.Host)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

// A call that needs a login asks its client to open the page. It fails if the user
// declines. After the login it is answered, together with other waiting calls.
func TestACallThatNeedsALoginAsksForItAndGoesOn(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	c := w.Pipe("stdio", "--standalone")
	c.Caps = opens
	c.Init()

	call := e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}}
	id := c.Begin("tools/call", call)
	page := r.invited(c.WaitAsks(1).Params)
	c.Answer(c.WaitAsks(1), declines)
	f := e2e.ParseFailure(t, c.End(id))
	require.Contains(t, f.Message, "declined")
	require.JSONEq(t, `{"code":"LOGIN_REQUIRED","server":"shop","command":"goblin login shop"}`, string(f.Data))
	r.closed(page)

	ids := []string{c.Begin("tools/call", call), c.Begin("tools/call", call)}
	ask := c.WaitAsks(2)
	c.Answer(ask, agrees)
	r.visit(r.invited(ask.Params))
	for _, id := range ids {
		m := c.End(id)
		require.False(t, m.Failed(), m.Raw)
	}
	done := c.WaitNote("notifications/elicitation/complete", nil)
	require.NotEmpty(t, e2e.Str(ask.Params, "elicitationId"))
	require.Equal(t, e2e.Str(ask.Params, "elicitationId"), e2e.Str(done.Params, "elicitationId"))
	require.Len(t, c.Asks, 2, "one request for all calls of a client")
	require.Equal(t, 1, r.count("authorization_code"))
	r.closed(e2e.Str(ask.Params, "url"))
}

// demanded is like invited for a stateless client, whose call got an input request. It
// also returns the params of the retry.
func (r *realm) demanded(m e2e.Message, params e2e.Obj) (page string, answered func(action string) e2e.Obj) {
	r.t.Helper()
	state, keys := e2e.InputRequests(r.t, m)
	require.Len(r.t, keys, 1)
	key := keys["elicitation/create"]
	asked := e2e.At(m.Result, "inputRequests", key, "params")
	require.Nil(r.t, e2e.At(asked, "elicitationId"))
	return r.invited(asked), func(action string) e2e.Obj {
		again := e2e.Obj{"requestState": state, "inputResponses": e2e.Obj{key: e2e.Obj{"action": action}}}
		for k, v := range params {
			again[k] = v
		}
		return again
	}
}

// Stateless clients are asked in the answers to their calls, whether the client or its
// user finishes first.
func TestStatelessClientsAreAskedToLogIn(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		r := newRealm(t)
		w.Gateway["startup_wait"] = "5s"
		w.Gateway["auth_token"] = token
		r.protect(w, w.Remote("shop", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("buy")}}))
		c := connect()
		c.Caps = opens

		page, again := r.demanded(c.Request("tools/call", buy), buy)
		f := e2e.ParseFailure(t, c.Request("tools/call", again("decline")))
		require.Equal(t, "LOGIN_REQUIRED", f.Kind())
		r.closed(page)

		page, again = r.demanded(c.Request("tools/call", buy), buy)
		id := c.Begin("tools/call", again("accept"))
		r.visit(page)
		m := c.End(id)
		require.False(t, m.Failed(), m.Raw)

		r.set(func() { clear(r.access); clear(r.refresh) })
		page, again = r.demanded(c.Request("tools/call", buy), buy)
		r.visit(page)
		m = c.Request("tools/call", again("accept"))
		require.False(t, m.Failed(), m.Raw)
		require.Equal(t, 2, r.count("authorization_code"))
	})
}

// The same over HTTP with sessions, and for all other requests that need the server.
func TestPromptsAndResourcesAskForALoginToo(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		method string
		params e2e.Obj
	}{
		"tool":       {"tools/call", buy},
		"prompt":     {"prompts/get", e2e.Obj{"name": "shop/p"}},
		"resource":   {"resources/read", e2e.Obj{"uri": "mcp://shop/file:///a"}},
		"completion": {"completion/complete", e2e.Obj{"ref": e2e.Obj{"type": "ref/prompt", "name": "shop/p"}, "argument": e2e.Obj{"name": "a", "value": ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := newRealm(t), e2e.NewWorld(t)
			w.Gateway["startup_wait"] = "5s"
			w.Gateway["auth_token"] = token
			r.protect(w, w.Remote("shop", "/mcp", e2e.Obj{
				"tools": []e2e.Obj{e2e.Tool("buy")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("file:///a")},
				"capabilities": e2e.Obj{"tools": e2e.Obj{}, "prompts": e2e.Obj{}, "resources": e2e.Obj{}, "completions": e2e.Obj{}},
			}))
			c := w.Served().Client(false, opens)
			id := c.Begin(row.method, row.params)
			c.Answer(c.WaitAsks(1), declines)
			f := c.End(id)
			if row.method == "tools/call" {
				require.Equal(t, "LOGIN_REQUIRED", e2e.ParseFailure(t, f).Kind())
			} else {
				fault := e2e.ParseError(t, f)
				require.Equal(t, -32603, fault.Code)
				require.JSONEq(t, `{"code":"LOGIN_REQUIRED","server":"shop","command":"goblin login shop"}`, string(fault.Data))
			}
			id = c.Begin(row.method, row.params)
			ask := c.WaitAsks(2)
			c.Answer(ask, agrees)
			r.visit(r.invited(ask.Params))
			m := c.End(id)
			require.False(t, m.Failed(), m.Raw)
			c.WaitNote("notifications/elicitation/complete", nil)
		})
	}
}

// Clients that cannot open pages, or do so on another machine, get the error.
func TestClientsThatCannotOpenThePageAreNotAsked(t *testing.T) {
	t.Parallel()
	_, w, _ := protected(t)
	w.Gateway["auth_token"] = token
	for name, caps := range map[string]e2e.Obj{"none": {}, "forms": {"elicitation": e2e.Obj{}}, "named forms": {"elicitation": e2e.Obj{"form": e2e.Obj{}}}} {
		t.Run(name, func(t *testing.T) {
			c := w.Served().Client(false, caps)
			require.Equal(t, "LOGIN_REQUIRED", c.Fails(buy).Kind())
			require.Empty(t, c.Asks)
			m := w.Served().Stateless()
			m.Caps = caps
			require.Equal(t, "LOGIN_REQUIRED", m.Fails(buy).Kind())
		})
	}
	out := w.Run("call", "shop_buy")
	require.Equal(t, e2e.ExitConnect, out.Code)
	require.Contains(t, out.Stderr, `run "goblin login shop"`)
	body := e2e.Obj{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": e2e.Obj{
		"name": "shop_buy", "_meta": e2e.Obj{
			e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": opens,
		},
	}}
	head := http.Header{}
	e2e.StandardHeaders(head, e2e.Marshal(body))
	for proxy, says := range map[string]string{"": "input_required", "X-Forwarded-For": "LOGIN_REQUIRED", "Forwarded": "LOGIN_REQUIRED"} {
		headers := map[string]string{}
		for k := range head {
			headers[k] = head.Get(k)
		}
		if proxy != "" {
			headers[proxy] = "for=192.0.2.1"
		}
		require.Contains(t, w.Served().Do("POST", "/mcp", headers, string(e2e.Marshal(body))).Body, says, proxy)
	}
}

// The call that detects an expired login or missing rights asks for a login.
func TestARevokedLoginAndMoreRightsAreAskedFor(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	r.succeeds(w, r.visit)
	c := w.Pipe("stdio", "--standalone")
	c.Caps = opens
	c.Init()
	require.False(t, c.Works(e2e.Obj{"name": "shop_other"}), "unknown, but nothing to log in for")
	c.CallText("shop_buy", e2e.Obj{})
	require.Empty(t, c.Asks)

	for i, loses := range []func(){
		func() { clear(r.access); clear(r.refresh) },
		func() { r.scope = "pay" },
	} {
		r.set(loses)
		id := c.Begin("tools/call", buy)
		ask := c.WaitAsks(i + 1)
		page := r.invited(ask.Params)
		c.Answer(ask, agrees)
		r.visit(page)
		m := c.End(id)
		require.False(t, m.Failed(), m.Raw)
		if i == 1 {
			u, err := url.Parse(page)
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"use", "pay"}, strings.Fields(u.Query().Get("scope")))
		}
	}
	require.Equal(t, 3, r.count("authorization_code"))
}

// The same holds for servers of any revision or with a connection per session, for both
// kinds of clients.
func TestServersOfAllKindsAskForALogin(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		era  string
		conf e2e.Obj
	}{
		"modern":           {"modern", e2e.Obj{}},
		"dual":             {"dual", e2e.Obj{}},
		"isolated":         {"", e2e.Obj{"isolation": "session"}},
		"isolated, modern": {"modern", e2e.Obj{"isolation": "session"}},
		"isolated, dual":   {"dual", e2e.Obj{"isolation": "session"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := newRealm(t), e2e.NewWorld(t)
			w.Gateway["startup_wait"] = "5s"
			script := e2e.Obj{"tools": []e2e.Obj{e2e.Tool("buy")}}
			if row.era != "" {
				script["era"] = row.era
			}
			r.protect(w, w.Remote("shop", "/mcp", script, row.conf))
			old, modern := w.Socket(), w.Socket().Stateless()
			old.Caps, modern.Caps = opens, opens
			old.Init()
			for i := range 2 {
				id := old.Begin("tools/call", buy)
				ask := old.WaitAsks(i + 1)
				old.Answer(ask, agrees)
				r.visit(r.invited(ask.Params))
				m := old.End(id)
				require.False(t, m.Failed(), m.Raw)
				m = modern.Request("tools/call", buy)
				require.False(t, m.Failed(), m.Raw)

				r.set(func() { clear(r.access); clear(r.refresh) })
				page, again := r.demanded(modern.Request("tools/call", buy), buy)
				r.visit(page)
				m = modern.Request("tools/call", again("accept"))
				require.False(t, m.Failed(), m.Raw)
				old.CallText("shop_buy", e2e.Obj{})
				r.set(func() { clear(r.access); clear(r.refresh) })
			}
			require.Equal(t, 4, r.count("authorization_code"))
		})
	}
}

// A script's calls ask its client.
func TestScriptsAskForALoginToo(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	w.Gateway["meta_tools"] = []string{"execute_lua"}
	r.succeeds(w, r.visit)
	old, modern := w.Socket(), w.Socket().Stateless()
	old.Caps, modern.Caps = opens, opens
	old.Init()
	old.CallText("shop_buy", e2e.Obj{})
	script := e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": `return #shop.buy{} > 0`}}

	r.set(func() { clear(r.access); clear(r.refresh) })
	id := old.Begin("tools/call", script)
	ask := old.WaitAsks(1)
	old.Answer(ask, agrees)
	r.visit(r.invited(ask.Params))
	m := old.End(id)
	require.NotEqual(t, "true", string(e2e.At(m.Result, "isError")), m.Raw)

	r.set(func() { clear(r.access); clear(r.refresh) })
	page, again := r.demanded(modern.Request("tools/call", script), script)
	r.visit(page)
	m = modern.Request("tools/call", again("accept"))
	require.NotEqual(t, "true", string(e2e.At(m.Result, "isError")), m.Raw)
}

// One login serves all clients, regardless of which one made it. Open requests are
// withdrawn.
func TestOneLoginServesAllClientsThatWait(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	first, second := w.Socket(), w.Socket()
	for _, c := range []*e2e.Client{first, second} {
		c.Caps = opens
		c.Init()
	}
	one, two := first.Begin("tools/call", buy), second.Begin("tools/call", buy)
	ask := first.WaitAsks(1)
	page := r.invited(ask.Params)
	require.Equal(t, page, r.invited(second.WaitAsks(1).Params))

	// One user declines: the other's login is still open.
	second.Answer(second.WaitAsks(1), declines)
	require.Equal(t, "LOGIN_REQUIRED", e2e.ParseFailure(t, second.End(two)).Kind())
	two = second.Begin("tools/call", buy)
	require.Equal(t, page, r.invited(second.WaitAsks(2).Params))
	r.visit(page)
	for c, id := range map[*e2e.Client]string{first: one, second: two} {
		m := c.End(id)
		require.False(t, m.Failed(), m.Raw)
		c.WaitNote("notifications/cancelled", nil)
	}
	require.Equal(t, 1, r.count("authorization_code"))

	// The command's login serves the call, too.
	r.set(func() { clear(r.access); clear(r.refresh) })
	one = first.Begin("tools/call", buy)
	page = r.invited(first.WaitAsks(2).Params)
	r.succeeds(w, r.visit)
	m := first.End(one)
	require.False(t, m.Failed(), m.Raw)
	r.closed(page)

	// Clients get no login request immediately after a login.
	r.set(func() { clear(r.access); clear(r.refresh) })
	one = first.Begin("tools/call", buy)
	first.Answer(first.WaitAsks(3), declines)
	first.End(one)
	r.succeeds(w, r.visit)
	second.CallText("shop_buy", e2e.Obj{})
	require.Len(t, second.Asks, 2)
}

// A client that leaves gets no further requests, and the listener is closed. A denied
// login is reported.
func TestALoginThatNobodyWaitsForEnds(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	c := w.Socket()
	c.Caps = opens
	c.Init()
	id := c.Begin("tools/call", buy)
	ask := c.WaitAsks(1)
	page := r.invited(ask.Params)
	c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
	c.WaitNote("notifications/cancelled", func(p json.RawMessage) bool { return string(e2e.At(p, "requestId")) == string(ask.ID) })
	r.closed(page)

	gone := w.Socket()
	gone.Caps = opens
	gone.Init()
	gone.Begin("tools/call", buy)
	page = r.invited(gone.WaitAsks(1).Params)
	gone.Close()
	r.closed(page)

	r.redirect = func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }
	id = c.Begin("tools/call", buy)
	ask = c.WaitAsks(2)
	c.Answer(ask, agrees)
	resp, err := http.Get(r.invited(ask.Params))
	require.NoError(t, err)
	_ = resp.Body.Close()
	f := e2e.ParseFailure(t, c.End(id))
	require.Equal(t, "LOGIN_REQUIRED", f.Kind())
	require.Contains(t, f.Message, "denied")

	r.set(func() {
		r.redirect, r.meta = nil, func(o e2e.Obj) { o["code_challenge_methods_supported"] = []string{"plain"} }
	})
	f = c.Fails(buy)
	require.Equal(t, "LOGIN_REQUIRED", f.Kind())
	require.Contains(t, f.Message, "PKCE")
}
