package oauth

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zalando/go-keyring"
)

// A working keyring has the secrets and the file the rest. If the keyring fails, the file
// has both.
func TestSecretsAreInTheKeyringOrInAPrivateFile(t *testing.T) {
	for name, c := range map[string]struct {
		keyring   func()
		inKeyring bool
	}{
		"keyring": {keyring.MockInit, true},
		"locked":  {func() { keyring.MockInitWithError(errors.New("locked")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOBLIN_NO_KEYRING", "")
			t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
			c.keyring()
			folder := filepath.Join(t.TempDir(), "logins")
			rec := newLoginStore(folder, Options{Config: "c", Server: "s", URL: "https://s.example/mcp"})
			release, err := rec.lock(t.Context())
			require.NoError(t, err)
			defer release()
			_, err = rec.load()
			require.ErrorIs(t, err, ErrNotLoggedIn)

			l := &Login{Server: "s", Issuer: "https://i.example"}
			l.Access, l.Refresh = "the access token", "the refresh token"
			notice, err := rec.save(l)
			require.NoError(t, err)
			require.Equal(t, c.inKeyring, notice == "", notice)
			again, err := rec.save(l)
			require.NoError(t, err)
			require.Empty(t, again, "reported once")
			text, err := os.ReadFile(rec.path)
			require.NoError(t, err)
			if c.inKeyring {
				require.NotContains(t, string(text), "token\"", "the secrets are not in the file")
			}
			kept, err := rec.load()
			require.NoError(t, err)
			require.Equal(t, l.tokens, kept.tokens)
			require.Equal(t, l.Issuer, kept.Issuer)
		})
	}
}

// A login belongs to one server of one config with one URL, unless several share an
// account.
func TestLoginsAreSharedByAccountOnly(t *testing.T) {
	own := Options{Config: "c", Server: "s", URL: "https://s.example/mcp"}
	other := func(change func(*Options)) string {
		o := own
		change(&o)
		return newLoginStore("", o).name
	}
	for name, change := range map[string]func(*Options){
		"config":  func(o *Options) { o.Config = "d" },
		"server":  func(o *Options) { o.Server = "t" },
		"url":     func(o *Options) { o.URL = "https://t.example/mcp" },
		"account": func(o *Options) { o.Account = "a" },
	} {
		require.NotEqual(t, newLoginStore("", own).name, other(change), name)
	}
	require.Equal(t,
		other(func(o *Options) { o.Account = "a" }),
		other(func(o *Options) { o.Account, o.Config, o.Server = "a", "d", "t" }))
	require.NotEqual(t,
		other(func(o *Options) { o.Account = "a" }),
		other(func(o *Options) { o.Account, o.URL = "a", "https://t.example/mcp" }), "another server must not get the tokens")
}

// A refresh sends no request to the server. The login stores whether the server was
// local.
func TestALoginKnowsWhetherItsServerWasLocal(t *testing.T) {
	const server = "http://server.invalid/mcp"
	require.True(t, isLocal(t.Context(), (&Login{Local: true}).newHTTP(server)))
	require.False(t, isLocal(t.Context(), (&Login{}).newHTTP(server)))
	require.False(t, isLocal(t.Context(), (*Login)(nil).newHTTP(server)))
	require.True(t, isLocal(t.Context(), newHTTP("http://127.0.0.1/mcp")))
	require.False(t, isLocal(t.Context(), newHTTP("https://192.0.2.1/mcp")))
}

// A redirect by 307 or 308 repeats the form with its secrets.
func TestRedirectsStayAtTheirOrigin(t *testing.T) {
	follow := newHTTP("http://127.0.0.1/mcp").CheckRedirect
	request := func(method, address string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
		require.NoError(t, err)
		return r
	}
	first := request(http.MethodPost, "https://i.example/token")
	require.NoError(t, follow(request(http.MethodPost, "https://i.example/other"), []*http.Request{first}))
	for _, to := range []string{"http://i.example/token", "https://i.example:444/token", "https://x.example/token"} {
		require.EqualError(t, follow(request(http.MethodPost, to), []*http.Request{first}), "redirect to another origin refused", to)
		require.Error(t, follow(request(http.MethodPost, to), []*http.Request{first, request(http.MethodPost, to)}), "the first one counts: %s", to)
	}
	require.EqualError(t, follow(request(http.MethodGet, "https://i.example/other"), []*http.Request{first}), "redirect that changes the method refused")
	require.EqualError(t, follow(first, []*http.Request{first, first, first, first}), "too many redirects")
}
