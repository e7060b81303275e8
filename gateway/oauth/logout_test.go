package oauth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALogoutSaysWhatIsLeftOfTheLogin(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	status := http.StatusOK
	var taken []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		taken = append(taken, r.FormValue("token_type_hint")+" "+r.FormValue("token"))
		w.WriteHeader(status)
	}))
	defer web.Close()
	folder, o := filepath.Join(t.TempDir(), "logins"), Options{Config: "c", Server: "s", URL: web.URL + "/mcp"}
	rec := newLoginStore(folder, o)
	keep := func() {
		t.Helper()
		l := &Login{Server: "s", URL: o.URL, RevokeURL: web.URL, Client: client{ID: "me", Registered: true}, User: "ada"}
		l.Access, l.Refresh = "the access token", "the refresh token"
		require.NoError(t, os.MkdirAll(folder, 0o700))
		_, err := rec.save(l)
		require.NoError(t, err)
	}
	forgotten := func() {
		t.Helper()
		text, err := os.ReadFile(rec.path)
		require.NoError(t, err)
		require.NotContains(t, string(text), "token\"")
		require.NotContains(t, string(text), "ada")
		require.Contains(t, string(text), `"id":"me"`, "the server still knows the client")
	}
	require.ErrorIs(t, Logout(t.Context(), folder, o), ErrNotLoggedIn)
	require.NoDirExists(t, folder)

	keep()
	require.NoError(t, Logout(t.Context(), folder, o))
	require.Equal(t, []string{"refresh_token the refresh token", "access_token the access token"}, taken)
	forgotten()
	require.ErrorIs(t, Logout(t.Context(), folder, o), ErrNotLoggedIn)

	keep()
	status = http.StatusInternalServerError
	err := Logout(t.Context(), folder, o)
	require.ErrorIs(t, err, ErrNotRevoked)
	require.ErrorContains(t, err, "HTTP status 500")
	forgotten()

	keep()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = Logout(ended, folder, o)
	require.ErrorContains(t, err, "has locked ")
	require.NotErrorIs(t, err, ErrNotRevoked)
	l, err := rec.load()
	require.NoError(t, err)
	require.Equal(t, "the access token", l.Access, "still stored")

	require.NoError(t, os.WriteFile(rec.path, []byte("{"), 0o600))
	require.ErrorIs(t, Logout(t.Context(), folder, o), ErrNotRevoked)
	require.NoFileExists(t, rec.path)
}
