package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

func TestEnterShowsRequestAndResponseSideBySide(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40).keys("g enter")
	require.Contains(t, r.line("Request"), "[Response]")
	line := r.line("arguments")
	require.Contains(t, line, "│")
	require.Contains(t, r.line("tools/call github_create_issue"), "→")
	r.keys("tab")
	require.Contains(t, r.line("[Request]"), "Response")
	r.keys("esc")
	require.Empty(t, r.app.Dialogs)
}

func TestANarrowExchangeIsStackedAndFollowsTheSize(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 100, 40).keys("g enter")
	require.NotContains(t, r.line("Request"), "Response")
	require.Contains(t, r.screen(), "[Response]")
	r.send(tea.WindowSizeMsg{Width: 160, Height: 40}, 0)
	require.Contains(t, r.line("Request"), "[Response]")
	for _, size := range [][2]int{{40, 10}, {80, 24}, {139, 20}, {140, 20}, {250, 60}, {41, 11}} {
		r.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]}, 0)
		r.screen()
	}
}

func TestTheExchangeScrollsTheSideThatIsOn(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 160, 24, "files")
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf(`"line %d."`, i))
	}
	body := []byte(`{"a":[` + strings.Join(lines, ",") + `]}`)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "files", Method: "tools/call", Name: "x", Status: "success", Request: body, Response: body})
	r.refresh(registry.Traffic).keys("5 ] enter G")
	require.Contains(t, r.screen(), "line 199.")
	require.Contains(t, r.screen(), "line 0.", "the request must not scroll")
	r.keys("g")
	require.NotContains(t, r.screen(), "line 199.")
	d := r.app.FrontExchange()
	r.send(tea.MouseMsg{X: 20, Y: 10, Button: tea.MouseButtonWheelDown}, 0)
	first, _, _ := d.Views[0].Position()
	require.Equal(t, 4, first, "the wheel must scroll the part under it")
	for _, key := range []string{"j", "ctrl+d"} {
		before, _, _ := d.Views[1].Position()
		r.keys(key)
		after, _, _ := d.Views[1].Position()
		require.Greater(t, after, before, key)
	}
	r.keys("ctrl+u k k")
	first, _, _ = d.Views[1].Position()
	require.Equal(t, 1, first)
	r.send(tea.MouseMsg{X: 20, Y: 10, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
	require.Contains(t, r.screen(), "[Request]")
}

func TestKeysOfTheExchangeAreAboutItsRecordEvenWhenTheListMovesOn(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40).keys("G k k k enter")
	r.app.Logs().Traffic.Table.Following = true
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Method: "ping", Status: "success", Request: []byte(`{}`), Response: []byte(`{}`)})
	r.refresh(registry.Traffic)
	r.keys("y")
	require.Contains(t, r.clipboard(), "tools/call")
	r.keys("e")
	require.Contains(t, r.term.opened[0], "pager traffic-1.json: {\n")
	require.Contains(t, r.term.opened[0], "create_issue")
	r.keys("i")
	require.Equal(t, pane.PaneTools, r.app.Open)
	require.Empty(t, r.app.Dialogs)
}

func TestTheFormOfARecordedCallTakesThePlaceOfItsExchange(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40).keys("G k k k enter c")
	require.Contains(t, r.screen(), "Call github_create_issue")
	require.Len(t, r.app.Dialogs, 1, "the form must replace the exchange, so that the list shows the result")
	r.keys("esc")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	r.keys("j enter c")
	require.Len(t, r.app.Dialogs, 1, "an exchange without a form stays open")
	require.Contains(t, r.screen(), "Request")
}

func TestAnExchangeShowsItsIDsAndHeaders(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 60, "weather")
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now(), Session: "c9", Client: "web", Server: "weather", Method: "tools/call", Name: "weather_x", Status: "success",
		Request: []byte(`{"name":"weather_x"}`), Response: []byte(`{"content":[]}`),
		Wire: []byte("i\"a-1\"\nthttp\ns7\naPOST /mcp HTTP/1.1\naUser-Agent: web/1\naCookie: [hidden]\nbHTTP/1.1 200 OK\nbContent-Type: application/json\n" +
			"cPOST /x HTTP/1.1\ncX-Team: blue\x1b[2J\ndHTTP/2.0 200 OK\ndServer: nginx\n"),
	})
	r.refresh(registry.Traffic).keys("5 ]")
	require.Contains(t, r.screen(), "{▸ 4 members}", "headers are folded")
	require.NotContains(t, r.screen(), "User-Agent")
	for _, keys := range []string{"enter"} { // the full exchange
		r.keys(keys)
		text := r.screen()
		for _, want := range []string{
			`id +"a-1" \(client\), 7 \(server\)`, `transport +client http`,
			`headers from the client`, `HTTP +POST /mcp HTTP/1\.1`, `User-Agent +web/1`, `Cookie +\[hidden\]`,
			`headers to the server`, `X-Team +blue\\x1b\[2J`, `headers from the server`, `Server +nginx`, `headers to the client`, `HTTP +HTTP/1\.1 200 OK`,
		} {
			require.Regexp(t, want, text)
		}
	}
	r.keys("y")
	require.Contains(t, r.clipboard(), `"id":"a-1"`)
}
