//go:build e2e

package logins

import (
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A server may revoke tokens that it has accepted, regardless of their age.
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

// A server that accepts no fresh token causes an error after a limited number of
// requests. The same holds for many simultaneous calls and for several processes.
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
	require.Contains(t, c.Fails(buy).Message, "the server refuses fresh tokens")
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

// Four processes with one login refresh it once.
func TestProcessesRefreshALoginOnce(t *testing.T) {
	t.Parallel()
	r, w := loggedIn(t)
	var clients []*e2e.Client
	for range 4 {
		c := w.Standalone()
		c.CallText("shop_buy", e2e.Obj{})
		clients = append(clients, c)
	}
	r.set(func() { clear(r.access) })
	var all sync.WaitGroup
	var works [4]bool
	for i, c := range clients {
		all.Go(func() { works[i] = c.Works(buy) })
	}
	all.Wait()
	require.Equal(t, [4]bool{true, true, true, true}, works)
	require.Equal(t, 1, r.count("refresh_token"))
}

// Tokens of a few seconds are renewed while they are in use. Four processes refresh them
// no more often than one.
func TestShortTokensAreRefreshedAheadByOneOfFourProcesses(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	w.Gateway["startup_wait"] = "20s"
	r.life = 2 * time.Second
	began := time.Now()
	r.succeeds(w, r.visit)
	var clients []*e2e.Client
	for range 4 {
		clients = append(clients, w.Standalone())
	}
	var all sync.WaitGroup
	end := time.Now().Add(3 * r.life)
	for _, c := range clients {
		all.Go(func() {
			for time.Now().Before(end) {
				assert.True(t, c.Works(buy))
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(t, r.count("refresh_token"), 2)
	ahead := r.life / 5 * 4
	require.LessOrEqual(t, r.count("refresh_token"), int(time.Since(began)/ahead)+1)
	require.Zero(t, r.count("invalid_grant"), "no refresh token is used twice")
}

// An authorization server that fails doesn't void a login; one that refuses the token
// does, once.
func TestOnlyARefusalEndsALogin(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusRequestTimeout} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			r, w := loggedIn(t)
			c := w.Standalone()
			c.CallText("shop_buy", e2e.Obj{})
			r.set(func() { clear(r.access); r.status = status })
			require.Contains(t, c.Fails(buy).Message, strconv.Itoa(status))
			r.set(func() { r.status = 0 })
			e2e.Eventually(t, "the login is still valid", func() bool { return c.Works(buy) })

			r.set(func() { clear(r.access); clear(r.refresh) })
			before := r.count("refresh_token")
			for range 5 {
				require.Contains(t, c.Fails(buy).Message, "goblin login shop")
			}
			require.LessOrEqual(t, r.count("refresh_token"), before+1)
			require.Contains(t, w.Run("list", "servers").Stdout, "needs login")
		})
	}
}

// A stopped process that holds the login delays others only for a limited time.
func TestAProcessThatWasStoppedHoldsNoLoginForEver(t *testing.T) {
	t.Parallel()
	r, w := loggedIn(t)
	c := w.Standalone()
	c.CallText("shop_buy", e2e.Obj{})
	locks, err := filepath.Glob(filepath.Join(w.Dir, "home", ".local", "state", "goblin", "logins", "*.lock"))
	require.NoError(t, err)
	require.Len(t, locks, 1)
	lock := flock.New(locks[0])
	require.NoError(t, lock.Lock())
	r.set(func() { clear(r.access) })
	require.Contains(t, c.Fails(buy).Message, "has locked ")
	require.True(t, c.Works(e2e.Obj{"name": "local_t", "arguments": e2e.Obj{}}))
	require.NoError(t, lock.Unlock())
	e2e.Eventually(t, "the login is still valid", func() bool { return c.Works(buy) })
}
