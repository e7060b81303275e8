//go:build e2e

package logins

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Over SSH no browser is opened; the URL that another machine's ends at is pasted. The
// screen is the daemon itself.
func TestTheScreenTakesAPastedURLOverSSH(t *testing.T) {
	t.Parallel()
	_, w, _ := protected(t)
	_, times := browser(w)
	w.Env = append(w.Env, "BROWSER=", "DISPLAY=", "WAYLAND_DISPLAY=", "SSH_CONNECTION=10.0.0.1 1 10.0.0.2 22")
	p := onServers(w)
	p.Types("l")
	p.Shows("No browser is opened", "SSH", "/authorize?", "takes that.")
	page := copied(p)
	elsewhere := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := elsewhere.Get(page)
	require.NoError(t, err)
	_ = resp.Body.Close()
	p.Types("p")
	p.Shows("The URL that the browser ended at")
	p.Types(resp.Header.Get("Location"))
	p.Keys("Enter")
	p.Shows("shop: logged in", "2 up")
	require.Zero(t, times())
	p.Types("q")
	p.Restored(e2e.ExitOK)
}

// A login that is denied says so, and the next one works.
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
