//go:build interop && unix

package interop

import (
	"bufio"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// guarded are MCP servers of the TypeScript SDK whose users log in at an oidc-provider.
type guarded struct{ base string }

func newGuarded(t *testing.T, names []string) *guarded {
	t.Helper()
	dir := npm(t)
	script, err := filepath.Abs(filepath.Join("testdata", "authorization.mjs"))
	require.NoError(t, err)
	cmd := exec.Command(nodeBinary(dir), append([]string{script, dir}, names...)...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var errs e2e.Buffer
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close() // it exits at the end of input
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the authorization server said:\n%s", e2e.Tail(errs.String(), 6000))
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", &errs)
	return &guarded{base: strings.TrimSpace(line)}
}

// resource is one of the servers, for its test and its user.
type resource struct {
	*guarded
	t       *testing.T
	name    string
	browser *http.Client // with the cookies of its user
}

// counts are the authorization server's counters for a server.
type counts struct{ Refreshes, Refused, Revocations, Usable, Held, Clients int }

func (r *resource) counts() (c counts) {
	r.t.Helper()
	resp, err := http.Get(r.base + "/control/" + r.name)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	require.NoError(r.t, json.NewDecoder(resp.Body).Decode(&c))
	return c
}

func (r *resource) do(action string) {
	r.t.Helper()
	resp, err := http.Post(r.base+"/control/"+r.name+"/"+action, "", nil)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	require.Equal(r.t, http.StatusOK, resp.StatusCode)
}

// world returns a config with the server as s, beside one that needs no login.
func (r *resource) world(oauth ...e2e.Obj) *e2e.World {
	w := e2e.NewWorld(r.t)
	w.Env = append(w.Env, "BROWSER=true")
	w.Gateway["startup_wait"] = "1s" // it lists only after the login
	b, _ := w.Fake("s", e2e.Obj{})
	b.Conf = e2e.Obj{"url": r.base + "/mcp/" + r.name}
	if len(oauth) > 0 {
		b.Conf["oauth"] = oauth[0]
	}
	w.Backend("fine", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	return w
}

var (
	loginPage = regexp.MustCompile(`(?m)^https?://\S+`)
	formTag   = regexp.MustCompile(`<form[^>]* action="([^"]*)"`)
	inputTag  = regexp.MustCompile(`<input[^>]*>`)
	attribute = regexp.MustCompile(`(name|value)="([^"]*)"`)
)

// browse opens a page and fills in every form as the given user. It returns the last
// page.
func (r *resource) browse(page, user string) string {
	r.t.Helper()
	if r.browser == nil {
		jar, err := cookiejar.New(nil)
		require.NoError(r.t, err)
		r.browser = &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	}
	resp, err := r.browser.Get(page)
	for range 10 {
		require.NoError(r.t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(r.t, err)
		require.NoError(r.t, resp.Body.Close())
		form := formTag.FindSubmatch(text)
		if form == nil {
			return string(text)
		}
		fields := url.Values{}
		for _, tag := range inputTag.FindAll(text, -1) {
			is := map[string]string{}
			for _, a := range attribute.FindAllSubmatch(tag, -1) {
				is[string(a[1])] = html.UnescapeString(string(a[2]))
			}
			fields.Set(is["name"], is["value"])
		}
		if fields.Has("login") {
			fields.Set("login", user)
			fields.Set("password", "any")
		}
		at, err := resp.Request.URL.Parse(html.UnescapeString(string(form[1])))
		require.NoError(r.t, err)
		resp, err = r.browser.PostForm(at.String(), fields)
		require.NoError(r.t, err)
	}
	r.t.Fatal("endless forms")
	return ""
}

// logIn runs "goblin login s" for a user, and returns the login page's URL.
func (r *resource) logIn(w *e2e.World, user string, flags ...string) (page string) {
	r.t.Helper()
	p := w.Start(nil, append([]string{"login", "s"}, flags...)...)
	e2e.Eventually(r.t, "the page", func() bool {
		select {
		case <-p.Exited:
			return true
		default:
			return loginPage.MatchString(p.Stderr.String())
		}
	})
	page = loginPage.FindString(p.Stderr.String())
	require.NotEmpty(r.t, page, p.Stderr.String())
	end := r.browse(page, user)
	require.Equal(r.t, e2e.ExitOK, p.Ends(e2e.Patience), "%s\n%s", &p.Stderr, end)
	return page
}

var whoami, pay = e2e.Obj{"name": "s_whoami", "arguments": e2e.Obj{}}, e2e.Obj{"name": "s_pay", "arguments": e2e.Obj{}}

// fiveSeconds waits until the first token of a login has expired.
func (r *resource) fiveSeconds() {
	r.t.Helper()
	e2e.Eventually(r.t, "the token expires", func() bool { return r.counts().Usable == 1 }) // the refresh token
}

// client returns a client that sees the server's tools.
func (r *resource) client(w *e2e.World) *e2e.Client {
	r.t.Helper()
	c := w.Standalone()
	c.WaitListed("tools", "s_whoami", true)
	return c
}

// needsLogin checks that a call requires a login, while other servers work.
func needsLogin(t *testing.T, c *e2e.Client, call e2e.Obj) {
	t.Helper()
	f := c.Fails(call)
	require.Equal(t, "LOGIN_REQUIRED", f.Kind(), f.Message)
	require.Equal(t, "goblin login s", e2e.Str(f.Data, "command"))
	require.True(t, c.Works(e2e.Obj{"name": "fine_t", "arguments": e2e.Obj{}}))
}

// Logins at an authorization server and MCP servers of other projects. Tokens last five
// seconds, refresh tokens rotate, and each request must name a resource.
func TestInteropLoginsBeforeServersOfOthers(t *testing.T) {
	t.Parallel()
	rows := map[string]func(*testing.T, *resource){
		"first":    loginWhileTheDaemonRuns,
		"middle":   tokensThatEndAmongManyCalls,
		"asleep":   tokensThatEndWhileAsleep,
		"restart":  daemonsThatStartAgain,
		"revoked":  grantsThatAreTakenBack,
		"accounts": accountsOfTwoConfigs,
		"rights":   moreRights,
		"logout":   logouts,
		"device":   loginByDevice,
	}
	var names []string
	for name := range rows {
		names = append(names, name)
	}
	all := newGuarded(t, names)
	for name, test := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, &resource{guarded: all, t: t, name: name})
		})
	}
}

func loginWhileTheDaemonRuns(t *testing.T, r *resource) {
	w := r.world()
	c := w.Bridged()
	w.AllowDaemon = true
	needsLogin(t, c, whoami)
	r.logIn(w, "alice")
	c.WaitListed("tools", "s_whoami", true)
	require.Equal(t, "alice", c.CallText("s_whoami", e2e.Obj{}))
	r.logIn(w, "alice") // again: the registered client is known
	require.Equal(t, 1, r.counts().Clients)
}

func tokensThatEndAmongManyCalls(t *testing.T, r *resource) {
	w := r.world()
	r.logIn(w, "alice")
	c := r.client(w)
	var ids []string
	hold := func() {
		for range 25 {
			ids = append(ids, c.Begin("tools/call", e2e.Obj{"name": "s_hold", "arguments": e2e.Obj{}}))
		}
		e2e.Eventually(t, "running calls", func() bool { return r.counts().Held == len(ids) })
	}
	hold()
	r.fiveSeconds()
	hold()
	r.do("release")
	for _, id := range ids {
		require.Equal(t, "released", e2e.Str(c.End(id).Result, "content", 0, "text"))
	}
	require.Equal(t, 1, r.counts().Refreshes)
	require.Zero(t, r.counts().Refused)
}

func tokensThatEndWhileAsleep(t *testing.T, r *resource) {
	w := r.world()
	r.logIn(w, "alice")
	c := r.client(w)
	program := w.Programs[len(w.Programs)-1]
	program.Signal(syscall.SIGSTOP)
	r.fiveSeconds()
	program.Signal(syscall.SIGCONT)
	require.Equal(t, "alice", c.CallText("s_whoami", e2e.Obj{}))
	require.Equal(t, 1, r.counts().Refreshes)
}

func daemonsThatStartAgain(t *testing.T, r *resource) {
	w := r.world()
	r.logIn(w, "alice")
	w.AllowDaemon = true
	for round := range 3 {
		c := w.Bridged()
		c.WaitListed("tools", "s_whoami", true)
		require.Equal(t, "alice", c.CallText("s_whoami", e2e.Obj{}))
		c.Close() // or it would start the next daemon
		w.Succeeds("stop")
		if round == 0 {
			r.fiveSeconds()
		}
	}
	require.Equal(t, 1, r.counts().Refreshes, "the token of the second daemon is the third's")
}

func grantsThatAreTakenBack(t *testing.T, r *resource) {
	w := r.world()
	r.logIn(w, "alice")
	c := r.client(w)
	require.True(t, c.Works(whoami))
	r.do("revoke")
	for range 3 {
		needsLogin(t, c, whoami)
	}
	require.Equal(t, 1, r.counts().Refused, "it is not asked repeatedly")
	require.Contains(t, w.Succeeds("list", "servers"), "needs login")
	r.logIn(w, "alice")
	c.WaitListed("tools", "s_whoami", true)
	require.True(t, c.Works(whoami))
}

func accountsOfTwoConfigs(t *testing.T, r *resource) {
	one, two := r.world(), r.world()
	two.Env = append(two.Env, "HOME="+filepath.Join(one.Dir, "home")) // of one user of the machine
	r.logIn(one, "alice")
	c := two.Standalone()
	needsLogin(t, c, whoami)
	r.browser = nil // another one
	r.logIn(two, "bob")
	c.WaitListed("tools", "s_whoami", true)
	require.Equal(t, "bob", c.CallText("s_whoami", e2e.Obj{}))
	require.Equal(t, "alice", r.client(one).CallText("s_whoami", e2e.Obj{}))

	work := e2e.Obj{"account": "work"}
	three, four := r.world(work), r.world(work)
	three.Env = append(three.Env, "HOME="+filepath.Join(one.Dir, "home"))
	four.Env = append(four.Env, "HOME="+filepath.Join(one.Dir, "home"))
	r.browser = nil
	r.logIn(three, "carol")
	require.Equal(t, "carol", r.client(four).CallText("s_whoami", e2e.Obj{}), "an account is shared")
	require.Equal(t, "bob", c.CallText("s_whoami", e2e.Obj{}))
}

func moreRights(t *testing.T, r *resource) {
	w := r.world()
	r.logIn(w, "alice")
	c := r.client(w)
	require.Equal(t, "alice", c.CallText("s_whoami", e2e.Obj{}))
	needsLogin(t, c, pay)
	require.True(t, c.Works(whoami), "allowed calls still work")
	page, err := url.Parse(r.logIn(w, "alice"))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"use", "pay", "offline_access"}, strings.Fields(page.Query().Get("scope")))
	e2e.Eventually(t, "the rights", func() bool { return c.Works(pay) })
}

func logouts(t *testing.T, r *resource) {
	w := r.world()
	r.logIn(w, "alice")
	c := r.client(w)
	require.True(t, c.Works(whoami))
	w.Succeeds("logout", "s")
	require.Equal(t, 2, r.counts().Revocations, "of both tokens")
	require.Zero(t, r.counts().Usable)
	needsLogin(t, c, whoami)
}

func loginByDevice(t *testing.T, r *resource) {
	w := r.world()
	page := r.logIn(w, "alice", "--device")
	require.Contains(t, page, "user_code=")
	require.Equal(t, "alice", r.client(w).CallText("s_whoami", e2e.Obj{}))
	r.logIn(w, "alice")
	require.Equal(t, 1, r.counts().Clients, "it logs in by redirect, too")
}
