package tui

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

func TestAFilterThatIsNotUnderstoodIsSaidSoAfterEnter(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4 / foo:bar enter")
	require.Contains(t, r.line("/ foo:bar"), `! no field "foo" here`)
	r.keys("esc / files: enter")
	require.Contains(t, r.line("/ files:"), "0 of 16", "a scheme is text")
	r.keys("esc / file: enter")
	require.Contains(t, r.line("/ file:"), "16 of 16")
	require.NotContains(t, r.screen(), "no field")
}

func TestTheFooterOffersTheFieldsOfTheList(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("2 /")
	require.Contains(t, r.line("esc clear"), "server: name: fields")
	require.Contains(t, r.keys("esc 4 /").line("esc clear"), "mime: sub:")
}

func TestThePlaceOfTheDetailPanelChangesWithEachPress(t *testing.T) {
	t.Parallel()
	for _, w := range []int{80, 120} {
		r := office(t, w, 40, plainEnv).keys("2 j enter")
		for range 6 {
			before := r.app.Geometry()
			r.keys("P")
			require.NotEqual(t, before, r.app.Geometry(), "%d cells", w)
		}
	}
}

func TestCountsHaveAllTheirDigits(t *testing.T) {
	t.Parallel()
	r := newRig(t, 80, 24, "big").ready("big")
	var tools []string
	for i := range 12_345 {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{}}`, i))
	}
	r.list("big", registry.Tool, tools...).keys("2")
	require.Contains(t, r.line("─ Tools"), "12,345")
	r.keys("/ t1 enter")
	require.Contains(t, r.line("/ t1"), "3456 of 12,345")
	require.Contains(t, r.line("─ Tools"), "3456/12,345")
}

func TestAToolIsFoundByTheNameThatItsServerGaveIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 40, "odd").ready("odd")
	r.list("odd", registry.Tool, `{"name":"日本語","description":"speaks"}`, `{"name":"other"}`).keys("2 / 日本 enter")
	require.Contains(t, r.line("/ 日本"), "1 of 2")
}

// folded is a screen with a tool's result open: a list of flat objects.
func folded(t *testing.T) *rig {
	r := office(t, 120, 50, plainEnv)
	r.answer("resources/read", `{"contents":[{"uri":"mcp://files/file:///srv/config.json","mimeType":"application/json","text":"{\"rows\":[{\"a\":1},{\"b\":2}]}"}]}`)
	return r.keys("4 / config.json enter enter")
}

func TestFoldingBeginsAtTheDepthThatThereIs(t *testing.T) {
	t.Parallel()
	r := folded(t)
	require.Contains(t, r.screen(), `"a": 1`)
	r.keys("-")
	require.NotContains(t, r.screen(), `"a": 1`)
	require.Contains(t, r.screen(), "1 member}")
	require.Contains(t, r.screen(), "JSON: 2 of 3 levels unfolded")
	r.keys("- - -")
	require.Contains(t, r.line(`"rows"`), "2 items")
	r.keys("+ +")
	require.Contains(t, r.screen(), `"a": 1`)
	require.Contains(t, r.screen(), "All 3 levels of the JSON are unfolded")
}

func TestOneNodeOfJSONIsFolded(t *testing.T) {
	t.Parallel()
	r := folded(t)
	y, x := -1, -1
	for i, l := range strings.Split(r.screen(), "\n") {
		if at := strings.Index(l, `"rows": [`); at >= 0 {
			y, x = i, len([]rune(l[:at]))
		}
	}
	click := tea.MouseMsg{X: x, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}
	r.take(click, 0)
	require.Contains(t, r.line(`"rows"`), "2 items")
	require.Contains(t, r.screen(), `"name": "config.json"`, "the definition is another")
	r.clock.advance(time.Second)
	r.take(click, 0)
	require.Contains(t, r.screen(), `"a": 1`)
	r.keys("l g z")
	require.NotContains(t, r.screen(), `"rows"`)
}

// What fits the panel can be moved as well, so that keys reach each node.
func TestInnerNodesOfShortJSONAreFoldedByKeys(t *testing.T) {
	t.Parallel()
	r := folded(t).keys("l g")
	first := func() string { return strings.Split(r.screen(), "\n")[3] }
	for range 60 {
		if strings.Contains(first(), `"rows": [`) {
			break
		}
		r.keys("j")
	}
	require.Contains(t, first(), `"rows": [`)
	r.keys("z")
	require.Contains(t, first(), "2 items")
	r.keys("z j z")
	require.Contains(t, first(), "1 member}")
	require.Contains(t, r.screen(), `"b": 2`, "the other one is not")
	r.keys("G")
	require.NotContains(t, first(), "member}", "the end is in the last line")
}

func TestACallThatWasCancelledLeavesItsArguments(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 50, plainEnv).keys("2 / forecast enter c")
	r.text("Oslo")
	r.backend.answers["tools/call"] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		r.clock.advance(4 * time.Second)
		r.app.Calls.Running[0].Cancel()
		return nil, fmt.Errorf("context canceled")
	}
	r.keys("ctrl+s")
	require.Contains(t, r.screen(), "weather_forecast: cancelled after 4000 ms")
	require.Contains(t, r.line(", after 4000 ms, with"), "12:0")
	require.Contains(t, r.screen(), `"city": "Oslo"`)
	r.answer("tools/call", `{"content":[]}`)
	r.keys("c ctrl+r ctrl+s")
	require.NotContains(t, r.screen(), "after 4000 ms, with")
}

func TestACallThatWasCancelledStandsAmongTheLast(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 50, plainEnv).keys("2 / forecast enter c")
	r.text("Oslo")
	r.backend.answers["tools/call"] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		r.clock.advance(4 * time.Second)
		r.app.Calls.Running[0].Cancel()
		return nil, fmt.Errorf("context canceled")
	}
	r.keys("ctrl+s H")
	require.Contains(t, r.screen(), "Last calls of weather_forecast")
	require.Regexp(t, `12:0\S+ +4 s +cancelled +4000 ms .*"city":"Oslo"`, r.line("4000 ms"))
	require.Contains(t, r.screen(), "cancelled after 4000 ms")
	require.NotContains(t, r.screen(), "failed")
	r.keys("c")
	require.Contains(t, r.screen(), "Oslo", "it is called anew with the same")
	r.answer("tools/call", `{"content":[]}`)
	r.keys("ctrl+s H")
	require.Contains(t, r.line("> "), " ok ")
	require.Contains(t, r.line("4000 ms"), "cancelled")
}

// hanging is a client's call that has been under way for four seconds.
func hanging(r *rig) registry.UnderWay {
	u := registry.UnderWay{ID: "7", TrafficRecord: registry.TrafficRecord{
		Time: r.clock.now().Add(-4 * time.Second), Session: "s-1", Client: "claude", Server: "github",
		Method: "tools/call", Name: "github_create_issue", Status: registry.StatusUnderWay,
		Request: []byte(`{"name":"github_create_issue","arguments":{"title":"slow"}}`), RequestSize: 60,
	}}
	r.backend.underWay = []registry.UnderWay{u}
	return u
}

// pulse lets the screen ask which requests are under way.
func (r *rig) pulse() *rig {
	r.run(r.app.Logs().ReadInFlight())
	return r
}

func TestARequestUnderWayStandsInTrafficFromItsStart(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 160, 40)
	u := hanging(r)
	r.pulse()
	require.Contains(t, r.line("goblin  work.yaml"), "1 under way")
	require.Contains(t, r.line("4 s"), " under way ")
	r.keys("P P") // the list alone
	require.Regexp(t, `11:59:56\.000.*claude.*github.*tools/call.*under way.*4 s`, r.line("4 s"))
	r.keys("P")
	r.keys("/ status:under enter")
	require.Contains(t, r.screen(), "1 of 5")
	require.Contains(t, r.screen(), `"title": "slow"`)
	r.keys("y")
	require.Contains(t, r.screen(), "there is no answer yet")

	// It ends: the journal has it, and it stays where it was, under the cursor.
	r.keys("esc").keys("g")
	u.Status, u.Duration = "success", 4500*time.Millisecond
	r.reg.Traffic().Append(u.TrafficRecord)
	r.changed(registry.Traffic)
	require.Contains(t, r.line("4500 ms"), "> 11:59:56")
	require.NotContains(t, r.screen(), "4 s ")
	r.pulse() // a late answer of before
	r.backend.underWay = nil
	r.pulse()
	require.Contains(t, r.line("4500 ms"), "> 11:59:56")
	require.NotContains(t, r.line("goblin  work.yaml"), "under way")
}

// ends lets a request that hangs end in the journal.
func (r *rig) ends(u registry.UnderWay) *rig {
	u.Status, u.Duration = "success", 4500*time.Millisecond
	r.reg.Traffic().Append(u.TrafficRecord)
	r.backend.underWay = nil
	return r.changed(registry.Traffic)
}

func TestARequestThatEndsOutOfSightStandsInTrafficOnce(t *testing.T) {
	t.Parallel()
	began := regexp.MustCompile("│[> ] 11:59:56")
	for what, there := range map[string][2]string{"another pane": {"4", "5"}, "another tab": {"[", "]"}, "paused": {"G p", "p"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := trafficRig(t, 160, 40)
			u := hanging(r)
			r.pulse().keys("g")
			require.Contains(t, r.line("4 s"), "> 11:59:56")
			r.keys(there[0]).pulse().ends(u).pulse().pulse().keys(there[1])
			require.NotContains(t, r.screen(), "under way")
			require.Len(t, began.FindAllString(r.screen(), -1), 1, "it stands there once")
			if what != "paused" { // where the cursor had to leave it
				require.Contains(t, r.line("4500 ms"), "> 11:59:56", "under the cursor")
			}
			r.pulse()
			require.Len(t, began.FindAllString(r.screen(), -1), 1, "and stays so")
		})
	}
}

func TestARequestThatEndsWithoutARecordLeavesTraffic(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 160, 40)
	hanging(r)
	r.pulse().keys("4")
	r.backend.underWay = nil
	r.pulse().pulse().pulse().pulse().keys("5")
	require.NotContains(t, r.screen(), "under way")
	require.NotContains(t, r.screen(), " 11:59:56")
	hanging(r)
	r.pulse()
	require.Contains(t, r.screen(), "under way")
	r.backend.underWay = nil
	r.pulse().pulse().pulse().pulse()
	require.NotContains(t, r.screen(), "under way", "in sight, too")
}

func TestTheCursorStaysOnARequestThatIsCancelled(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 160, 40)
	u := hanging(r)
	other := u
	other.ID, other.Session, other.Client, other.Time = "8", "s-2", "vscode", u.Time.Add(time.Second)
	r.backend.underWay = append(r.backend.underWay, other)
	r.pulse().keys("g")
	require.Contains(t, r.line("> "), "claude")
	r.backend.underWay = r.backend.underWay[1:] // the gateway knows before the journal does
	r.keys("X y").pulse()
	require.Contains(t, r.line("> "), "claude")
	u.Status, u.Duration = registry.StatusCancelled, 4*time.Second
	r.reg.Traffic().Append(u.TrafficRecord)
	r.changed(registry.Traffic)
	require.Regexp(t, "> 11:59:56 .*cancel", r.line("> "))
	require.Regexp(t, "session +s-1", r.line("session "), "its detail stays, too")
	require.Contains(t, r.line("11:59:57"), "under way")
}

func TestAnybodysRequestIsCancelledAfterAsking(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 160, 40)
	u := hanging(r)
	r.pulse().keys("g X")
	require.Contains(t, r.screen(), "Cancel tools/call github_create_issue?")
	require.Contains(t, r.screen(), "claude has waited for it for 4 s")
	require.Empty(t, r.backend.acts)
	r.keys("y")
	require.Equal(t, []string{"withdraw s-1 7"}, r.backend.acts)
	require.Contains(t, r.screen(), "Cancelled tools/call github_create_issue")
	u.Session = "me"
	r.backend.underWay = []registry.UnderWay{u}
	r.pulse().keys("g X")
	require.Equal(t, []string{"withdraw s-1 7", "withdraw me 7"}, r.backend.acts, "one's own is not asked for")
	r.backend.fails = fmt.Errorf("gone")
	r.keys("X")
	require.Contains(t, r.screen(), "has ended already")
}

func TestTheCancelKeyOfTrafficIsAboutItsRows(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 160, 40)
	hanging(r)
	r.pulse().keys("G k X")
	require.Contains(t, r.screen(), "this is a notification")
	r.keys("k X")
	require.Contains(t, r.screen(), "this request has ended already")
	require.NotContains(t, r.screen(), "X cancel")
	r.keys("g space X") // the cursor has gone on to one that has ended
	require.Contains(t, r.line("> "), "1234 ms")
	require.Contains(t, r.screen(), "Cancel tools/call github_create_issue?")
	r.keys("y")
	require.Equal(t, []string{"withdraw s-1 7"}, r.backend.acts)
}

func TestRequestsUnderWayAreFoundByTheWordsOfTheirStatus(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 160, 40)
	hanging(r)
	r.pulse()
	for _, typed := range []string{"waits", "under", "status:waits", "status:under"} {
		r.keys("/ ctrl+u").text(typed).keys("enter")
		require.Contains(t, r.screen(), "1 of 5", typed)
		require.Regexp(t, "waits|under way", r.line(" 4 s"), typed)
	}
}

func TestTheErrorOfACancelledRequestIsHeadedAsOne(t *testing.T) {
	t.Parallel()
	r := newRig(t, 160, 60, "github").ready("github")
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now(), Client: "claude", Server: "github", Method: "tools/call", Name: "github_x", Duration: time.Second, Status: registry.StatusCancelled,
		Request: []byte(`{"name":"x"}`), RequestSize: 12, Response: []byte(`{"code":-32603,"message":"Request cancelled"}`), ResponseSize: 45, Size: 45,
	})
	r.changed(registry.Traffic).keys("5 ]")
	require.Regexp(t, "(?s)││ Error +│.*-32603", r.screen())
	require.Equal(t, 1, strings.Count(r.screen(), "-32603"))
	require.NotContains(t, r.screen(), "Response")
	r.keys("y")
	require.Contains(t, r.copied(), `"error":{"code":-32603`)
	r.keys("enter")
	require.Equal(t, 1, strings.Count(r.screen(), "-32603"))
	require.NotContains(t, r.screen(), "result as it came")

	// One that answered all the same has a result.
	r.keys("esc")
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now(), Client: "claude", Server: "github", Method: "tools/call", Name: "github_y", Status: registry.StatusCancelled,
		Response: []byte(`{"content":[{"type":"text","text":"late"}]}`), ResponseSize: 43,
	})
	r.changed(registry.Traffic).keys("G")
	require.Regexp(t, "││ Response +│", r.screen())
	r.keys("y")
	require.Contains(t, r.copied(), `"result":{"content"`)
}

func TestTimeInTrafficIsWhenARequestBegan(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 250, 40).keys("g")
	require.Contains(t, r.line("began"), "12:00:00.000")
	require.Contains(t, r.line("ended"), "12:00:01.234")
	require.Contains(t, r.keys("P P").line("create_issue"), "12:00:00.000")
}

func TestWhatWasCancelledIsNoError(t *testing.T) {
	t.Parallel()
	r := newRig(t, 160, 40, "github").ready("github").keys("P P")
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Client: "claude", Server: "github", Method: "tools/call", Name: "github_x", Duration: time.Second, Status: registry.StatusCancelled})
	r.changed(registry.Traffic).keys("5 ]")
	require.Contains(t, r.line("github_x"), "cancelled")
	require.NotContains(t, r.screen(), "!cancelled")
	require.Contains(t, r.keys("/ err:yes enter").screen(), "0 of 1")
}

func TestWhatHasTheWordInItsNameComesFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 40, "s").ready("s")
	r.list("s", registry.Tool,
		`{"name":"get-structured","description":"Returns data along with a schema"}`,
		`{"name":"nothing","title":"A long title","description":"something else"}`,
		`{"name":"trigger-long-running","description":"takes time"}`,
		`{"name":"wordy","description":"`+strings.Repeat("much to say about other things ", 8)+`and at last something belonging here"}`)
	r.keys("2 / long enter")
	require.Contains(t, r.line("> "), "s_trigger-long-running")
	require.Contains(t, r.line("s_nothing"), "A long title", "the row shows what was hit")
	require.Contains(t, r.line("s_wordy"), "belonging")
	require.Contains(t, r.line("s_wordy"), "…")
	r.list("s", registry.Resource, `{"uri":"a:1","name":"other","title":"x"}`, `{"uri":"a:2","name":"zlong","title":"x"}`, `{"uri":"a:long","name":"y"}`, `{"uri":"a:4","name":"y","title":"So long"}`)
	r.keys("4 / long enter")
	var got []string
	for _, l := range strings.Split(r.screen(), "\n") {
		if i := strings.Index(l, " a:"); i >= 0 && strings.HasPrefix(l, "│") && i < 40 {
			got = append(got, strings.Fields(l[i:])[0])
		}
	}
	require.Equal(t, []string{"a:2", "a:4", "a:long"}, got)
}

func TestTypingReplacesTheFilterOfBefore(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4 / day-01 enter /")
	require.Contains(t, r.line("typing replaces it"), "/ day-01")
	r.text("config")
	require.Contains(t, r.line("/ config"), "1 of 16")
	r.keys("enter / left").text("X")
	require.Contains(t, r.line("/ confi"), "confiXg", "moving in it keeps it")
	r.keys("enter / enter")
	require.Contains(t, r.line("/ confiXg"), "of 16", "and so does leaving")
	r.keys("/ backspace")
	require.Contains(t, r.screen(), "16 of 16")
	r.text("day-02").keys("enter / space").text("day-03").keys("enter")
	require.Contains(t, r.line("/ day-03"), "1 of 16")
}

func TestEscGoesBackFromAJump(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("2 / forecast enter i")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	require.Contains(t, r.screen(), "name:=")
	r.keys("esc")
	require.Equal(t, pane.PaneTools, r.app.Open)
	require.Contains(t, r.line("/ forecast"), "1 of")
	r.keys("5")
	require.NotContains(t, r.screen(), "name:=", "what the jump filtered is as it was")
	r.keys("1 e")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	r.keys("esc")
	require.Equal(t, pane.PaneServers, r.app.Open)

	// Jumps lead on to others, and back one by one.
	r.keys("esc esc 4 / config.json enter i")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	r.keys("i")
	require.Equal(t, pane.PaneResources, r.app.Open)
	r.keys("esc")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	r.keys("esc")
	require.Equal(t, pane.PaneResources, r.app.Open)
	require.Contains(t, r.line("/ config.json"), "1 of")

	// A filter that was typed after the jump goes first; a pane that was chosen by its number stays.
	r.keys("i / resources enter esc")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	r.keys("esc")
	require.Equal(t, pane.PaneResources, r.app.Open)
	r.keys("i 2 esc esc")
	require.Equal(t, pane.PaneTools, r.app.Open)
}

func TestNotificationsAreFoldedIntoACount(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 160, 40).keys("v v") // as it is at first
	r.reg.SetSession(registry.Session{ID: "me", Screen: true, Client: "goblin"})
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Session: "me", Client: "goblin", Server: "files", Method: "resources/read", Name: "mine", Status: "success"})
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "github", Direction: registry.ToClient, Method: "roots/list", Status: "failure", Code: -32601})
	r.changed(registry.Traffic)
	require.NotContains(t, r.screen(), "notifications/resources")
	require.Contains(t, r.line("notifications of"), "+ notifications of files 1")
	require.Contains(t, r.line("mine"), "you")
	require.NotContains(t, r.line("roots/list"), "!", "no error")
	require.Contains(t, r.keys("/ roots enter g").screen(), "none: the client has no roots")
	r.keys("esc")
	require.NotContains(t, r.keys("/ err:yes enter").screen(), "roots/list")
	require.Contains(t, r.keys("esc").line("notifications of"), "v show all ")
	require.Contains(t, r.line("q quit"), "v show all ")
	r.keys("v")
	require.Contains(t, r.screen(), " mine ")
	require.Contains(t, r.screen(), "dated")
	require.NotContains(t, r.screen(), "notifications of")
	require.Contains(t, r.line("q quit"), "v clients only ")
	r.keys("v")
	require.NotContains(t, r.screen(), " mine ")
	require.Contains(t, r.line("notifications of"), "files 1; 1 request of screens")
	require.Contains(t, r.line("notifications of"), "v show requests ")
	r.keys("v")
	require.Contains(t, r.screen(), "notifications of files 1")
	require.Contains(t, r.keys("[ v").screen(), "only traffic has notifications")
}

func TestTrafficOfWhichNothingIsShownSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, 160, 40, "files")
	require.Contains(t, r.keys("5 ]").screen(), "No requests yet.")
	r.reg.SetSession(registry.Session{ID: "me", Screen: true, Client: "goblin"})
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Session: "me", Client: "goblin", Server: "files", Method: "tools/list", Status: "success"})
	r.changed(registry.Traffic)
	require.Contains(t, r.line("│>"), "tools/list")
	require.Contains(t, r.keys("v v").screen(), "Not shown: 1 request of screens.")
	require.NotContains(t, r.screen(), "No requests yet.")
	require.Contains(t, r.keys("v").line("│>"), "tools/list")
}

func TestClientsAreListedAndDisconnected(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("0")
	require.Contains(t, r.screen(), "Clients 3")
	require.Regexp(t, `client +version +transport +since +requests +errors +last +watches`, r.line("requests"))
	require.Regexp(t, `> claude-code +2\.1 +stdio +1 min +1 +1 min +1 *│`, r.line("> claude-code"))
	require.Regexp(t, `inspector +0\.17 +http +1 min +2 +!1 +\d+ s *│`, r.line("inspector  "))
	require.Contains(t, r.screen(), "this screen")
	require.Contains(t, r.line("session c1"), "revision 2025-11-25")
	require.Contains(t, r.line("profile coding"), "project /srv/red  answers forms")
	r.keys("j D")
	require.Contains(t, r.screen(), "Disconnect inspector?")
	require.Empty(t, r.backend.acts)
	r.keys("y")
	require.Equal(t, []string{"disconnect c2"}, r.backend.acts)
	require.Contains(t, r.screen(), "Disconnected inspector")
	r.keys("enter")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	require.Contains(t, r.line("session:=c2"), "2 of 3")
	r.keys("esc")
	require.Equal(t, pane.PaneResources, r.app.Open)
	r.keys("0 / inspector enter")
	require.Contains(t, r.screen(), "Clients 1/3")
	r.keys("esc").keys("O O O O O O")
	require.Regexp(t, `Clients 3 by errors ↓`, r.screen())
	require.NotEmpty(t, r.line("│> inspector"))
	r.keys("G D")
	require.Contains(t, r.screen(), "this screen is left by q")
	r.keys("q")
	require.Empty(t, r.app.Dialogs)
	x := strings.Index(r.line("goblin  work.yaml"), "clients")
	r.take(tea.MouseMsg{X: len([]rune(r.line("goblin  work.yaml")[:x])) + 2, Y: 0, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
	require.Contains(t, r.screen(), "Clients 3", "the number leads there")
}

// Where there are few lines, none is for what was not found, and a jump leaves no filter
// behind.
func TestASmallScreenHasNoRoomForTemplatesThatWereNotFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, 80, 24, "files").ready("files")
	r.list("files", registry.Resource, `{"uri":"a:1","name":"one"}`, `{"uri":"a:2","name":"two"}`, `{"uri":"a:3","name":"two"}`)
	r.list("files", registry.Template, `{"uriTemplate":"a:{n}","name":"any"}`, `{"uriTemplate":"b:{n}","name":"any"}`)
	r.backend.answers["resources/read"] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		return json.RawMessage(`{"contents":[{"uri":"a:2","text":"text"}]}`), nil
	}
	below := func() (lines int) { // the rule of templates, up to the box's end
		_, rest, found := strings.Cut(r.screen(), "├─ Templates")
		require.True(t, found, r.screen())
		rest, _, _ = strings.Cut(rest, "╰")
		return strings.Count(rest, "\n") - 1
	}
	r.keys("4 j enter")
	require.Contains(t, r.screen(), "1 text", "the detail is open")
	require.Equal(t, 2, below(), r.screen())
	r.keys("/ two enter")
	require.Contains(t, r.line("Templates"), "Templates 0/2")
	require.Zero(t, below(), r.screen())
	r.keys("i")
	require.Contains(t, r.screen(), "[5 Logs")
	require.Contains(t, r.screen(), "name:=")
	r.keys("esc 5")
	require.NotContains(t, r.screen(), "name:=", "the filter of a jump goes with it")
}
