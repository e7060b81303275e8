//go:build e2e

package logins

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const secret = "the-client-secret"

// confidential is like protected, with a client and its secret in the config, and no
// issuer.
func confidential(t *testing.T) (*realm, *e2e.World, *e2e.Backend) {
	t.Helper()
	r, w, b := protected(t)
	port := e2e.FreePort(t)
	b.Conf["oauth"] = e2e.Obj{"client_id": "mine", "client_secret": secret, "redirect_port": port}
	r.admits("mine", port)
	return r, w, b
}

// admits adds a client of the config to a realm.
func (r *realm) admits(id string, port int) {
	r.set(func() { r.clients[id] = fmt.Sprintf("http://127.0.0.1:%d/callback", port) })
}

// hostile returns another realm that the servers of r name from now on.
func (r *realm) hostile(b *e2e.Backend) *realm {
	evil := newRealm(r.t)
	evil.admits("mine", b.Conf["oauth"].(e2e.Obj)["redirect_port"].(int))
	r.set(func() { r.names = func(o e2e.Obj) { o["authorization_servers"] = []string{evil.server.URL} } })
	return evil
}

// gotNothing checks that no client authenticated and none requested a token.
func (r *realm) gotNothing() {
	r.t.Helper()
	r.set(func() {
		for _, what := range []string{"client_secret", "client_assertion", "authorization_code", "refresh_token", "client_credentials", "device"} {
			require.Zero(r.t, r.asked[what], what)
		}
	})
}

// logsInAt runs "goblin login shop" in a terminal, agrees to an issuer, and opens the page.
func (r *realm) logsInAt(w *e2e.World, p *e2e.Pane, opened func() (mark, page string), shows ...string) {
	r.t.Helper()
	p.Line("clear")
	p.Goblin("login shop")
	p.Shows(append(shows, "Send it the client secret")...)
	p.Types("y")
	p.Keys("Enter")
	p.Shows("log in to")
	_, page := opened()
	r.visit(page)
	p.Shows("logged in to", "ended with 0")
}

// oauth changes the server's oauth in the config, as editors do.
func oauth(w *e2e.World, b *e2e.Backend, change e2e.Obj) {
	w.Edit(func() {
		next := e2e.Obj{}
		for k, v := range b.Conf["oauth"].(e2e.Obj) {
			next[k] = v
		}
		for k, v := range change {
			if next[k] = v; v == nil {
				delete(next, k)
			}
		}
		b.Conf["oauth"] = next
	})
}

// refusesLogin checks that calls need a login for this reason, and that no token or
// secret is sent. This also holds after a restart and after the access token expired.
func (r *realm) refusesLogin(w *e2e.World, c *e2e.Client, why string) {
	r.t.Helper()
	e2e.Eventually(r.t, "the reload", func() bool {
		return strings.Contains(c.Request("tools/call", buy).Raw, "LOGIN_REQUIRED")
	})
	unsent := func() (none bool) {
		r.set(func() { none = !slices.ContainsFunc(r.seen, func(header string) bool { return header != "" }) })
		return none
	}
	// The reload stops the old connection, and a request of it may arrive later.
	e2e.Eventually(r.t, "a refusal without a token: "+why, func() bool {
		r.set(func() { r.seen = nil })
		return strings.Contains(c.Fails(buy).Message, why) && unsent()
	})
	var refreshes int
	r.set(func() { r.seen, refreshes = nil, r.asked["refresh_token"]; clear(r.access) })
	require.Contains(r.t, c.Fails(buy).Message, why)
	require.Contains(r.t, w.Standalone().Fails(buy).Message, why)
	require.True(r.t, unsent(), "no token is sent")
	r.set(func() {
		require.NotEmpty(r.t, r.seen)
		require.Equal(r.t, refreshes, r.asked["refresh_token"])
	})
	require.NotContains(r.t, w.Run("list", "servers", "--json").Stdout, `"renews"`)
}

// Without oauth.issuer the user decides which authorization server gets the secret.
func TestAClientSecretGoesOnlyWhereTheUserAgrees(t *testing.T) {
	t.Parallel()
	r, w, b := confidential(t)
	out := w.Run("login", "shop")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stderr, `oauth.client_secret not sent to `+r.server.URL)
	require.Contains(t, out.Stderr, `run "goblin login shop" in a terminal, or set oauth.issuer: `+r.server.URL)
	require.NotContains(t, out.Stderr, "/authorize", "no page is opened")
	r.gotNothing()

	opened, times := browser(w)
	p := w.Pane(140, 30)
	p.Goblin("login shop")
	p.Shows(r.server.URL, "Send it the client secret from the config? [y/N]")
	p.Keys("Enter")
	p.Shows("you declined", "ended with 1")
	require.Zero(t, times())
	r.gotNothing()

	r.logsInAt(w, p, opened, r.server.URL)
	require.Equal(t, 1, r.count("client_secret"))
	c := w.Standalone()
	c.CallText("shop_buy", e2e.Obj{})
	r.set(func() { clear(r.access) })
	c.CallText("shop_buy", e2e.Obj{})
	require.Equal(t, 2, r.count("client_secret"), "a refresh needs no request")
	r.succeeds(w, r.visit)

	// Another authorization server gets it only if the user agrees again.
	evil := r.hostile(b)
	out = w.Run("login", "shop")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stderr, `not sent to `+evil.server.URL)
	require.Contains(t, out.Stderr, `previously `+r.server.URL)
	p.Line("clear")
	p.Goblin("login shop")
	p.Shows(evil.server.URL, "previously it was "+r.server.URL)
	p.Types("n")
	p.Keys("Enter")
	p.Shows("you declined", "ended with 1")
	evil.gotNothing()
	r.set(func() { clear(r.access) })
	c.CallText("shop_buy", e2e.Obj{})
	evil.gotNothing()

	// If the agreed one is still named, it is taken without a question.
	r.set(func() {
		r.names = func(o e2e.Obj) { o["authorization_servers"] = []string{evil.server.URL, r.server.URL} }
	})
	r.succeeds(w, r.visit)
	evil.gotNothing()

	// A logout forgets what the user agreed to.
	r.set(func() { r.names = nil })
	w.Succeeds("logout", "shop")
	out = w.Run("login", "shop")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stderr, "no user approved it;")

	// It does not forget which authorization server the user knows.
	r.set(func() {
		r.names = func(o e2e.Obj) { o["authorization_servers"] = []string{evil.server.URL} }
	})
	out = w.Run("login", "shop")
	require.Contains(t, out.Stderr, "no user approved it (previously "+r.server.URL+");")
	evil.gotNothing()
}

// A login by device sends the secret before the user sees a page.
func TestALoginByDeviceAsksBeforeTheSecretIsSent(t *testing.T) {
	t.Parallel()
	r, w, _ := confidential(t)
	out := w.Run("login", "shop", "--device")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stderr, "not sent to "+r.server.URL)
	r.gotNothing()
}

// The user who is asked to open a page reads where the secret goes, and agrees by that.
func TestAClientIsAskedWhereTheSecretGoes(t *testing.T) {
	t.Parallel()
	r, w, _ := confidential(t)
	c := w.Pipe("stdio", "--standalone")
	c.Caps = opens
	c.Init()
	id := c.Begin("tools/call", buy)
	ask := c.WaitAsks(1)
	require.Contains(t, e2e.Str(ask.Params, "message"), "Your client secret will be sent to its authorization server, "+r.server.URL+".")
	page := r.invited(ask.Params)
	c.Answer(ask, declines)
	require.Contains(t, e2e.ParseFailure(t, c.End(id)).Message, "declined")
	r.closed(page)
	r.gotNothing()

	ids := []string{c.Begin("tools/call", buy), c.Begin("tools/call", buy)}
	ask = c.WaitAsks(2)
	c.Answer(ask, agrees)
	r.visit(r.invited(ask.Params))
	for _, id := range ids {
		m := c.End(id)
		require.False(t, m.Failed(), m.Raw)
	}
	require.Equal(t, 1, r.count("client_secret"))
}

// The UI asks as the command does.
func TestTheScreenAsksWhereTheSecretGoes(t *testing.T) {
	t.Parallel()
	r, w, _ := confidential(t)
	opened, times := browser(w)
	w.Bridged()
	p := onServers(w)
	p.Types("l")
	p.Shows("Send the client secret of shop?", r.server.URL)
	p.Keys("Escape")
	p.Shows("you declined")
	require.Zero(t, times())
	r.gotNothing()
	p.Types("l")
	p.Shows("Send the client secret of shop?")
	p.Types("y")
	p.Shows("waiting for the browser")
	_, page := opened()
	r.visit(page)
	p.Shows("shop: logged in", "2 up")
	require.Equal(t, 1, r.count("client_secret"))
}

// A grant without a user needs the issuer in the config; goblin validate names the line.
func TestAGrantWithoutAUserRequiresTheIssuer(t *testing.T) {
	t.Parallel()
	r, w, b := protected(t)
	b.Conf["oauth"] = e2e.Obj{"grant": "client_credentials", "client_id": "robot", "client_secret": "robot-secret", "redirect_port": 1}
	evil := r.hostile(b)
	out := w.Run("validate")
	require.Equal(t, e2e.ExitConfig, out.Code)
	require.Regexp(t, `goblin\.yaml:\d+: oauth\.grant: client_credentials of server "shop" requires oauth\.issuer`, out.Stderr)
	c := w.Standalone()
	require.Contains(t, w.Run("list", "servers").Stdout, "requires oauth.issuer")
	require.Contains(t, c.Request("tools/call", buy).Raw, "has failed")
	require.True(t, c.Works(e2e.Obj{"name": "local_t", "arguments": e2e.Obj{}}), "other servers work")
	require.NotZero(t, w.Run("login", "shop").Code)

	w.Gateway["startup_wait"] = "20s"
	oauth(w, b, e2e.Obj{"issuer": r.server.URL + "/"}) // a slash at the end is no difference
	require.Contains(t, w.Run("login", "shop").Stderr, "the server's authorization server is "+evil.server.URL)
	evil.gotNothing()
	r.set(func() { r.names = nil })
	require.Zero(t, w.Run("validate").Code)
	w.Standalone().CallText("shop_buy", e2e.Obj{})
	require.Equal(t, 1, r.count("client_credentials"))
	evil.gotNothing()
}

func TestValidateWarnsOfAnUnboundSecret(t *testing.T) {
	t.Parallel()
	r, w, b := confidential(t)
	out := w.Run("validate")
	require.Zero(t, out.Code, out.Stderr)
	require.Regexp(t, `goblin\.yaml:\d+: warning: oauth\.client_secret of server "shop" is not bound to an authorization server`, out.Stderr)
	oauth(w, b, e2e.Obj{"issuer": r.server.URL})
	require.Empty(t, w.Run("validate").Stderr)
}

// A stored login that does not fit the config is no login, at once and after a restart.
func TestAnEditedConfigVoidsTheLogin(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change e2e.Obj
		why    string
	}{
		"issuer":              {e2e.Obj{"issuer": "https://other.example"}, "but oauth.issuer is https://other.example"},
		"issuer and secret":   {e2e.Obj{"issuer": "https://other.example", "client_secret": "new"}, "but oauth.issuer is https://other.example"},
		"client":              {e2e.Obj{"client_id": "other"}, "another client"},
		"no client":           {e2e.Obj{"client_id": nil, "client_secret": nil}, "another client"},
		"no secret":           {e2e.Obj{"client_secret": nil}, "oauth.client_secret was added or removed"},
		"client by its URL":   {e2e.Obj{"client_id": nil, "client_secret": nil, "client_metadata_url": "https://g.example/c.json"}, "another client"},
		"secret, not issuer":  {e2e.Obj{"issuer": nil, "client_secret": "new"}, "oauth.client_secret was changed"},
		"a path of the issue": {e2e.Obj{"issuer": "SELF/tenant"}, "/tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, b := confidential(t)
			b.Conf["oauth"].(e2e.Obj)["issuer"] = r.server.URL
			if s, _ := row.change["issuer"].(string); strings.HasPrefix(s, "SELF") {
				row.change["issuer"] = strings.Replace(s, "SELF", r.server.URL, 1)
			}
			r.succeeds(w, r.visit)
			c := w.Standalone()
			c.CallText("shop_buy", e2e.Obj{})
			oauth(w, b, row.change)
			r.refusesLogin(w, c, row.why)
			require.Equal(t, 1, r.count("client_secret"))
		})
	}
}

// Other spellings of the same values, and a rotated secret, keep the login.
func TestOtherEditsKeepTheLogin(t *testing.T) {
	t.Parallel()
	r, w, b := confidential(t)
	b.Conf["oauth"].(e2e.Obj)["issuer"] = r.server.URL
	r.succeeds(w, r.visit)
	w.Gateway["startup_wait"] = "20s"
	w.Env = append(w.Env, "THE_SECRET="+secret)
	for _, change := range []e2e.Obj{
		{"issuer": r.server.URL + "/"},
		{"issuer": nil},
		{"client_secret": "${THE_SECRET}"},
		{"client_secret": "${cmd:echo " + secret + "}"},
		{"issuer": r.server.URL, "client_secret": "rotated-secret"},
	} {
		oauth(w, b, change)
		c := w.Standalone()
		c.CallText("shop_buy", e2e.Obj{})
		r.set(func() { clear(r.access) })
		c.CallText("shop_buy", e2e.Obj{})
		// It would renew the login with the old config if it reads the next one late.
		c.Close()
		c.Wait("the end of the client", func() bool { return c.Ended })
	}
	r.set(func() { require.Contains(t, r.secrets, "rotated-secret") })
	require.Equal(t, 1, r.count("authorization_code"))
}

// A reference may have another value: without oauth.issuer, that is not sent.
func TestANewValueOfAReferredSecretIsNotSent(t *testing.T) {
	t.Parallel()
	r, w, b := confidential(t)
	file := filepath.Join(w.Dir, "secret")
	require.NoError(t, os.WriteFile(file, []byte(secret), 0o600))
	conf := b.Conf["oauth"].(e2e.Obj)
	conf["client_secret"], conf["issuer"] = "${file:"+file+"}", r.server.URL
	r.succeeds(w, r.visit)
	oauth(w, b, e2e.Obj{"issuer": nil})
	w.Gateway["startup_wait"] = "20s"
	c := w.Standalone()
	c.CallText("shop_buy", e2e.Obj{})
	require.NoError(t, os.WriteFile(file, []byte("another-secret"), 0o600))
	r.set(func() { clear(r.access) })
	require.Contains(t, c.Fails(buy).Message, "oauth.client_secret was changed")
	r.set(func() { require.NotContains(t, r.secrets, "another-secret") })
	require.Zero(t, r.count("refresh_token"))
}

// A grant without a user logs in again at the edited issuer. The old one gets nothing.
func TestAGrantWithoutAUserFollowsTheIssuer(t *testing.T) {
	t.Parallel()
	r, w, b := protected(t)
	w.Gateway["startup_wait"] = "20s"
	b.Conf["oauth"] = e2e.Obj{"grant": "client_credentials", "client_id": "robot", "client_secret": "robot-secret", "issuer": r.server.URL}
	c := w.Standalone()
	c.CallText("shop_buy", e2e.Obj{})
	oauth(w, b, e2e.Obj{"issuer": "https://other.example", "client_secret": "new-secret"})
	e2e.Eventually(t, "the reload", func() bool { return strings.Contains(c.Request("tools/call", buy).Raw, "other.example") })
	r.set(func() { clear(r.access) })
	require.Contains(t, c.Fails(buy).Message, "but oauth.issuer is https://other.example")
	r.set(func() { require.NotContains(t, r.secrets, "new-secret") })
	require.Equal(t, 1, r.count("client_credentials"))
}

// stored edits the only stored login.
func stored(t *testing.T, w *e2e.World, change func(e2e.Obj)) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(w.Dir, "home", ".local", "state", "goblin", "logins", "*.json"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	text, err := os.ReadFile(found[0])
	require.NoError(t, err)
	var o e2e.Obj
	require.NoError(t, json.Unmarshal(text, &o))
	change(o)
	require.NoError(t, os.WriteFile(found[0], e2e.Marshal(o), 0o600))
}

// Logins of older versions have no agreement. Those with a secret need a new login.
func TestLoginsOfOlderVersions(t *testing.T) {
	t.Parallel()
	older := func(o e2e.Obj) {
		delete(o, "agreed")
		delete(o, "machine")
	}
	t.Run("secret", func(t *testing.T) {
		t.Parallel()
		r, w, b := confidential(t)
		b.Conf["oauth"].(e2e.Obj)["issuer"] = r.server.URL
		r.succeeds(w, r.visit)
		stored(t, w, older)
		c := w.Standalone()
		c.CallText("shop_buy", e2e.Obj{})
		oauth(w, b, e2e.Obj{"issuer": nil})
		r.refusesLogin(w, c, "no user approved sending oauth.client_secret to "+r.server.URL)
		w.Run("logout", "shop")
		require.Equal(t, 1, r.count("client_secret"))
	})
	t.Run("no secret", func(t *testing.T) {
		t.Parallel()
		r, w := loggedIn(t)
		stored(t, w, older)
		r.set(func() { clear(r.access) })
		w.Standalone().CallText("shop_buy", e2e.Obj{})
		require.Equal(t, 1, r.count("refresh_token"))
	})
	t.Run("another resource", func(t *testing.T) {
		t.Parallel()
		r, w := loggedIn(t)
		stored(t, w, func(o e2e.Obj) { o["resource"] = "https://other.example/mcp" })
		require.Contains(t, w.Standalone().Fails(buy).Message, "is for another url")
		require.Zero(t, r.count("refresh_token"))
	})
}

// Behind another url is another server, which gets no token, also for the same account.
func TestAnotherURLGetsNoToken(t *testing.T) {
	t.Parallel()
	for _, account := range []string{"", "work"} {
		r, w, b := protected(t)
		b.Conf["oauth"] = e2e.Obj{"account": account}
		r.succeeds(w, r.visit)
		c := w.Standalone()
		c.CallText("shop_buy", e2e.Obj{})
		other := newRealm(t)
		w.Edit(func() { other.protect(w, b) })
		e2e.Eventually(t, "the reload", func() bool {
			return strings.Contains(c.Request("tools/call", buy).Raw, "LOGIN_REQUIRED")
		})
		require.Contains(t, w.Standalone().Fails(buy).Message, "not logged in")
		other.set(func() {
			require.NotEmpty(t, other.seen)
			for _, header := range other.seen {
				require.Empty(t, header)
			}
		})
	}
}

// A server cannot hide the host of an authorization server from the user.
func TestIssuersThatHideTheirHostAreRefused(t *testing.T) {
	t.Parallel()
	r, w, b := confidential(t)
	evil := r.hostile(b)
	for _, issuer := range []string{
		strings.Replace(evil.server.URL, "http://", "http://login.example.com@", 1), evil.server.URL + "/?a=https://login.example.com",
		evil.server.URL + "/#login.example.com", "https://lоgin.example.com", // a Cyrillic letter
	} {
		r.set(func() { r.names = func(o e2e.Obj) { o["authorization_servers"] = []string{issuer} } })
		out := w.Run("login", "shop")
		require.Equal(t, e2e.ExitFailure, out.Code)
		require.Contains(t, out.Stderr, "is not a plain URL", issuer)
	}
	evil.gotNothing()
}
