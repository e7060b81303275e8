package tui

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestServersAreAddedByAForm(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ target, args, env, headers, want string }{
		"a line":    {target: "npx -y a-server", want: `add new {"args":["-y","a-server"],"command":"npx"}`},
		"arguments": {target: "my prog", args: "a b", env: "K=v=w", want: `add new {"args":["a b"],"command":"my prog","env":{"K":"v=w"}}`},
		"remote":    {target: "https://h/mcp", headers: "Authorization: Bearer ${T}", want: `add new {"headers":{"Authorization":"Bearer ${T}"},"url":"https://h/mcp"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFailingUI(t, 100, 40).keys("1 a enter").typeText("new").keys("tab").typeText(tt.target)
			for _, list := range []string{tt.args, tt.env, tt.headers} {
				if r.keys("tab"); list != "" {
					r.typeText(list)
				}
			}
			r.keys("ctrl+s")
			require.Equal(t, []string{tt.want}, r.backend.acts)
			require.Empty(t, r.app.Dialogs)
			require.Contains(t, r.screen(), "Added new to the config")
		})
	}
}

func TestAServerThatCannotBeAddedStaysInItsForm(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 100, 40).keys("1 a enter").typeText("no name").keys("ctrl+s")
	require.Empty(t, r.backend.acts)
	require.Len(t, r.app.Dialogs, 2)

	r = newFailingUI(t, 100, 40).keys("1 a enter").typeText("new").keys("tab").typeText("https://h").keys("tab").typeText("x").keys("ctrl+s")
	require.Empty(t, r.backend.acts)
	require.Contains(t, r.screen(), "arguments and variables only apply")

	r = newFailingUI(t, 100, 40)
	r.backend.fails = errors.New("there is a server \"new\" already\x1b[2J")
	r.keys("1 a enter").typeText("new").keys("tab").typeText("x").keys("ctrl+s")
	require.Contains(t, r.screen(), `there is a server "new" already`)
	require.Len(t, r.app.Dialogs, 2, "the input must be kept")
}

func TestAServerThatDoesNotWorkIsAddedWhenThatIsAskedForTwice(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 100, 40)
	r.backend.lacking = "there is no file /no/prog\x1b[2J; correct the path in command"
	r.keys("1 a enter").typeText("new").keys("tab").typeText("/no/prog").keys("ctrl+s")
	require.Empty(t, r.backend.acts)
	require.Contains(t, r.screen(), "! not added: there is no file /no/prog")
	require.Contains(t, r.screen(), "C-s again adds")
	r.typeText("x").keys("ctrl+s")
	require.Empty(t, r.backend.acts, "the program differs, so it is tested again")
	require.Equal(t, 2, r.backend.tried)
	r.keys("ctrl+s")
	require.Equal(t, 2, r.backend.tried)
	require.Equal(t, []string{`add new {"command":"/no/progx"}`}, r.backend.acts)
	require.Contains(t, r.screen(), "Added new to the config")
	require.Empty(t, r.app.Dialogs)
}

func TestAFormThatIsLeftAddsNothing(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 100, 40).keys("1 a enter").typeText("new").keys("tab").typeText("prog")
	cmd := r.app.Update(keyOf("ctrl+s"))
	require.Contains(t, r.screen(), "Add a server: testing, esc cancels")
	require.Nil(t, r.app.Update(keyOf("ctrl+s")), "once is enough")
	r.keys("esc esc")
	r.send(runFirst(cmd), 0)
	require.Empty(t, r.backend.acts)
	require.NotContains(t, r.screen(), "Added")
}

func TestTheFormOfAServerSaysInWordsWhatItWants(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 100, 40).keys("1 a enter")
	require.NotContains(t, r.screen(), "a-z")
	r.typeText("no name").keys("tab").typeText("x").keys("ctrl+s")
	require.Contains(t, r.screen(), "allowed: letters, digits, and . _ - (not first); up to 64")
}

func TestAAnswersWhileAServerAsksAndAddsElse(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 100, 40).keys("2 a")
	require.Contains(t, r.screen(), "no open requests from servers")
	require.Empty(t, r.app.Dialogs)
	r.runCommand("add")
	require.Equal(t, "Add a server", r.app.Dialogs[0].Heading())
}

func TestAServerIsRemovedAfterAsking(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 100, 40).keys("1 D")
	require.Contains(t, r.screen(), "Remove files?")
	r.keys("n")
	require.Empty(t, r.backend.acts)
	r.reg.SetSession(registry.Session{ID: "c1", Client: "claude"})
	r.keys("D")
	require.Contains(t, r.screen(), "Connected: claude (1 client).")
	r.keys("y")
	require.Equal(t, []string{"remove files"}, r.backend.acts)
	require.Contains(t, r.screen(), "Removed files from the config")
}

func TestServersAreTurnedOffForGoodOrForThisDaemon(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 100, 40).keys("1 x")
	require.Contains(t, r.screen(), "y until Goblin stops   g permanently   n back")
	r.keys("n")
	require.Empty(t, r.backend.acts)
	r.keys("x g")
	require.Contains(t, r.screen(), "Disabled files in the config")
	r.keys("G x g")
	require.Contains(t, r.screen(), "Enabled notes in the config")
	r.keys("x y")
	require.Equal(t, []string{"disable files true", "disable notes false", "enable notes true"}, r.backend.acts)
}

func TestTheDemoHasNoConfigToChange(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 100, 40)
	r.app.Demo = true
	r.keys("1 a")
	require.Contains(t, r.screen(), "the demo has no config")
	r.keys("D")
	require.Contains(t, r.screen(), "the demo has no config")
	r.keys("x")
	require.Equal(t, []string{"enable files false"}, r.backend.acts)
}
