//go:build e2e

package logins

import (
	"encoding/base64"
	"encoding/json"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// idToken is a token that says who its user is.
func idToken(claims e2e.Obj) string {
	text, _ := json.Marshal(claims)
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part(text) + "." + part([]byte("signed"))
}

// login is what status says of the login at the server shop; nil for none.
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

// becomes waits until a client is told that the server shop is in that state.
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
