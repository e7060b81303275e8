//go:build e2e

package logins

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func protected(t *testing.T) (*realm, *e2e.World, *e2e.Backend) {
	t.Helper()
	r, w := newRealm(t), e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "5s" // a server that needs a login never lists
	b := w.Remote("shop", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("buy")}})
	w.Backend("local", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	r.protect(w, b)
	return r, w, b
}

// A server reports that it needs a login. The command logs in while the daemon runs, and
// the login outlives its tokens.
func TestLoginByTheCommandReachesTheRunningDaemon(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	w.Log = e2e.Obj{"level": "debug"}
	c := w.Standalone()
	f := c.Fails(e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}})
	require.JSONEq(t, `{"code":"LOGIN_REQUIRED","server":"shop","command":"goblin login shop"}`, string(f.Data))
	e2e.Eventually(t, "the state", func() bool { return strings.Contains(w.Run("list", "servers").Stdout, "needs login") })

	require.Contains(t, r.succeeds(w, r.visit), `logged in to "shop"`)
	c.WaitListed("tools", "shop_buy", true)
	c.CallText("shop_buy", e2e.Obj{})
	require.Equal(t, 1, r.count("register"))

	var kept []string
	root := filepath.Join(w.Dir, "home")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Base(filepath.Dir(path)) == "logins" && strings.HasSuffix(path, ".json") {
			info, err := d.Info()
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
			kept = append(kept, path)
		}
		return nil
	}))
	require.Len(t, kept, 1)
	dir, err := os.Stat(filepath.Dir(kept[0]))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), dir.Mode().Perm())

	// All tokens expire: one refresh serves all waiting calls.
	r.set(func() {
		for token := range r.access {
			r.access[token] = time.Now()
		}
	})
	var ids []string
	for range 50 {
		ids = append(ids, c.Begin("tools/call", e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}}))
	}
	for _, id := range ids {
		require.Nil(t, c.End(id).Error)
	}
	require.Equal(t, 1, r.count("refresh_token"))

	for _, p := range w.Programs {
		require.NotRegexp(t, `access-\d|refresh-\d|code-\d`, p.Stderr.String())
	}

	// The client is kept for the next login, and a logout revokes the tokens.
	out := w.Run("logout", "shop")
	require.Zero(t, out.Code, out.Stderr)
	r.set(func() { require.Len(t, r.revoked, 2) })
	e2e.Eventually(t, "the login expires", func() bool {
		return c.Request("tools/call", e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}}).Error != nil ||
			!c.Works(e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}})
	})
	r.succeeds(w, r.visit)
	require.Equal(t, 1, r.count("register"), "the registered client is known")
}

// A call in flight fails when the login expires, regardless of which side notices first.
func TestCallsUnderWayAreToldOfTheEndOfTheLogin(t *testing.T) {
	t.Parallel()
	r, w := newRealm(t), e2e.NewWorld(t)
	b := w.Remote("shop", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("buy")}, "on": e2e.Obj{"tools/call": e2e.Actions(e2e.Do("hang"))}})
	r.protect(w, b)
	r.succeeds(w, r.visit)
	c := w.Standalone()
	c.WaitListed("tools", "shop_buy", true)
	id := c.Begin("tools/call", e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}})
	b.WaitEvent("wait", "hang")
	require.Zero(t, w.Run("logout", "shop").Code)
	f := e2e.ParseFailure(t, c.End(id))
	require.Equal(t, "LOGIN_REQUIRED", f.Kind(), f.Message)
	require.Contains(t, f.Message, "needs login: the login is no longer valid: logged out")
}

func TestLoginIsForRemoteServersThatAreKnown(t *testing.T) {
	t.Parallel()
	_, w, _ := protected(t)
	require.Equal(t, e2e.ExitUsage, w.Run("login", "local").Code)
	require.Equal(t, e2e.ExitNotFound, w.Run("login", "nobody").Code)
}

var buy = e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}}

// loggedIn returns a world whose user is logged in to the server shop.
func loggedIn(t *testing.T) (*realm, *e2e.World) {
	t.Helper()
	r, w, _ := protected(t)
	w.Gateway["startup_wait"] = "20s"
	r.succeeds(w, r.visit)
	return r, w
}

// A client of a machine logs in by itself at the first call that needs it.
func TestMachinesLogInByThemselves(t *testing.T) {
	t.Parallel()
	r, w, b := protected(t)
	r.meta = func(o e2e.Obj) { o["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"} }
	b.Conf["oauth"] = e2e.Obj{"grant": "client_credentials", "client_id": "robot", "client_secret": "robot-secret", "issuer": r.server.URL}
	w.Gateway["startup_wait"] = "20s"
	c := w.Standalone()
	c.CallText("shop_buy", e2e.Obj{})
	require.Equal(t, 1, r.count("client_credentials"))
	require.Zero(t, r.count("register"))
	r.set(func() { clear(r.access) })
	c.CallText("shop_buy", e2e.Obj{})
	require.Equal(t, 2, r.count("client_credentials"))
}

// A call that needs more rights reports it, and the next login requests them with the
// others.
func TestMoreRightsAreAskedForAtTheNextLogin(t *testing.T) {
	t.Parallel()
	r, w := loggedIn(t)
	c := w.Standalone()
	c.CallText("shop_buy", e2e.Obj{})
	r.set(func() { r.scope, r.bare = "pay", true })
	require.Contains(t, c.Fails(buy).Message, "goblin login shop")
	r.set(func() { r.bare = false })
	require.Contains(t, c.Fails(buy).Message, "(scope pay)")
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

// A client that the authorization server has forgotten is registered again automatically.
// The redirect of a stranger changes nothing.
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

// Over SSH the browser is on another machine: its user pastes the final URL.
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

// If the authorization server supports it, a code entered on any device logs in. The
// client registered for that serves logins by redirect, too.
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

	for fault, says := range map[string]string{"access_denied": "denied", "expired_token": "expired before it was entered", "invalid_grant": "issued no token"} {
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

// Odd answers that are no reason to fail.
func TestLoginsGoOnWhereAnswersAreOddOnly(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	c := w.Standalone()
	for _, odd := range []func(e2e.Obj){func(o e2e.Obj) {
		delete(o, "expires_in")
		delete(o, "token_type")
		o["scope"] = ""
	}, func(o e2e.Obj) {
		o["expires_in"], o["token_type"] = "3600", "bearer"
		delete(o, "scope")
	}, func(o e2e.Obj) {
		o["expires_in"] = -5 // it expires at once, and is refreshed for each request
	}} {
		r.set(func() { r.answer = odd })
		r.succeeds(w, r.visit)
		c.WaitListed("tools", "shop_buy", true)
		c.CallText("shop_buy", e2e.Obj{})
		r.set(func() { clear(r.access) })
		c.CallText("shop_buy", e2e.Obj{})
	}
}

// Two simultaneous logins do not affect each other, unless they need the same port. The
// login of a user who gives up leaves no trace.
func TestTwoLoginsAtOnce(t *testing.T) {
	t.Parallel()
	r, w, b := protected(t)
	c := w.Standalone()
	begin := func() (*e2e.Program, string) {
		p := w.Start(nil, "login", "shop")
		e2e.Eventually(t, "the page", func() bool { return page.MatchString(p.Stderr.String()) })
		return p, page.FindString(p.Stderr.String())
	}
	one, pageOne := begin()
	two, pageTwo := begin()
	left, pageLeft := begin()
	left.Signal(syscall.SIGINT)
	require.Equal(t, e2e.ExitFailure, left.Ends(e2e.Patience))
	require.Contains(t, left.Stderr.String(), "interrupted")
	u, err := url.Parse(pageLeft)
	require.NoError(t, err)
	_, err = http.Get(u.Query().Get("redirect_uri"))
	require.Error(t, err, "the port is closed")

	r.visit(pageTwo)
	require.Equal(t, e2e.ExitOK, two.Ends(e2e.Patience), "%s", &two.Stderr)
	c.WaitListed("tools", "shop_buy", true)
	r.visit(pageOne)
	require.Equal(t, e2e.ExitOK, one.Ends(e2e.Patience), "%s", &one.Stderr)
	c.CallText("shop_buy", e2e.Obj{})

	w.Edit(func() { b.Conf["oauth"] = e2e.Obj{"redirect_port": e2e.FreePort(t)} })
	one, pageOne = begin()
	second := w.Run("login", "shop")
	require.Equal(t, e2e.ExitFailure, second.Code)
	require.Contains(t, second.Stderr, "another login may be running")
	r.visit(pageOne)
	require.Equal(t, e2e.ExitOK, one.Ends(e2e.Patience), "%s", &one.Stderr)
}

// A failing keyring is reported once, and the login is stored in a file.
func TestAKeyringThatFailsIsToldOnce(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	w.Env = append(w.Env, "GOBLIN_NO_KEYRING=", "DBUS_SESSION_BUS_ADDRESS=unix:path="+w.Dir+"/none")
	require.Contains(t, r.succeeds(w, r.visit), "the keyring refused it")
	require.NotContains(t, r.succeeds(w, r.visit), "keyring")
	c := w.Standalone()
	c.WaitListed("tools", "shop_buy", true)
	c.CallText("shop_buy", e2e.Obj{})
	require.Zero(t, w.Run("logout", "shop").Code)
}

// A slow authorization server fails a login after a while. It delays only clients that
// need it.
func TestSlowAuthorizationServersEndLogins(t *testing.T) {
	t.Parallel()
	for _, path := range []string{metadataPath, "/token"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			r, w, _ := protected(t)
			c := w.Standalone()
			r.odd = map[string]http.HandlerFunc{path: func(_ http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body) // or the server would not see that the client leaves
				<-req.Context().Done()
			}}
			code, told := r.logIn(w, "shop", r.visit)
			require.Equal(t, e2e.ExitTimeout, code, told)
			require.True(t, c.Works(e2e.Obj{"name": "local_t", "arguments": e2e.Obj{}}))
		})
	}
}

// A private key identifies the client, also for a code and for revocation, and is never
// sent.
func TestPrivateKeysStayAtHome(t *testing.T) {
	t.Parallel()
	r, w, b := protected(t)
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	port := e2e.FreePort(t)
	b.Conf["oauth"] = e2e.Obj{
		"client_id": "mine", "client_secret": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "redirect_port": port, "issuer": r.server.URL,
	}
	r.clients["mine"] = fmt.Sprintf("http://127.0.0.1:%d/callback", port)
	r.succeeds(w, r.visit)
	w.Succeeds("logout", "shop")
	require.Equal(t, 3, r.count("client_assertion"), "for the code and two revocations")
	require.Zero(t, r.count("client_secret"))
}

// A login without a server that needs one is refused.
func TestNoLoginWhereNoneIsAskedFor(t *testing.T) {
	t.Parallel()
	_, w, _ := protected(t)
	w.Remote("open", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	out := w.Run("login", "open")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stderr, "requires no login")
}
