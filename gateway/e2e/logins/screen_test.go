//go:build e2e

package logins

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// browser sets a script as the user's browser. opened waits for its start and returns a
// variable of its environment and the page. It opens nothing.
func browser(w *e2e.World) (opened func() (mark, page string), times func() int) {
	file, script := filepath.Join(w.Dir, "opened"), filepath.Join(w.Dir, "browser")
	e2e.WriteProgram(w.T, script, "#!/bin/sh\necho \"$MARK $1\" >>'"+file+"'\n")
	w.Env = append(w.Env, "BROWSER="+script, "MARK=host")
	lines := func() []string {
		text, _ := os.ReadFile(file)
		return strings.FieldsFunc(string(text), func(c rune) bool { return c == '\n' })
	}
	return func() (mark, page string) {
		e2e.Eventually(w.T, "the browser", func() bool { return len(lines()) > 0 })
		mark, page, _ = strings.Cut(lines()[len(lines())-1], " ")
		return mark, page
	}, func() int { return len(lines()) }
}

// onServers opens the UI with the cursor on the server shop.
func onServers(w *e2e.World) *e2e.Pane {
	p := w.Pane(110, 30)
	p.Line("export MARK=terminal")
	p.Goblin("")
	p.Shows("1 up")
	p.Types("1")
	p.Types("/shop")
	p.Keys("Enter")
	p.Shows("l log in", "l logs in: not logged in")
	return p
}

// copied returns the text that y copies.
func copied(p *e2e.Pane) (text string) {
	p.TakeCopies()
	p.Types("y")
	p.Shows("Copied the URL")
	return p.Copied("http")
}

// The UI of a daemon in another process uses the browser of its own terminal. The daemon
// then uses that login.
func TestTheScreenLogsInByTheBrowserOfItsTerminal(t *testing.T) {
	t.Parallel()
	r, w, b := protected(t)
	b.Conf["oauth"] = e2e.Obj{"redirect_port": e2e.FreePort(t)}
	opened, times := browser(w)
	r.answer = func(o e2e.Obj) { o["id_token"] = idToken(e2e.Obj{"preferred_username": "ada"}) }
	c := w.Bridged()
	daemon := w.Status().PID
	p := onServers(w)

	// Esc cancels: the browser would get no answer.
	p.Types("l")
	p.Shows("Log in to shop", "waiting for the browser", "/authorize?")
	mark, page := opened()
	require.Equal(t, "terminal", mark)
	redirect := func(page string) string {
		u, err := url.Parse(page)
		require.NoError(t, err)
		back, err := url.Parse(u.Query().Get("redirect_uri"))
		require.NoError(t, err)
		return back.Host
	}
	require.Equal(t, page, copied(p))
	p.Keys("Escape")
	p.Shows("shop: login cancelled")
	p.Hides("Log in to shop")
	e2e.Eventually(t, "the end of the listener", func() bool {
		conn, err := net.Dial("tcp", redirect(page))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	require.Equal(t, 1, times())

	// Twice l is one login.
	p.Types("ll")
	p.Shows("Log in to shop", "waiting for the browser")
	e2e.Eventually(t, "the browser", func() bool { return times() == 2 })
	_, page = opened()
	r.visit(page)
	p.Shows("shop: logged in as ada", "2 up")
	p.Hides("Log in to shop")
	c.WaitListed("tools", "shop_buy", true)
	c.CallText("shop_buy", e2e.Obj{})
	require.Equal(t, 2, times())
	require.Equal(t, daemon, w.Status().PID, "nothing is restarted")
	require.Equal(t, e2e.Obj{"user": "ada", "renews": true}, login(w))

	p.Types(":logout shop")
	p.Keys("Enter")
	p.Shows("Log out of shop?")
	p.Types("y")
	p.Shows("shop: logged out", "needs login")
}

// Over SSH no browser is opened; the user pastes the URL from another machine's browser.
// The UI is the daemon itself.
func TestTheScreenTakesAPastedURLOverSSH(t *testing.T) {
	t.Parallel()
	_, w, _ := protected(t)
	_, times := browser(w)
	w.Env = append(w.Env, "BROWSER=", "DISPLAY=", "WAYLAND_DISPLAY=", "SSH_CONNECTION=10.0.0.1 1 10.0.0.2 22")
	p := onServers(w)
	p.Types("l")
	p.Shows("Could not open a browser", "SSH", "/authorize?", "to paste its URL.")
	page := copied(p)
	elsewhere := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := elsewhere.Get(page)
	require.NoError(t, err)
	_ = resp.Body.Close()
	p.Types("p")
	p.Shows("URL that the browser ended up at")
	p.Types(resp.Header.Get("Location"))
	p.Keys("Enter")
	p.Shows("shop: logged in", "2 up")
	require.Zero(t, times())
	p.Types("q")
	p.Restored(e2e.ExitOK)
}

// A denied login is reported, and the next one works.
func TestTheScreenSaysWhyALoginFailed(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	opened, times := browser(w)
	p := onServers(w)
	r.set(func() { r.status = http.StatusServiceUnavailable })
	p.Types("l")
	_, page := opened()
	resp, err := http.Get(page)
	require.NoError(t, err)
	_ = resp.Body.Close()
	p.Shows("! shop: the authorization server", "503")
	r.set(func() { r.status = 0 })
	p.Types(":login shop")
	p.Keys("Enter")
	e2e.Eventually(t, "the browser", func() bool { return times() == 2 })
	_, page = opened()
	r.visit(page)
	p.Shows("shop: logged in", "2 up")
}
