//go:build e2e

package logins

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A server may revoke tokens that it has accepted, however young they are.
func TestAFreshTokenThatWasAcceptedOnceIsRefreshedAgain(t *testing.T) {
	t.Parallel()
	r, w := loggedIn(t)
	c := w.Standalone()
	c.CallText("shop_buy", e2e.Obj{})
	for n := range 4 { // within moments
		r.set(func() { clear(r.access) })
		before := r.count("refresh_token")
		var ids []string
		for range 10 {
			ids = append(ids, c.Begin("tools/call", buy))
		}
		for _, id := range ids {
			require.Contains(t, c.End(id).Raw, "shop:buy:", n)
		}
		require.Equal(t, before+1, r.count("refresh_token"), "one refresh for all")
	}
	require.NotContains(t, w.Run("list", "servers").Stdout, "needs login")
}

func TestTokensThatAreAcceptedOnceEachServe(t *testing.T) {
	t.Parallel()
	r, w := loggedIn(t)
	c := w.Standalone()
	c.WaitListed("tools", "shop_buy", true)
	r.set(func() { r.most = 1 })
	for range 5 {
		require.Equal(t, "shop:buy:{}", c.CallText("shop_buy", e2e.Obj{}))
	}
	require.GreaterOrEqual(t, r.count("refresh_token"), 5)
}

// A server that accepts no fresh token ends in an error, also for many calls at a time and
// for several processes, and is not asked without end.
func TestAServerThatRefusesEveryFreshTokenEndsInAnError(t *testing.T) {
	t.Parallel()
	r, w := loggedIn(t)
	c, other := w.Standalone(), w.Standalone()
	for _, one := range []*e2e.Client{c, other} {
		one.CallText("shop_buy", e2e.Obj{})
	}
	r.set(func() { clear(r.access); r.void = true })
	var ids []string
	for range 20 {
		ids = append(ids, c.Begin("tools/call", buy), other.Begin("tools/call", buy))
	}
	for i, id := range ids {
		require.Contains(t, []*e2e.Client{c, other}[i%2].End(id).Raw, "needs login: ")
	}
	e2e.Eventually(t, "the reason", func() bool { return !c.Works(buy) && !other.Works(buy) })
	require.Contains(t, c.Fails(buy).Message, "the server refuses tokens that were just given")
	refreshed := r.count("refresh_token")
	require.LessOrEqual(t, refreshed, 20)
	for range 5 {
		require.Contains(t, other.Fails(buy).Message, "goblin login shop")
	}
	require.Equal(t, refreshed, r.count("refresh_token"), "the login is over")
	require.Contains(t, w.Run("list", "servers").Stdout, "needs login")

	r.set(func() { r.void = false })
	r.succeeds(w, r.visit)
	e2e.Eventually(t, "the next login serves", func() bool { return c.Works(buy) && other.Works(buy) })
}
