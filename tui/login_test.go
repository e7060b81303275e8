package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// startLogin presses l at a server that needs a login and shows the page of the login.
// The login continues until finish is called.
func (r *testUI) startLogin(page string) (finish func()) {
	r.t.Helper()
	r.setState("github", registry.ServerState{State: registry.StateNeedsLogin, Transport: "http", CanLogIn: true, LastError: "needs login: nobody is logged in"})
	r.keys("1 / g i t enter")
	cmds := r.app.Update(keyOf("l"))().(tea.BatchMsg)
	require.Len(r.t, cmds, 2)
	r.screen() // before the page is known
	shown, ended := make(chan struct{}), make(chan tea.Msg, 1)
	r.backend.login = func(show func(string)) { show(page); close(shown); <-r.backend.holds }
	r.backend.holds = make(chan struct{})
	go func() { ended <- cmds[0]() }()
	<-shown
	r.app.Update(cmds[1]()) // its result waits for another page
	return func() { r.send(<-ended, 0) }
}

const loginPage = "https://login.example.com/authorize?client_id=goblin&code_challenge=vZ0x8uW1mJ3dKq7&code_challenge_method=S256&redirect_uri=http%3A%2F%2F127.0.0.1%3A41234%2Fcallback&resource=https%3A%2F%2Fmcp.example.com%2Fmcp&response_type=code&state=ABCDEFGH\x1b[2J"

func TestGoldenScreensOfALogin(t *testing.T) {
	t.Parallel()
	for name, noBrowser := range map[string]error{"login": nil, "login-ssh": errors.New("this is an SSH session without a display")} {
		var frames string
		for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}} {
			r := newExampleUI(t, size.w, size.h, plainEnv)
			r.term.noBrowser = noBrowser
			finish := r.startLogin(loginPage)
			r.clock.advance(12 * time.Second)
			frames += r.goldenSection()
			r.backend.fails = errors.New("the login was denied")
			close(r.backend.holds)
			finish()
			require.Contains(t, r.screen(), "! github: the login was denied")
			require.Empty(t, r.app.Dialogs)
		}
		golden(t, name, frames)
	}
}

func TestALoginOpensTheBrowserOfTheTerminalAndTellsWhoCame(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	finish := r.startLogin(loginPage)
	require.Equal(t, []string{"browser " + loginPage}, r.term.opened)
	require.Contains(t, r.line("esc cancel"), "y copy   p paste")
	r.keys("y")
	require.Contains(t, r.screen(), "Copied the URL")
	require.Contains(t, r.term.written.String(), "\x1b]52;")
	r.keys("l l") // only one login at a time
	require.Len(t, r.app.Dialogs, 1)
	r.keys("p").typeText("http://127.0.0.1:41234/callback?code=x").keys("enter")
	require.Len(t, r.app.Dialogs, 1)
	close(r.backend.holds)
	finish()
	require.Empty(t, r.app.Dialogs)
	require.Contains(t, r.screen(), "github: logged in as ada")
	require.Equal(t, []string{"login github"}, r.backend.acts)
}

func TestALoginAsksWhereTheClientSecretGoes(t *testing.T) {
	t.Parallel()
	for key, want := range map[string][]string{"y": {"login github"}, "n": {"declined https://b.example/realm"}, "esc": {"declined https://b.example/realm"}} {
		r := newExampleUI(t, 80, 24, plainEnv)
		r.setState("github", registry.ServerState{State: registry.StateNeedsLogin, Transport: "http", CanLogIn: true, LastError: "needs login: nobody is logged in"})
		r.backend.issuer, r.backend.issuerBefore = "https://b.example/realm", "https://a.example"
		r.keys("1 / g i t enter")
		cmds := r.app.Update(keyOf("l"))().(tea.BatchMsg)
		require.Len(t, cmds, 2)
		ended := make(chan tea.Msg, 1)
		go func() { ended <- cmds[0]() }()
		r.app.Update(cmds[1]()) // the confirmation
		require.Contains(t, r.screen(), "Send the client secret of github?")
		require.Contains(t, r.screen(), "https://b.example/realm")
		require.Contains(t, r.screen(), "previously https://a.example")
		require.Empty(t, r.backend.acts, "nothing happens before the answer")
		r.keys(key)
		r.send(<-ended, 0)
		require.Equal(t, want, r.backend.acts, key)
		require.Empty(t, r.app.Dialogs)
	}
}

func TestEscCancelsALogin(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv)
	finish := r.startLogin(loginPage)
	r.keys("esc")
	require.Contains(t, r.screen(), "github: login cancelled")
	close(r.backend.holds)
	finish()
	require.Contains(t, r.screen(), "github: login cancelled", "its end is not reported")
}

// The user may log in with the command meanwhile.
func TestALoginThatWasMadeElsewhereEndsTheDialog(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv)
	finish := r.startLogin(loginPage)
	r.keys("p")
	r.setState("github", registry.ServerState{State: registry.StateReady, Transport: "http", CanLogIn: true, Login: &registry.Account{User: "eve"}})
	require.Empty(t, r.app.Dialogs)
	require.Contains(t, r.screen(), "github: logged in as eve")
	close(r.backend.holds)
	finish()
	require.Contains(t, r.screen(), "github: logged in as eve")
}

func TestServersSayWhoIsLoggedInAndWhoIsNot(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setState("github", registry.ServerState{State: registry.StateNeedsLogin, Transport: "http", CanLogIn: true, LastError: "needs login: the login is over"})
	r.keys("1 / g i t enter enter")
	require.Contains(t, r.line("needs login github"), "l logs in: the login")
	require.Contains(t, r.screen(), "l opens your browser")
	require.Contains(t, r.line("enter open"), "l log in")
	r.setState("github", registry.ServerState{
		State: registry.StateReady, Transport: "http", CanLogIn: true, Listed: true,
		Login: &registry.Account{User: "ada\x1b[2J@example.com", AutoRenews: true},
	})
	r.run(r.app.UpdateDetail())
	require.Contains(t, r.line("@example.com, renews"), "@example.com, renews")
	require.NotContains(t, r.line("enter open"), "l log in")
	r.runCommand("logout github")
	require.Contains(t, r.screen(), "Log out of github?")
	r.keys("y")
	require.Equal(t, []string{"logout github"}, r.backend.acts)
	require.Contains(t, r.screen(), "github: logged out")

	r.runCommand("login github")
	require.Equal(t, []string{"logout github", "login github"}, r.backend.acts)
	r.runCommand("login weather")
	require.True(t, strings.Contains(r.screen(), "weather is a local server without a login"))
}
