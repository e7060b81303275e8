//go:build e2e

package logins

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

var buy = e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}}

// loggedIn is a world whose user is logged in at the server shop.
func loggedIn(t *testing.T) (*realm, *e2e.World) {
	t.Helper()
	r, w, _ := protected(t)
	w.Gateway["startup_wait"] = "20s"
	r.succeeds(w, r.visit)
	return r, w
}

// A client of a machine logs in by itself, when the first call wants it.
func TestMachinesLogInByThemselves(t *testing.T) {
	t.Parallel()
	r, w, b := protected(t)
	r.meta = func(o e2e.Obj) { o["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"} }
	b.Conf["oauth"] = e2e.Obj{"grant": "client_credentials", "client_id": "robot", "client_secret": "robot-secret"}
	w.Gateway["startup_wait"] = "20s"
	c := w.Standalone()
	c.CallText("shop_buy", e2e.Obj{})
	require.Equal(t, 1, r.count("client_credentials"))
	require.Zero(t, r.count("register"))
	r.set(func() { clear(r.access) })
	c.CallText("shop_buy", e2e.Obj{})
	require.Equal(t, 2, r.count("client_credentials"))
}

// A call that wants more rights says so, and the next login asks for them with the rest.
func TestMoreRightsAreAskedForAtTheNextLogin(t *testing.T) {
	t.Parallel()
	r, w := loggedIn(t)
	c := w.Standalone()
	c.CallText("shop_buy", e2e.Obj{})
	r.set(func() { r.scope = "pay" })
	require.Contains(t, c.Fails(buy).Message, "goblin login shop")
	r.scope = ""
	var asked string
	r.succeeds(w, func(page string) {
		u, err := url.Parse(page)
		require.NoError(t, err)
		asked = u.Query().Get("scope")
		r.visit(page)
	})
	r.set(func() { r.scope = "pay" })
	require.Contains(t, strings.Fields(asked), "use")
	require.Contains(t, strings.Fields(asked), "pay")
	e2e.Eventually(t, "the new rights", func() bool { return c.Works(buy) })
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

// An authorization server that is out of order costs no login; one that takes it no
// more does, once.
func TestOnlyARefusalEndsALogin(t *testing.T) {
	t.Parallel()
	r, w := loggedIn(t)
	c := w.Standalone()
	c.CallText("shop_buy", e2e.Obj{})
	r.set(func() { clear(r.access); r.down = true })
	require.Contains(t, c.Fails(buy).Message, "503")
	r.set(func() { r.down = false })
	e2e.Eventually(t, "the login goes on", func() bool { return c.Works(buy) })

	r.set(func() { clear(r.access); clear(r.refresh) })
	before := r.count("refresh_token")
	for range 5 {
		require.Contains(t, c.Fails(buy).Message, "goblin login shop")
	}
	require.LessOrEqual(t, r.count("refresh_token"), before+1)
	require.Contains(t, w.Run("list", "servers").Stdout, "needs login")
}

// A client that the authorization server has forgotten is registered again by itself,
// and the redirect of a stranger changes nothing.
func TestForgottenClientsAndStrangersDoNotMatter(t *testing.T) {
	t.Parallel()
	r, w := loggedIn(t)
	r.set(func() { clear(r.clients) })
	r.succeeds(w, func(page string) {
		u, err := url.Parse(page)
		require.NoError(t, err)
		resp, err := http.Get(u.Query().Get("redirect_uri") + "?code=evil&state=guess")
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
		_ = resp.Body.Close()
		r.visit(page)
	})
	require.Equal(t, 2, r.count("register"))
}

// Tokens of a few seconds last as long as anybody works with them.
func TestShortTokensAreRefreshedAhead(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	w.Gateway["startup_wait"] = "20s"
	r.life = 2 * time.Second
	r.succeeds(w, r.visit)
	c := w.Standalone()
	for end := time.Now().Add(3 * r.life); time.Now().Before(end); {
		c.CallText("shop_buy", e2e.Obj{})
	}
	require.GreaterOrEqual(t, r.count("refresh_token"), 2)
	c.Settle()
}

// Over SSH the browser is elsewhere: its user pastes the URL that it ends at.
func TestThePastedURLLogsIn(t *testing.T) {
	t.Parallel()
	_, w, _ := protected(t)
	w.Gateway["startup_wait"] = "20s"
	in, paste, err := os.Pipe()
	require.NoError(t, err)
	defer paste.Close()
	defer in.Close()
	p := w.Start(func(cmd *exec.Cmd) { cmd.Stdin = in }, "login", "shop", "--no-browser")
	e2e.Eventually(t, "the page", func() bool { return page.MatchString(p.Stderr.String()) })
	elsewhere := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := elsewhere.Get(page.FindString(p.Stderr.String()))
	require.NoError(t, err)
	_ = resp.Body.Close()
	_, err = io.WriteString(paste, resp.Header.Get("Location")+"\n")
	require.NoError(t, err)
	require.Equal(t, e2e.ExitOK, p.Ends(e2e.Patience), p.Stderr.String())
	w.Standalone().CallText("shop_buy", e2e.Obj{})
}

// Where the authorization server offers it, a code that is entered on any device logs in;
// the client that was registered for that serves logins by redirect, too.
func TestACodeEnteredOnAnyDeviceLogsIn(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	w.Gateway["startup_wait"] = "20s"
	r.succeeds(w, r.visit)
	for range 2 {
		told := r.succeeds(w, r.visit, "--device")
		require.Contains(t, told, "enter the code GOB-")
		require.Equal(t, 2, r.count("register"), "the first client cannot do this")
	}
	w.Standalone().CallText("shop_buy", e2e.Obj{})
	r.succeeds(w, r.visit)
	require.Equal(t, 2, r.count("register"))

	for fault, says := range map[string]string{"access_denied": "denied", "expired_token": "not entered while it was valid", "invalid_grant": "gives no token"} {
		r.set(func() {
			r.odd = map[string]http.HandlerFunc{"/token": func(w http.ResponseWriter, _ *http.Request) {
				respond(w, http.StatusBadRequest, e2e.Obj{"error": fault})
			}}
		})
		code, told := r.logIn(w, "shop", r.visit, "--device")
		require.NotZero(t, code)
		require.Contains(t, told, says)
	}
	r.set(func() {
		r.odd, r.meta = nil, func(o e2e.Obj) { delete(o, "device_authorization_endpoint") }
	})
	code, told := r.logIn(w, "shop", r.visit, "--device")
	require.Equal(t, e2e.ExitFailure, code)
	require.Contains(t, told, "log in without --device")
}
