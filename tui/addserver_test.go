package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry/candidate"
)

// weather is a server of a registry with a package and a URL.
func weather() candidate.Server {
	return candidate.Server{
		Name: "weather-2", Origin: "io.a/weather", Title: "Weather", Description: "Forecasts\x1b[2J", Version: "1.2.0", Link: "https://git.example/weather",
		Choices: []candidate.Choice{
			{
				Kind: "npm", Summary: "@a/weather", Variables: []candidate.Variable{
					{Key: "name", Default: "paris"},
					{Key: "API_KEY", Required: true, Secret: true, Description: "of a.example"},
					{Key: "UNITS", Choices: []string{"metric", "imperial"}, Default: "metric"},
					{Key: "city", Repeated: true},
				},
				Build: func(name string, answers map[string][]string) (*candidate.Definition, error) {
					d := &candidate.Definition{Name: name, Keys: map[string]any{"command": "npx", "args": append([]string{"@a/weather"}, answers["city"]...)}}
					if key := answers["API_KEY"][0]; !strings.HasPrefix(key, "${") {
						d.Secrets = []candidate.Secret{{Name: name + ".API_KEY", Value: key}}
					}
					d.Keys["env"] = map[string]string{"UNITS": strings.Join(answers["UNITS"], ""), "WHO": strings.Join(answers["name"], "")}
					return d, nil
				},
			},
			{Kind: "http", Summary: "https://a.example/mcp", Build: func(name string, _ map[string][]string) (*candidate.Definition, error) {
				return &candidate.Definition{Name: name, Keys: map[string]any{"url": "https://a.example/mcp"}}, nil
			}},
		},
	}
}

func finds(servers ...candidate.Server) func(context.Context, []string) (*candidate.SearchResult, error) {
	return func(context.Context, []string) (*candidate.SearchResult, error) {
		return &candidate.SearchResult{Registry: "https://registry.example", Servers: servers}, nil
	}
}

func TestAServerOfTheRegistryFillsTheForm(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 110, 40)
	r.backend.registry = finds(weather())
	r.keys("1 a").typeText("weather")
	for _, part := range []string{"1 found at https://registry.example", "npm, http", "API_KEY * secret  of a.example", "UNITS [metric]", "source https://git.example/weather", `Forecasts\x1b[2J`} {
		require.Contains(t, r.screen(), part)
	}
	r.pressKeys(tea.KeyCtrlY)
	require.Equal(t, "https://git.example/weather", r.clipboard())

	r.keys("enter").typeText("hunter2")
	require.NotContains(t, r.screen(), "hunter2", "a secret is not drawn")
	require.Contains(t, r.line("API_KEY *"), "*******")
	r.keys("ctrl+e")
	require.Contains(t, r.screen(), "raw JSON would show the secret in API_KEY")
	require.NotContains(t, r.screen(), "hunter2")
	r.keys("tab right tab").typeText("oslo")
	require.Contains(t, r.screen(), "npx @a/weather oslo")
	r.keys("ctrl+s")
	require.Equal(t, []string{"secret weather-2.API_KEY hunter2", `add weather-2 {"args":["@a/weather","oslo"],"command":"npx","env":{"UNITS":"imperial","WHO":"paris"}}`}, r.backend.acts)
	require.Empty(t, r.app.Dialogs)

	r = newFailingUI(t, 110, 40)
	r.backend.registry = finds(weather())
	r.keys("1 a").typeText("weather").keys("enter").typeText("${TOKEN}")
	require.Contains(t, r.line("API_KEY *"), "${TOKEN}", "a reference is drawn")
	r.keys("esc esc tab enter enter")
	require.Equal(t, []string{`add weather-2 {"url":"https://a.example/mcp"}`}, r.backend.acts)
}

func TestServersThatCannotBeUsedSayWhy(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]candidate.Server{
		"is a bundle":             {Origin: "io.a/b", Choices: []candidate.Choice{{Kind: "mcpb", Problem: "is a bundle; add it with: goblin add --registry io.a/b"}}},
		"lists no package or URL": {Origin: "io.a/empty"},
	} {
		r := newFailingUI(t, 110, 40)
		r.backend.registry = finds(s)
		r.keys("1 a").typeText("io").keys("enter")
		require.Contains(t, r.screen(), want)
		require.Len(t, r.app.Dialogs, 1)
	}
}

func TestAServerOfAClientFillsTheForm(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 110, 40)
	entry := &candidate.Definition{
		Name: "git", Keys: map[string]any{"command": "/opt/my git", "cwd": "/src", "env": map[string]string{"TOKEN": "${keyring:git.TOKEN}", "OLD": "${keyring:git.OLD}"}},
		Secrets: []candidate.Secret{{Name: "git.TOKEN", Value: "hunter2"}},
	}
	r.backend.clients = candidate.ClientServers{Problems: []string{"Cursor: not JSON"}, Servers: []candidate.Server{
		{Name: "git", Origin: "Cursor", Description: "my git", Entry: entry, Notes: []string{"1 secret in plain text"}},
		{Name: "clock", Origin: "Zed", Present: true},
	}}
	r.keys("1 a")
	require.Contains(t, r.screen(), "cannot read Cursor: not JSON")
	require.Contains(t, r.line("clock"), "already in the config")
	r.keys("down down enter")
	require.Contains(t, r.screen(), "clock is already in the config")
	r.typeText("GIT")
	require.NotContains(t, r.screen(), "clock  ")
	require.Contains(t, r.screen(), "1 secret in plain text")
	r.keys("enter ctrl+s")
	require.Equal(t, []string{"secret git.TOKEN hunter2", `add git {"command":"/opt/my git","cwd":"/src","env":{"OLD":"${keyring:git.OLD}","TOKEN":"${keyring:git.TOKEN}"}}`}, r.backend.acts)
}

func TestSeveralServersOfClientsAreAdded(t *testing.T) {
	t.Parallel()
	open := func() *testUI {
		r := newFailingUI(t, 110, 40)
		for _, name := range []string{"git", "memo\x1b[2J", "clock"} {
			plain := strings.TrimSuffix(name, "\x1b[2J")
			entry := &candidate.Definition{Name: plain, Keys: map[string]any{"env": map[string]string{"K": "${keyring:" + plain + "}"}, "command": "x"}, Secrets: []candidate.Secret{{Name: plain, Value: "v"}}}
			r.backend.clients.Servers = append(r.backend.clients.Servers, candidate.Server{Name: name, Origin: "Cursor", Description: "local", Entry: entry})
		}
		r.backend.clients.Servers[2].Present = true
		r.keys("1 a down space space space")
		require.Contains(t, r.screen(), "only new servers of clients can be marked")
		r.keys("enter")
		require.Contains(t, r.screen(), "Add 2 servers?")
		require.Contains(t, r.screen(), `memo\x1b[2J  local  (1 secret stored outside the config)`)
		return r
	}
	want := []string{"secret git v", `add git {"command":"x","env":{"K":"${keyring:git}"}}`, "secret memo v", `add memo {"command":"x","env":{"K":"${keyring:memo}"}}`}
	r := open().keys("y")
	require.Contains(t, r.screen(), "Add git, 1 of 2")
	r.keys("ctrl+s")
	require.Contains(t, r.screen(), "Add memo, 2 of 2")
	r.keys("esc enter y")
	require.Contains(t, r.screen(), "Add memo, 1 of 1", "the rest stays marked")
	r.keys("ctrl+s")
	require.Empty(t, r.app.Dialogs)
	require.Equal(t, want, r.backend.acts)

	r = open()
	r.backend.lacking = "exit status 1\x1b[2J"
	r.keys("a")
	require.Contains(t, r.screen(), "0 of 2 added")
	r.keys("up")
	require.Contains(t, r.screen(), `not added: exit status 1\x1b[2J`)
	r.backend.lacking = ""
	r.keys("enter a")
	require.Empty(t, r.app.Dialogs)
	require.Contains(t, r.screen(), "Added git, memo")
	require.Equal(t, want, r.backend.acts)
}

func TestTypedCommandsAndURLsFillTheForm(t *testing.T) {
	t.Parallel()
	masked := newFailingUI(t, 100, 40)
	masked.keys("1 a enter tab").typeText("https://h/x?unit=km&token=hunter2")
	require.Contains(t, masked.screen(), "https://h/x?unit=km&token=*******")
	r := newFailingUI(t, 100, 40)
	r.backend.registry = func(context.Context, []string) (*candidate.SearchResult, error) {
		t.Error("the registry must not get commands and URLs, which may have secrets")
		return nil, errors.New("asked")
	}
	for _, typed := range []string{"npx -y x --token hunter2", "KEY=hunter2 x"} {
		r.keys("1 a").send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(typed), Paste: true}, 0)
		require.Contains(t, r.screen(), "By hand")
		r.app.Dialogs = nil
	}
	r.keys("1 a").send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("https://h/mcp"), Paste: true}, 0)
	r.keys("enter").typeText("h").keys("ctrl+s")
	require.Equal(t, []string{`add h {"url":"https://h/mcp"}`}, r.backend.acts)
}

func TestOnlyTheNewestSearchCounts(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 110, 40)
	var asked []string
	var ends context.Context
	r.backend.registry = func(ctx context.Context, words []string) (*candidate.SearchResult, error) {
		asked = append(asked, strings.Join(words, " "))
		if len(asked) == 1 {
			ends = ctx
		}
		return &candidate.SearchResult{Registry: "x", Servers: []candidate.Server{{Origin: "io.a/" + strings.Join(words, "-")}}}, nil
	}
	r.keys("1 a")
	first := r.app.Update(keyOf("wea"))
	require.Contains(t, r.screen(), "searching the registry")
	next := r.app.Update(first()) // the pause is over
	answer := runFirst(next)
	r.typeText("ther")
	require.Error(t, ends.Err(), "the older search is cancelled")
	r.send(answer, 0)
	require.Equal(t, []string{"wea", "weather"}, asked)
	require.NotContains(t, r.screen(), "io.a/wea ")
	require.Contains(t, r.screen(), "io.a/weather")

	late := r.app.Update(keyOf("x"))
	r.keys("esc")
	r.send(late(), 0)
	require.Len(t, asked, 2, "a closed dialog searches nothing")
	require.Empty(t, r.app.Dialogs)
}

func TestASearchThatFailsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 110, 40)
	r.backend.registry = func(context.Context, []string) (*candidate.SearchResult, error) {
		return nil, errors.New("query x: no route\x1b[2J")
	}
	r.keys("1 a").typeText("weather")
	require.Contains(t, r.screen(), `! cannot search: query x: no route\x1b[2J`)
	require.Contains(t, r.screen(), "Check the network")
	r.backend.registry = func(context.Context, []string) (*candidate.SearchResult, error) {
		return &candidate.SearchResult{Registry: "https://registry.example", Invalid: 3}, nil
	}
	r.typeText("s")
	require.Contains(t, r.screen(), "invalid entries: 3; No matches at https://registry.example; try other words.")
}

func TestAConfigThatCannotBeChangedIsReportedFirst(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 110, 40)
	r.backend.frozen = errors.New("work.yaml is read-only")
	r.keys("1 a")
	require.Contains(t, r.screen(), "! the config cannot be changed: work.yaml is read-only")
	r.keys("enter")
	require.Len(t, r.app.Dialogs, 1)
}

func TestEscCancelsATestAndKeepsTheForm(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 100, 40).keys("1 a enter").typeText("new").keys("tab").typeText("prog")
	test := r.app.Update(keyOf("ctrl+s"))
	r.keys("esc")
	require.Contains(t, r.screen(), "test cancelled; nothing was added")
	r.send(runFirst(test), 0)
	require.Empty(t, r.backend.acts)
	r.keys("ctrl+s")
	require.Equal(t, []string{`add new {"command":"prog"}`}, r.backend.acts)
}

func TestLongAndManyResultsFitSmallTerminals(t *testing.T) {
	t.Parallel()
	var all []candidate.Server
	for i := range 100 {
		s := weather()
		s.Origin, s.Version, s.Description = fmt.Sprintf("io.%s/%d", strings.Repeat("long", 40), i), strings.Repeat("1", 200), strings.Repeat("word ", 200)
		all = append(all, s)
	}
	for _, size := range [][2]int{{40, 10}, {20, 5}, {80, 24}, {160, 45}} {
		r := newFailingUI(t, size[0], size[1])
		r.backend.registry = finds(all...)
		r.keys("1 a").typeText("weather").keys("pgdown down")
		r.screen() // checks the width of each line
		r.keys("enter")
		r.screen()
	}
}
