package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

// newExchangeUI shows one call in Traffic, with what it caused.
func newExchangeUI(t *testing.T, w, h int) *testUI {
	r := newTestUI(t, w, h, "weather")
	at := r.clock.now()
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: at, Number: 7, Session: "c9", Client: "web", Server: "weather", Method: "tools/call", Name: "weather_x", Original: "x", Status: "success",
		Duration: 10 * time.Second, StartWait: 2 * time.Second, UserWait: 5 * time.Second,
		Request: []byte(`{"name":"weather_x","arguments":{"city":"Oslo"}}`), Response: []byte(`{"content":[{"type":"text","text":"rain\nfog\nrain again"}]}`),
		Wire: []byte("i\"a-1\"\nthttp\ns7\naPOST /mcp HTTP/1.1\naUser-Agent: web/1\naCookie: [hidden]\nbHTTP/1.1 200 OK\nbContent-Type: application/json\n" +
			"cPOST /x HTTP/1.1\ncX-Team: blue\x1b[2J\ndHTTP/2.0 200 OK\ndServer: nginx\n"),
	})
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: at.Add(3 * time.Second), Number: 8, Parent: 7, Direction: registry.ToClient, Server: "weather", Method: "elicitation/create", Status: "success",
		Duration: 5 * time.Second, Request: []byte(`{}`), Response: []byte(`{}`),
	})
	return r.refresh(registry.Traffic).keys("5 ]")
}

func TestAnExchangeHasTabs(t *testing.T) {
	t.Parallel()
	r := newExchangeUI(t, 120, 60).keys("g enter")
	require.Contains(t, r.line("[Answer]"), "Request  Timing  Headers  Raw")
	require.Contains(t, r.screen(), "rain again")
	require.NotContains(t, r.screen(), "Oslo")
	require.Regexp(t, `5.0 s \+ 5.0 s waiting for the user  0 B  weath`, r.screen())
	for _, part := range []struct {
		name string
		want []string
	}{
		{"Request", []string{`"city": "Oslo"`, `id +"a-1" \(client\), 7 \(server\)`, `transport +client http`}},
		{"Timing", []string{
			`server starts +█{4}·{16} +2.0 s`, `server works +·{4}█{6}·{10} +3.0 s`, `waits for the user +·{10}█{10} +5.0 s`,
			`12:00:03.000 +·{6}█{10}·{4} +5.0 s`, `elicitation/create`,
		}},
		{"Headers", []string{
			`headers from the client`, `HTTP +POST /mcp HTTP/1\.1`, `User-Agent +web/1`, `Cookie +\[hidden\]`,
			`headers to the server`, `X-Team +blue\\x1b\[2J`, `headers from the server`, `Server +nginx`, `headers to the client`, `HTTP +HTTP/1\.1 200 OK`,
		}},
		{"Raw", []string{`"jsonrpc": "2.0"`, `"id": "a-1"`, `"result": \{`, `name +x`}},
	} {
		r.keys("]")
		require.Contains(t, r.line("["+part.name+"]"), "Answer", "keys change the tab of the detail")
		for _, want := range part.want {
			require.Regexp(t, want, r.screen())
		}
	}
	r.keys("y")
	require.Contains(t, r.clipboard(), `"id":"a-1"`)
	r.keys("]")
	require.Contains(t, r.screen(), "[Answer]")
	r.click("Timing", "Timing")
	require.Contains(t, r.screen(), "[Timing]")
	r.keys("esc ]")
	require.Contains(t, r.screen(), "[Server stderr")
}

func TestTheTabOfAnExchangeStaysForTheNextRow(t *testing.T) {
	t.Parallel()
	r := newExchangeUI(t, 80, 24).keys("g enter ]")
	require.NotContains(t, r.screen(), "following", "the list has no room")
	require.Contains(t, r.screen(), "1 of 2")
	require.Contains(t, r.screen(), "Oslo")
	r.keys("J")
	require.Contains(t, r.screen(), "[Request]")
	require.Contains(t, r.screen(), "2 of 2")
	require.Contains(t, r.screen(), "elicitation/create")
	r.keys("J")
	require.Contains(t, r.screen(), "No more rows")
	r.keys("K")
	require.Contains(t, r.screen(), "Oslo")
	r.keys("F")
	require.Contains(t, r.screen(), "Traffic 2", "the list is back")
	r.keys("F J")
	require.Contains(t, r.screen(), "2 of 2", "rows change without a visible list")
	for _, size := range [][2]int{{40, 10}, {41, 11}, {160, 45}, {80, 24}} {
		r.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]}, 0)
		r.screen()
	}
	r.keys("esc")
	require.Contains(t, r.screen(), "Traffic 2")
}

func TestASearchShowsOnlyMatchingLinesInEachTab(t *testing.T) {
	t.Parallel()
	r := newExchangeUI(t, 100, 40).keys("g enter &").typeText("rain")
	require.Regexp(t, `& rain +1 of \d+ in the detail, other lines hidden`, r.screen())
	r.keys("esc /").typeText("rain")
	require.Regexp(t, `/ rain +1 of \d+ in the detail `, r.screen())
	r.keys("enter &")
	require.Contains(t, r.screen(), "rain again")
	require.NotContains(t, r.screen(), "fog")
	require.Contains(t, r.screen(), "matching")
	r.keys("] ] ] ]")
	require.Contains(t, r.line("rain"), `"text"`)
	require.NotContains(t, r.screen(), "jsonrpc")
	r.keys("&")
	require.Contains(t, r.screen(), "jsonrpc")
}

func TestARunningRequestShowsItsProgress(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 100, 40, "weather")
	at := r.clock.now()
	r.backend.underWay = []registry.InFlight{{ID: "1", TrafficRecord: registry.TrafficRecord{Time: at, Number: 9, Session: "c9", Client: "web", Server: "weather", Method: "tools/call", Name: "x", Status: registry.StatusInFlight}}}
	r.run(r.app.Logs().ReadInFlight())
	r.keys("5 ] g enter")
	require.Contains(t, r.screen(), "running; X cancels it")
	r.reg.Traffic().Append(registry.TrafficRecord{Time: at.Add(time.Second), Parent: 9, Server: "weather", Method: "notifications/progress", Status: registry.StatusNotification, Request: []byte(`{"progress":3,"total":10,"message":"step"}`)})
	r.refresh(registry.Traffic)
	require.Contains(t, r.screen(), "3/10 step")
}

func TestGoingToALineOfALongAnswer(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv)
	var lines strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, `line-%d\n`, i+1)
	}
	r.setAnswer("resources/read", `{"contents":[{"uri":"`+configURI+`","mimeType":"text/plain","text":"`+lines.String()+`"}]}`)
	r.keys("4 / config enter enter l #").typeText("4712").keys("enter")
	require.Contains(t, r.screen(), "line-4712")
	require.Contains(t, r.screen(), "line 4712 of 5000")
	r.keys(":").typeText("17").keys("enter")
	require.Contains(t, r.screen(), "line 17 of 5000")
	r.resize(80, 15)
	require.Regexp(t, `line \d+ of 5000`, r.footer(), "without borders")
	r.keys("#").typeText("6000").keys("enter")
	require.Contains(t, r.screen(), "there is no line 6000")
}

func TestKeysOfADetailWithTheFocusAreAboutItsRecord(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40).keys("G k k k enter")
	r.app.Logs().Traffic.Table.Following = true
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Method: "ping", Status: "success", Request: []byte(`{}`), Response: []byte(`{}`)})
	r.refresh(registry.Traffic)
	r.keys("y")
	require.Contains(t, r.clipboard(), "tools/call")
	r.keys("e")
	require.Contains(t, r.term.opened[0], "pager traffic-1.json: {\n")
	r.keys("i")
	require.Equal(t, pane.PaneTools, r.app.Open)
}

func TestACallInALastCallsDialogIsZoomed(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv)
	for _, text := range []string{"first", "second"} {
		r.setAnswer("tools/call", `{"content":[{"type":"text","text":"`+text+`"}]}`)
		r.keys("2 / forecast enter c").typeText("Oslo").keys("ctrl+s esc esc")
	}
	r.keys("H F")
	require.Contains(t, r.screen(), "1 of 2")
	require.Contains(t, r.screen(), "second")
	r.keys("j")
	require.Contains(t, r.screen(), "2 of 2")
	require.Contains(t, r.screen(), "first")
	require.Contains(t, r.footer(), "F show list")
	r.keys("esc")
	require.NotContains(t, r.screen(), "2 of 2")
	require.Contains(t, r.screen(), "Recent calls")
}
