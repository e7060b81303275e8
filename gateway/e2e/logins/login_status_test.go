//go:build e2e

package logins

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// idToken returns a token that names its user.
func idToken(claims e2e.Obj) string {
	text, _ := json.Marshal(claims)
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part(text) + "." + part([]byte("signed"))
}

// login returns the status of the login at the server shop, or nil if there is none.
func login(w *e2e.World) e2e.Obj {
	for _, s := range status(w).Servers {
		if s.Name == "shop" {
			return s.Login
		}
	}
	return nil
}

type serverStatus struct {
	Name, State string
	Login       e2e.Obj
}

func status(w *e2e.World) (got struct{ Servers []serverStatus }) {
	w.T.Helper()
	require.NoError(w.T, json.Unmarshal([]byte(w.Succeeds("status", "--json")), &got))
	return got
}

// becomes waits until a client sees the server shop in that state.
func becomes(c *e2e.Client, state string) {
	c.T.Helper()
	e2e.Eventually(c.T, state, func() bool {
		for _, s := range e2e.Each(json.RawMessage(c.ReadText("goblin://servers")), "servers") {
			if e2e.Str(s, "name") == "shop" {
				return e2e.Str(s, "state") == state
			}
		}
		return false
	})
}

// The daemon and the lists show a login's user and expiry, and notice a logout without a
// call.
func TestStatusTellsWhoIsLoggedInAndUntilWhen(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	c := w.Bridged()
	becomes(c, "needs login")
	require.NotContains(t, w.Succeeds("status"), "LOGIN", "no user is logged in")

	r.answer = func(o e2e.Obj) {
		o["id_token"] = idToken(e2e.Obj{"sub": "u-17", "email": "ada@example.com", "preferred_username": "ada\x1b[2J"})
	}
	r.succeeds(w, r.visit)
	c.WaitListed("tools", "shop_buy", true)
	require.Equal(t, e2e.Obj{"user": "ada [2J", "renews": true}, login(w))
	for _, cmd := range []string{"status", "list servers"} {
		require.Regexp(t, `(?m)^shop +ready .* ada \[2J, renews automatically`, w.Succeeds(strings.Fields(cmd)...))
	}

	require.Zero(t, w.Run("logout", "shop").Code)
	becomes(c, "needs login")
	require.Nil(t, login(w))

	// A login without a refresh token expires.
	r.set(func() {
		r.answer = func(o e2e.Obj) {
			delete(o, "refresh_token")
			r.access[idToken(e2e.Obj{"sub": "u-18"})] = time.Now().Add(time.Hour)
			o["access_token"] = idToken(e2e.Obj{"sub": "u-18"})
			r.granted[idToken(e2e.Obj{"sub": "u-18"})] = "use"
		}
	})
	r.succeeds(w, r.visit)
	becomes(c, "ready")
	known := login(w)
	require.Equal(t, "u-18", known["user"])
	until, err := time.Parse(time.RFC3339, known["until"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), until, time.Minute)
	require.Contains(t, w.Succeeds("list", "servers"), "u-18, until "+until.Local().Format("2006-01-02 15:04"))
}
