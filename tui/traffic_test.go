package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/export"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
)

// newTrafficUI returns a UI whose Traffic tab has a call, a failed read, a notification
// and a server's request.
func newTrafficUI(t testing.TB, w, h int) *testUI {
	r := newTestUI(t, w, h, "files", "github")
	r.setReady("files").setReady("github")
	r.setList("github", registry.Tool, `{"name":"create_issue","description":"Create an issue"}`, `{"name":"list_issues"}`)
	r.setList("files", registry.Resource, `{"uri":"file:///srv/readme.md","name":"readme"}`, `{"uri":"file:///srv/other.md","name":"other"}`)
	r.setList("files", registry.Template, `{"uriTemplate":"file:///log/{day}.txt","name":"log"}`)
	r.setList("github", registry.Prompt, `{"name":"review"}`)
	at := r.clock.now()
	add := func(rec registry.TrafficRecord) {
		rec.Time = at
		at = at.Add(time.Second)
		r.reg.Traffic().Append(rec)
	}
	add(registry.TrafficRecord{
		Session: "s-1", Client: "claude", Server: "github", Method: "tools/call", Name: "github_create_issue",
		Duration: 1234 * time.Millisecond, Size: 20_000, Status: "success",
		Request:  []byte(`{"name":"github_create_issue","arguments":{"title":"It's","n":1},"_meta":{"progressToken":7}}`),
		Response: []byte(`{"content":[{"type":"text","text":"created"}]}`),
	})
	add(registry.TrafficRecord{
		Session: "s-1", Client: "claude", Server: "files", Method: "resources/read", Name: "mcp://files/file:///srv/readme.md",
		Duration: 300 * time.Microsecond, Size: 40, Status: "failure", Code: -32002,
		Request: []byte(`{"uri":"mcp://files/file:///srv/readme.md"}`), Response: []byte(`{"code":-32002,"message":"not there"}`),
	})
	add(registry.TrafficRecord{
		Session: "s-2", Client: "vscode", Server: "files", Direction: registry.ToClient, Method: "notifications/resources/updated",
		Name: "mcp://files/file:///srv/readme.md", Status: "notification", Request: []byte(`{"uri":"mcp://files/file:///srv/readme.md"}`),
	})
	add(registry.TrafficRecord{
		Session: "s-2", Client: "vscode", Server: "github", Direction: registry.ToClient, Method: "elicitation/create",
		Duration: 5 * time.Second, Size: 18, Status: "success", Request: []byte(`{"message":"sure?"}`), Response: []byte(`{"action":"accept"}`),
	})
	r.reg.SetSession(registry.Session{ID: "s-1", Client: "claude", Version: "2.1", Transport: "stdio"})
	return r.refresh(registry.Traffic).keys("5 ] S") // notifications, too
}

func TestTrafficShowsWhoAskedWhatOfWhomAndHowItEnded(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 200, 30).keys("P P") // no detail beside it
	line := r.line("github_create_issue")
	for _, want := range []string{"12:00:00 ", "claude", "→", "github", "tools/call", "1.2 s", "20.0 kB", "ok"} {
		require.Contains(t, line, want)
	}
	require.Contains(t, r.line("resources/read"), "!-32002")
	note := r.line("notifications/resources/updated")
	require.Contains(t, note, "←")
	require.Regexp(t, `readme.md +notification`, note)
	require.NotContains(t, note, " ms")
}

func TestTrafficRowsShowArgumentsAndErrorsInsteadOfKnownServers(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "github").setReady("github")
	add := func(name, status, request, response string) {
		r.reg.Traffic().Append(registry.TrafficRecord{
			Time: r.clock.now(), Client: "claude", Server: "github", Method: "tools/call", Name: name, Status: status,
			Duration: 1200 * time.Millisecond, Request: []byte(`{"arguments":` + request + `}`), Response: []byte(response),
		})
	}
	add("github_list", "success", `{"token":"hunter2","opt":{"a": [1, 2]},"name":"\u001b[2Jx"}`, `{}`)
	add("github_get", registry.StatusToolError, `{"n":1}`, `{"isError":true,"content":[{"type":"text","text":"no\nhunter2 token"}]}`)
	r.refresh(registry.Traffic).keys("5 ] P P")
	require.NotContains(t, r.line("time↑"), "server")
	require.NotContains(t, r.line("time↑"), "date")
	require.Regexp(t, `12:00:00 .*github_list +ok +1.2 s .*token=\[hidden\] opt=\{"a":\[1,2\]\} name=\\x1b\[2Jx`, r.screen())
	require.Regexp(t, `github_get +!tool error +1.2 s .*no \[hidden\] token  n=1`, r.screen())
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now(), Server: "github", Method: "tools/call", Name: "github_put", Status: "success", Request: []byte(`{"arguments":{"n":2}}`),
		Events: []registry.RuleEvent{{Rule: 3, Text: "stopped"}, {Rule: 3, Text: "sent\x1b[2J"}},
	})
	require.Regexp(t, `github_put +ok\* .*\[rule 3: sent\\x1b\[2J\] n=2`, r.refresh(registry.Traffic).screen())
	add("other", "success", `{}`, `{}`)
	require.Regexp(t, `github +tools/call +other`, r.refresh(registry.Traffic).screen())
	r.clock.advance(24 * time.Hour)
	add("github_new", "success", `{"to":"all"}`, `{}`)
	r.refresh(registry.Traffic)
	require.Regexp(t, `11-20 12:00:00 .*github_list .*1.2 s`, r.screen())
	require.NotRegexp(t, `11-21 12:00:00 .*github_new`, r.screen())
	require.Regexp(t, `github_list +ok +1.2 s`, r.resize(80, 24).screen(), "the duration always")
}

func TestTrafficFieldsFilter(t *testing.T) {
	t.Parallel()
	all := []string{"tools/call", "resources/read", "notifications/resources/updated", "elicitation/create"}
	for typed, want := range map[string][]int{
		"server:files":       {1, 2},
		"client:claude":      {0, 1},
		"method:tools/*":     {0},
		"method:=tools/call": {0},
		"name:create":        {0},
		"dir:in":             {0, 1},
		"dir:out":            {2, 3},
		"status:ok":          {0, 3},
		"status:-32002":      {1},
		"status:notif":       {2},
		"err:yes":            {1},
		"err:no":             {0, 2, 3},
		"ms:>500":            {0, 3},
		"ms:<1":              {1},
		"size:>10k":          {0},
		"session:s-2":        {2, 3},
		"ms:>1s":             {0, 3},
		"at:12:00:01":        {1},
		"at:12:00:02..":      {2, 3},
		"since:10m":          {0, 1, 2, 3},
		"error:there":        {1},
		"arg.title:It's":     {0},
		"body:sure":          {3},
		"readme":             {1, 2},
		"call issue":         {0},
	} {
		t.Run(typed, func(t *testing.T) {
			r := newTrafficUI(t, 200, 30).keys("/").typeText(typed).keys("enter")
			var got []int
			rows := r.app.Logs().Traffic.Table
			for _, i := range rows.Matches {
				for n, method := range all {
					if rows.Rows[i].Method == method {
						got = append(got, n)
					}
				}
			}
			require.Equal(t, want, got)
		})
	}
}

func TestSortingShowsTheSlowestFirstAndFollowsNoMore(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 80, 24).sortBy("took")
	require.Contains(t, r.line("5.0 s"), "> ")
	require.Contains(t, r.screen(), "by took ↓")
	require.NotContains(t, r.screen(), "following")
	r.keys("f")
	require.Contains(t, r.screen(), "following")
	require.NotContains(t, r.screen(), "by took")
	r.keys("o")
	require.Contains(t, r.screen(), "by time ↓")
	require.NotContains(t, r.screen(), "following", "the newest must be first")
}

func TestTheDetailOfARequestHasBothSides(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 120, 60).keys("g")
	for _, want := range []string{"claude  →  github", "1.2 s", "[Answer]", "created"} {
		require.Contains(t, r.screen(), want)
	}
	r.keys("l ] esc")
	for _, want := range []string{"2026-11-20 12:00:00.000", "s-1  claude 2.1 over stdio", "claude → github", "[Request]", `"title": "It's"`} {
		require.Contains(t, r.screen(), want)
	}
	r.keys("l [ esc")
	r.keys("j")
	require.Contains(t, r.screen(), "! error -32002, resource not found")
	require.Contains(t, r.screen(), "Error")
	r.keys("j")
	require.NotContains(t, r.screen(), "Answer", "notifications have none")
}

func TestBodiesThatAreCutOrGoneAreSaidToBe(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 60, "files")
	long := `{"text":"` + strings.Repeat("x", 100_000) + `"}`
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "files", Method: "tools/call", Name: "first", Status: "success", Request: []byte(`{"name":"first"}`), Response: []byte(`{}`)})
	for range 200 {
		r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "files", Method: "tools/call", Name: "long", Status: "success", Request: []byte(`{"name":"long"}`), Response: []byte(long), Size: int64(len(long))})
	}
	r.refresh(registry.Traffic).keys("5 ]")
	require.Contains(t, r.screen(), "first 65.5 kB of 100 kB; the rest is not recorded")
	r.keys("y")
	require.Contains(t, r.screen(), "without the response")
	require.NotContains(t, r.clipboard(), "xxx")
	r.keys("g")
	r.keys("l ] esc")
	require.Contains(t, r.screen(), "16 B, evicted by newer traffic")
	r.keys("Y")
	require.Contains(t, r.line("goblin command"), "not possible: the recorded params are truncated")
	require.Contains(t, r.line("Python"), "not possible")
}

func TestCopyGivesTheExchangeAsJSONRPC(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 80, 24).keys("g y")
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"github_create_issue","arguments":{"title":"It's","n":1},"_meta":{"progressToken":7}}}
{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"created"}]}}
`, r.clipboard())
	r.keys("j y")
	require.Contains(t, r.clipboard(), `"error":{"code":-32002,"message":"not there"}`)
	r.keys("j y")
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mcp://files/file:///srv/readme.md"}}`+"\n", r.clipboard())
}

func TestTheCopyMenuOffersTheRequestInSeveralLanguages(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 120, 40).keys("g Y")
	for _, language := range []string{"goblin command", "JSON-RPC", "curl", "TypeScript", "Python"} {
		require.NotEmpty(t, r.line(language))
	}
	r.keys("enter")
	require.Equal(t, `goblin call github_create_issue --args '{"title":"It'\''s","n":1}'`, r.clipboard())
	r.keys("Y j enter")
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"github_create_issue","arguments":{"title":"It's","n":1},"_meta":{"progressToken":7}}}`, r.clipboard())
	r.keys("Y j j enter")
	require.Contains(t, r.clipboard(), `curl -sS "$url"`)
	r.keys("Y j j j enter")
	require.Contains(t, r.clipboard(), `client.callTool({ name: "github_create_issue", arguments: {"title":"It's","n":1} })`)
	r.keys("enter Y j j j j")
	require.Contains(t, r.screen(), "asyncio.run(main())", "the menu shows the text")
	r.keys("enter")
	require.Contains(t, r.clipboard(), `session.call_tool("github_create_issue", {"title": "It's", "n": 1})`, "an exchange has the same menu")
	r.keys("esc j Y enter")
	require.Equal(t, `goblin read mcp://files/file:///srv/readme.md`, r.clipboard())
	r.app.Endpoint = export.Endpoint{Config: "/etc/two words.yaml", Command: []string{"/opt/goblin", "stdio", "--config", "/etc/two words.yaml"}, URL: "http://127.0.0.1:1234/mcp"}
	r.keys("Y enter")
	require.Equal(t, `goblin read mcp://files/file:///srv/readme.md --config '/etc/two words.yaml'`, r.clipboard(), "of the same daemon")
	r.keys("Y j j j enter")
	require.Contains(t, r.clipboard(), `new StreamableHTTPClientTransport(new URL("http://127.0.0.1:1234/mcp")`)
	r.keys("j j Y")
	require.Contains(t, r.line("goblin command"), "not possible: elicitation/create is not supported")
	require.Contains(t, r.line("TypeScript"), "not possible: the server sent it")
	r.keys("k enter")
	require.Contains(t, r.screen(), "no goblin command: elicitation/create is not supported")
}

func TestInspectGoesToTheItemAlsoWhenAFilterHidesIt(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 80, 24)
	r.keys("2 /").typeText("list_issues").keys("enter 5 g i")
	require.Equal(t, pane.PaneTools, r.app.Open)
	require.Contains(t, r.line("github_create_issue"), "> ")
	r.keys("5 j i")
	require.Equal(t, pane.PaneResources, r.app.Open)
	require.Contains(t, r.line("readme.md"), "> ")
	r.keys("5 j i")
	require.Equal(t, pane.PaneResources, r.app.Open, "an update must lead to its resource")
	r.keys("5 j i")
	require.Equal(t, pane.PaneServers, r.app.Open, "a request without an item must lead to its server")
}

func TestARecordOfAnExpansionIsAboutItsTemplate(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 80, 24)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now().Add(time.Minute), Server: "files", Method: "resources/read", Name: "mcp://files/file:///log/monday.txt", Status: "success"})
	r.refresh(registry.Traffic).keys("G")
	it := r.app.Logs().Item()
	require.False(t, it.IsEmpty())
	require.Equal(t, registry.Template, it.Kind)
	r.keys("i")
	require.Equal(t, pane.PaneResources, r.app.Open)
	require.True(t, r.app.Panes[pane.PaneResources].(*pane.Resources).TemplatesChosen)
}

func TestInspectOfAnItemShowsItsRequestsOnly(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 80, 24)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "github", Method: "tools/call", Name: "github_list_issues", Status: "success"})
	r.refresh(registry.Traffic)
	r.keys("2 g i")
	screen := r.screen()
	require.Contains(t, screen, "[Traffic")
	require.Contains(t, screen, "create_issue")
	require.NotContains(t, screen, "list_issues")
	r.keys("esc")
	require.Contains(t, r.screen(), "list_issues")
	r.run(r.app.Inspect(uicontext.Item{Server: "files"}))
	require.Equal(t, 2, r.app.Logs().Rows().Len())
	r.run(r.app.Inspect(uicontext.Item{Kind: registry.Template, Server: "files", Name: "file:///log/{day}.txt", Listed: "mcp://files/file:///log/{day}.txt"}))
	require.Equal(t, 0, r.app.Logs().Rows().Len())
	r.reg.Traffic().Append(registry.TrafficRecord{Server: "files", Method: "resources/read", Name: "file:///log/monday.txt", Status: "success"})
	r.refresh(registry.Traffic)
	require.Equal(t, 1, r.app.Logs().Rows().Len())
}

func TestAWideScreenShowsTheLatestRequestsAboutTheItem(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 220, 40).keys("2 g")
	require.Contains(t, r.line("Requests"), "Tools")
	require.Contains(t, r.line("1.2 s"), "claude")
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Client: "vscode", Server: "github", Method: "tools/call", Name: "create_issue", Duration: 7 * time.Millisecond, Status: "failure", Code: -32603})
	screen := r.screen()
	require.Contains(t, screen, "!-32603")
	require.Less(t, strings.Index(screen, "!-32603"), strings.Index(screen, "1.2 s"), "the newest first")
	r.keys("j")
	require.Contains(t, r.screen(), "none yet")
	require.NotContains(t, r.screen(), "1.2 s")
}

func TestTheTabHoldsTheLastRecordsAndTellsOfTheOthers(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 24, "files").keys("5 ]")
	for i := range 12_000 {
		r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "files", Method: "ping", Name: fmt.Sprint("n", i), Status: "success"})
		if i%5000 == 0 {
			r.refresh(registry.Traffic)
		}
	}
	r.refresh(registry.Traffic)
	require.Equal(t, pane.MaxTraffic, r.app.Logs().Traffic.Count())
	require.Contains(t, r.screen(), "7000 older dropped")
	require.Contains(t, r.line("n11999"), "> ")
}

func TestForeignTextOfTrafficIsHarmless(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 160, 40, "files")
	evil := "\x1b]52;c;AAAA\x07\u202e世界\r\n"
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Client: evil, Session: evil, Server: "files", Method: "tools/" + evil, Name: evil, Status: evil, Request: []byte(`{"a":"` + evil), Response: []byte("\x1b[2J")})
	r.refresh(registry.Traffic).keys("5 ]")
	check := func() {
		view := r.app.View()
		require.NotContains(t, view, "\x1b]")
		require.NotContains(t, view, "\x1b[2J")
		require.NotContains(t, view, "\u202e")
		r.screen()
	}
	check()
	r.keys("enter")
	check()
	r.keys("esc i")
	check()
}

func TestAnErrorThatAToolReportsIsTold(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now().Add(time.Minute), Server: "github", Method: "tools/call", Name: "github_search", Status: registry.StatusToolError, Request: []byte(`{}`), Response: []byte(`{"isError":true}`)})
	r.refresh(registry.Traffic).keys("5 ] G")
	require.Contains(t, r.line("> "), "!tool")
	require.Contains(t, r.screen(), "tool error")
	require.NotContains(t, r.screen(), "evicted", "it answered")
}

// Frequent notifications would push the requests out of the third column.
func TestRequestsBesideAnItemAreWithoutNotificationsButWhereTrafficShowsThem(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 250, 40).keys("5 S 4 g /readme enter")
	require.Contains(t, r.screen(), "Requests")
	require.Contains(t, r.line("claude "), "!-32002")
	require.NotContains(t, r.screen(), "notifications/resources/updated")
	r.keys("5 S S 4")
	require.Contains(t, r.line("notifications/resources/updated"), "12:00:02 ←")
	require.NotContains(t, r.screen(), "notifi…")
}

func TestTrafficBesideADetailHasTheClient(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 140, 40)
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now().Add(time.Minute), Session: "s-1", Client: "claude", Server: "everything", Method: "tools/call", Name: "everything_trigger-long-running-operation",
		Duration: 12 * time.Second, Size: 90, Status: "success",
	})
	for _, keys := range []string{"S", "S S"} { // without notifications and with
		line := r.refresh(registry.Traffic).keys(keys).keys("G").line("│> ")
		for _, want := range []string{"claude", "every", "tools/call", "eration", "ok", "12 s"} {
			require.Contains(t, line, want)
		}
	}
}

func TestACallWhoseClientLeftIsNoFailure(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Client: "gone", Server: "weather", Method: "tools/call", Name: "weather_forecast", Duration: time.Hour, Status: registry.StatusLeft})
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Client: "asks", Server: "weather", Method: "tools/call", Name: "weather_forecast", Duration: time.Hour + 20*time.Millisecond, UserWait: time.Hour, UserAsked: true, Status: "success"})
	r.refresh(registry.Traffic).keys("5 ] F")
	require.Contains(t, r.line("gone"), "client left")
	require.NotContains(t, r.line("gone"), "!")
	require.Regexp(t, `20 ms +1 h 0 min`, r.line("asks"))
	require.Regexp(t, "took +waited arguments", r.line("status"))
	require.Contains(t, r.line("claude-code"), "city=Oslo")
	r.keys("/ e r r : y e s enter")
	require.NotContains(t, r.screen(), "client left")
	r.keys("esc F 1 j j enter")
	require.Contains(t, r.screen(), "3.0 ms on average")
}

func TestUpdatesEraseNoCallsAndAreFolded(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 160, 40, plainEnv).keys("5 ] S F")
	for i := range 3600 {
		r.reg.Traffic().Append(registry.TrafficRecord{
			Time: r.clock.now().Add(time.Duration(i) * time.Second), Server: "files", Direction: registry.ToClient,
			Method: "notifications/resources/updated", Name: "clock://now", Status: "notification", Request: []byte(`{"uri":"clock://now"}`),
		})
		if i%100 == 0 {
			r.refresh(registry.Traffic)
		}
	}
	r.refresh(registry.Traffic)
	require.Contains(t, r.line("× "), "× 3600, last 13:00:59")
	require.Contains(t, r.screen(), "weather_forecast")
	require.Contains(t, r.screen(), "Traffic 5 ")
	require.NotContains(t, r.screen(), "dropped")
}

func TestTheErrorOfACancelledRequestIsHeadedAsOne(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 160, 60, "github").setReady("github")
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now(), Client: "claude", Server: "github", Method: "tools/call", Name: "github_x", Duration: time.Second, Status: registry.StatusCancelled,
		Request: []byte(`{"name":"x"}`), RequestSize: 12, Response: []byte(`{"code":-32603,"message":"Request cancelled"}`), ResponseSize: 45, Size: 45,
	})
	r.refresh(registry.Traffic).keys("5 ]")
	require.Regexp(t, "(?s)│ Error +│.*-32603", r.screen())
	require.Equal(t, 1, strings.Count(r.screen(), "-32603"))
	r.keys("y")
	require.Contains(t, r.clipboard(), `"error":{"code":-32603`)

	// A cancelled request that was answered anyway has a result.
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now(), Client: "claude", Server: "github", Method: "tools/call", Name: "github_y", Status: registry.StatusCancelled,
		Response: []byte(`{"content":[{"type":"text","text":"late"}]}`), ResponseSize: 43,
	})
	r.refresh(registry.Traffic).keys("G")
	require.Regexp(t, "│ late +│", r.screen())
	r.keys("y")
	require.Contains(t, r.clipboard(), `"result":{"content"`)
}

func TestTimeInTrafficIsWhenARequestBegan(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 250, 40).keys("g l ] ] esc")
	require.Contains(t, r.line("began"), "12:00:00.000")
	require.Contains(t, r.line("ended"), "12:00:01.234")
	require.Contains(t, r.keys("P P").line("create_issue"), "12:00:00 ")
}

func TestWhatWasCancelledIsNoError(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 160, 40, "github").setReady("github").keys("P P")
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Client: "claude", Server: "github", Method: "tools/call", Name: "github_x", Duration: time.Second, Status: registry.StatusCancelled})
	r.refresh(registry.Traffic).keys("5 ]")
	require.Contains(t, r.line("github_x"), "cancelled")
	require.NotContains(t, r.screen(), "!cancelled")
	require.Contains(t, r.keys("/ err:yes enter").screen(), "0 of 1")
}

func TestEscGoesBackFromAJump(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2 / forecast enter i")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	require.Contains(t, r.screen(), "name:=")
	r.keys("esc")
	require.Equal(t, pane.PaneTools, r.app.Open)
	require.Contains(t, r.line("/ forecast"), "1 of")
	r.keys("5")
	require.NotContains(t, r.screen(), "name:=", "the filter before the jump must be restored")
	r.keys("1 e")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	r.keys("esc")
	require.Equal(t, pane.PaneServers, r.app.Open)

	// Jumps can be chained, and undone one by one.
	r.keys("esc esc 4 / config.json enter i")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	r.keys("i")
	require.Equal(t, pane.PaneResources, r.app.Open)
	r.keys("esc")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	r.keys("esc")
	require.Equal(t, pane.PaneResources, r.app.Open)
	require.Contains(t, r.line("/ config.json"), "1 of")

	// Esc first removes a filter typed after the jump. A pane chosen by its number stays.
	r.keys("i / resources enter esc")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	r.keys("esc")
	require.Equal(t, pane.PaneResources, r.app.Open)
	r.keys("i 2 esc esc")
	require.Equal(t, pane.PaneTools, r.app.Open)
}

func TestNotificationsAreFoldedIntoACount(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40).keys("S S") // the default
	r.reg.SetSession(registry.Session{ID: "me", Screen: true, Client: "goblin"})
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Session: "me", Client: "goblin", Server: "files", Method: "resources/read", Name: "mine", Status: "success"})
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "github", Direction: registry.ToClient, Method: "roots/list", Status: "failure", Code: -32601})
	r.refresh(registry.Traffic)
	require.NotContains(t, r.screen(), "notifications/resources")
	require.Contains(t, r.line("notifications: "), "+ notifications: files 1")
	require.Contains(t, r.line("mine"), "you")
	require.NotContains(t, r.line("roots/list"), "!", "no error")
	require.Contains(t, r.keys("/ roots enter g").screen(), "not offered (the client has no roots)")
	r.keys("esc")
	require.NotContains(t, r.keys("/ err:yes enter").screen(), "roots/list")
	require.Contains(t, r.keys("esc").line("notifications: "), "S show all ")
	require.Contains(t, r.line("q quit"), "S show all ")
	r.keys("S")
	require.Contains(t, r.screen(), " mine ")
	require.Contains(t, r.screen(), "dated")
	require.NotContains(t, r.screen(), "notifications of")
	require.Contains(t, r.line("q quit"), "S clients only ")
	r.keys("S")
	require.NotContains(t, r.screen(), " mine ")
	require.Contains(t, r.line("notifications: "), "files 1; 1 request of UIs")
	require.Contains(t, r.line("notifications: "), "S show requests ")
	r.keys("S")
	require.Contains(t, r.screen(), "notifications: files 1")
	require.Contains(t, r.keys("[ S").screen(), "only traffic has notifications")
}

func TestTrafficOfWhichNothingIsShownSaysSo(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 160, 40, "files")
	require.Contains(t, r.keys("5 ]").screen(), "No requests yet.")
	r.reg.SetSession(registry.Session{ID: "me", Screen: true, Client: "goblin"})
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Session: "me", Client: "goblin", Server: "files", Method: "tools/list", Status: "success"})
	r.refresh(registry.Traffic)
	require.Contains(t, r.line("│>"), "tools/list")
	require.Contains(t, r.keys("S S").screen(), "Hidden: 1 request of UIs.")
	require.NotContains(t, r.screen(), "No requests yet.")
	require.Contains(t, r.keys("S").line("│>"), "tools/list")
}

func TestAnItemWithoutRequestsSaysSo(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 120, 40).keys("2 / list enter i")
	require.Contains(t, r.screen(), "No requests about it yet.")
	require.Contains(t, r.screen(), "esc goes back.")
	require.NotContains(t, r.screen(), "No matches")
	r.keys("/").typeText("nonsense").keys("enter")
	require.Contains(t, r.screen(), "No matches")
	r.keys("esc esc 2 esc / list enter i esc")
	require.Equal(t, pane.PaneTools, r.app.Open)
}

// Arguments and errors stay visible though one name is as wide as the terminal.
func TestALongNameLeavesRoomForArgumentsAndErrors(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "files")
	add := func(server, method, name, status, request, response string) {
		r.reg.Traffic().Append(registry.TrafficRecord{
			Time: r.clock.now(), Session: "a", Client: "agent", Server: server, Method: method, Name: name, Status: status,
			Duration: 1200 * time.Millisecond, Request: []byte(request), Response: []byte(response),
		})
	}
	add("files", "resources/read", "mcp://files/file:///srv/"+strings.Repeat("very/deep/", 12)+"readme.md", "success", `{}`, `{}`)
	for range 4 {
		add("files", "tools/call", "files_read", "success", `{"arguments":{"path":"苹果"}}`, `{}`)
	}
	add("files", "tools/call", "files_read", "tool error", `{"arguments":{}}`, `{"isError":true,"content":[{"type":"text","text":"no such file"}]}`)
	add(registry.Local, "tools/call", "search_tools", "success", `{"arguments":{"query":"x"}}`, `{}`)
	r.keys("5 ] F").refresh(registry.AllChanges)
	require.Contains(t, r.line("time↑"), "arguments")
	require.NotContains(t, r.line("time↑"), "server", "the names contain it, or are Goblin's own")
	require.Regexp(t, `files_read .* 1.2 s path=苹果`, r.screen())
	require.Regexp(t, `files_read .* 1.2 s no such file`, r.screen())
	require.Regexp(t, `resources/read files/file:///srv/very.*….*readme.md .* 1.2 s`, r.screen())
	require.Regexp(t, `read files/f.*….*\.md +ok +1.2 s`, r.resize(80, 24).screen())
}
