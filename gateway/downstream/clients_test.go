package downstream_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

// stateless sends a request of 2026-07-28 for a path from an address, and returns the
// answer.
func stateless(e http.Handler, path, remote, method, params string) *httptest.ResponseRecorder {
	req := httptest.NewRequest("POST", path, strings.NewReader(request("1", method, params)))
	req.RemoteAddr, req.Host = remote, "localhost"
	for k, v := range map[string]string{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": "t", // required by tools/call
		"Content-Type": "application/json", "Authorization": "Bearer t",
	} {
		req.Header.Set(k, v)
	}
	rec := httptest.NewRecorder()
	e.ServeHTTP(rec, req)
	return rec
}

func TestStatelessClientsAreToldApartByAddressAndName(t *testing.T) {
	t.Parallel()
	h := newScript()
	var owner any
	h.handle = func(x *downstream.Request) {
		owner = x.Owner()
		if x.Nested(x.Context(), "m", []byte("{}")).Owner() != owner {
			t.Error("a nested request belongs to its client")
		}
		x.Reply([]byte("{}"))
	}
	e := downstream.NewHTTP(downstream.HTTPOptions{Options: downstream.Options{Handler: h}, AuthToken: "t"})
	t.Cleanup(e.Close)
	of := func(path, remote, client string) any {
		rec := stateless(e.Handler(), path, remote, "m", strings.Replace(modern(""), `"m"`, `"`+client+`"`, 1))
		require.Equal(t, 200, rec.Code, rec.Body.String())
		return owner
	}
	one := of("/mcp", "192.0.2.7:1", "a")
	for _, c := range []struct {
		what, path, remote, client string
		same, group                bool
	}{
		{"again", "/mcp", "192.0.2.7:1", "a", true, true},
		{"another connection, as HTTP/1.1 needs for calls side by side", "/mcp", "192.0.2.7:2", "a", true, true},
		{"another URL", "/mcp?project=/p", "192.0.2.7:1", "a", true, true},
		{"another address", "/mcp", "192.0.2.8:1", "a", false, false},
		{"another of that address", "/mcp", "192.0.2.7:1", "b", false, true},
		{"no address", "/mcp", "@", "a", false, false},
	} {
		owner := of(c.path, c.remote, c.client)
		require.Equal(t, c.same, owner == one, c.what)
		require.Equal(t, c.group, owner.(downstream.AnonymousClient).Group() == one.(downstream.AnonymousClient).Group(), c.what)
	}
}

func TestASessionIsAClientOfItsOwn(t *testing.T) {
	t.Parallel()
	h := newScript()
	owners := make(chan any, 10)
	h.handle = func(x *downstream.Request) {
		owners <- x.Owner()
		x.Reply([]byte("{}"))
	}
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Handler: h}})
	ask := func(session string) any {
		require.Equal(t, 200, c.do("POST", session, request("1", "m", "")).StatusCode)
		return <-owners
	}
	first, second := c.open(), c.open()
	owner := ask(first)
	require.True(t, owner == ask(first))
	require.False(t, owner == ask(second))
}
