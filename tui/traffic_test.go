package tui

import (
	"encoding/base64"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"goblin/registry/termtext"
	"goblin/tui/pane"
	"goblin/tui/uicontext"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// trafficRig is a screen that has seen a call, a failed read, a notification
// and a question of a server. Its Traffic tab is open.
func trafficRig(t testing.TB, w, h int) *rig {
	r := newRig(t, w, h, "files", "github")
	r.ready("files").ready("github")
	r.list("github", registry.Tool, `{"name":"create_issue","description":"Create an issue"}`, `{"name":"list_issues"}`)
	r.list("files", registry.Resource, `{"uri":"file:///srv/readme.md","name":"readme"}`, `{"uri":"file:///srv/other.md","name":"other"}`)
	r.list("files", registry.Template, `{"uriTemplate":"file:///log/{day}.txt","name":"log"}`)
	r.list("github", registry.Prompt, `{"name":"review"}`)
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
	return r.changed(registry.Traffic).keys("5 ] v") // notifications, too
}

// copied is what the terminal's clipboard got last.
func (r *rig) copied() string {
	r.t.Helper()
	all := regexp.MustCompile(`\x1b\]52;c;([A-Za-z0-9+/=]*)`).FindAllStringSubmatch(r.term.written.String(), -1)
	require.NotEmpty(r.t, all, "nothing was copied")
	text, err := base64.StdEncoding.DecodeString(all[len(all)-1][1])
	require.NoError(r.t, err)
	return string(text)
}

func TestTrafficShowsWhoAskedWhatOfWhomAndHowItEnded(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 200, 30).keys("P P") // no detail beside it
	line := r.line("github_create_issue")
	for _, want := range []string{"12:00:00.000", "claude", "→", "github", "tools/call", "1234 ms", "20.0 kB", "ok"} {
		require.Contains(t, line, want)
	}
	require.Contains(t, r.line("resources/read"), "!-32002")
	note := r.line("notifications/resources/updated")
	require.Contains(t, note, "←")
	require.Regexp(t, `readme.md +notification`, note)
	require.NotContains(t, note, " ms")
}

func TestTrafficKeepsItsColumnsAtEightyCells(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 80, 24)
	line := r.line("e_issue")
	for _, want := range []string{"12:00:00", "claude", "→", "github", "tools/call", "1234 ms", "ok"} {
		require.Contains(t, line, want)
	}
	require.Contains(t, r.line("s/read"), "!-32002")
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
		"readme":             {1, 2},
		"call issue":         {0},
	} {
		t.Run(typed, func(t *testing.T) {
			r := trafficRig(t, 200, 30).keys("/").text(typed).keys("enter")
			var got []int
			rows := r.app.Logs().Traffic.Table
			for _, i := range rows.Found {
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
	r := trafficRig(t, 80, 24).sorts("took")
	require.Contains(t, r.line("5000 ms"), "> ")
	require.Contains(t, r.screen(), "by took ↓")
	require.NotContains(t, r.screen(), "following")
	r.keys("f")
	require.Contains(t, r.screen(), "following")
	require.NotContains(t, r.screen(), "by took")
	r.keys("o")
	require.Contains(t, r.screen(), "by time ↓")
	require.NotContains(t, r.screen(), "following", "the newest stands first")
}

func TestTheDetailOfARequestHasBothSides(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 120, 60).keys("g")
	screen := r.screen()
	for _, want := range []string{"2026-11-20 12:00:00.000", "s-1  claude 2.1 over stdio", "from the client to the server", "1234.000 ms", "Request", `"title": "It's"`, "Response", `"created"`} {
		require.Contains(t, screen, want)
	}
	r.keys("j")
	require.Contains(t, r.screen(), "! error -32002, resource not found")
	require.Contains(t, r.screen(), "Error")
	r.keys("j")
	require.NotContains(t, r.screen(), "Response", "notifications have none")
}

func TestBodiesThatAreCutOrGoneAreSaidToBe(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 60, "files")
	long := `{"text":"` + strings.Repeat("x", 100_000) + `"}`
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "files", Method: "tools/call", Name: "first", Status: "success", Request: []byte(`{"name":"first"}`), Response: []byte(`{}`)})
	for range 200 {
		r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "files", Method: "tools/call", Name: "long", Status: "success", Request: []byte(`{"name":"long"}`), Response: []byte(long), Size: int64(len(long))})
	}
	r.changed(registry.Traffic).keys("5 ]")
	require.Contains(t, r.screen(), "the journal keeps the first 65.5 kB of 100.0 kB")
	r.keys("y")
	require.Contains(t, r.screen(), "without the response")
	require.NotContains(t, r.copied(), "xxx")
	r.keys("g")
	require.Contains(t, r.screen(), "16 B that had to make room for newer traffic")
	r.keys("Y")
	require.Contains(t, r.screen(), "No command: the params are not here whole")
}

func TestEnterShowsRequestAndResponseSideBySide(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 160, 40).keys("g enter")
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
	r := trafficRig(t, 100, 40).keys("g enter")
	require.NotContains(t, r.line("Request"), "Response")
	require.Contains(t, r.screen(), "[Response]")
	r.take(tea.WindowSizeMsg{Width: 160, Height: 40}, 0)
	require.Contains(t, r.line("Request"), "[Response]")
	for _, size := range [][2]int{{40, 10}, {80, 24}, {139, 20}, {140, 20}, {250, 60}, {41, 11}} {
		r.take(tea.WindowSizeMsg{Width: size[0], Height: size[1]}, 0)
		r.screen()
	}
}

func TestTheExchangeScrollsTheSideThatIsOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, 160, 24, "files")
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf(`"line %d."`, i))
	}
	body := []byte(`{"a":[` + strings.Join(lines, ",") + `]}`)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "files", Method: "tools/call", Name: "x", Status: "success", Request: body, Response: body})
	r.changed(registry.Traffic).keys("5 ] enter G")
	require.Contains(t, r.screen(), "line 199.")
	require.Contains(t, r.screen(), "line 0.", "the request did not move")
	r.keys("g")
	require.NotContains(t, r.screen(), "line 199.")
	d := r.app.FrontExchange()
	r.take(tea.MouseMsg{X: 20, Y: 10, Button: tea.MouseButtonWheelDown}, 0)
	first, _, _ := d.Views[0].Position()
	require.Equal(t, 4, first, "the wheel scrolls what is under it")
	for _, key := range []string{"j", "ctrl+d"} {
		before, _, _ := d.Views[1].Position()
		r.keys(key)
		after, _, _ := d.Views[1].Position()
		require.Greater(t, after, before, key)
	}
	r.keys("ctrl+u k k")
	first, _, _ = d.Views[1].Position()
	require.Equal(t, 1, first)
	r.take(tea.MouseMsg{X: 20, Y: 10, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
	require.Contains(t, r.screen(), "[Request]")
}

func TestKeysOfTheExchangeAreAboutItsRecordEvenWhenTheListMovesOn(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 160, 40).keys("G k k k enter")
	r.app.Logs().Traffic.Table.Following = true
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Method: "ping", Status: "success", Request: []byte(`{}`), Response: []byte(`{}`)})
	r.changed(registry.Traffic)
	r.keys("y")
	require.Contains(t, r.copied(), "tools/call")
	r.keys("e")
	require.Contains(t, r.term.opened[0], "pager traffic-1.json: {\n")
	require.Contains(t, r.term.opened[0], "create_issue")
	r.keys("i")
	require.Equal(t, pane.PaneTools, r.app.Open)
	require.Empty(t, r.app.Dialogs)
}

func TestTheFormOfARecordedCallTakesThePlaceOfItsExchange(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 160, 40).keys("G k k k enter c")
	require.Contains(t, r.screen(), "Call github_create_issue")
	require.Len(t, r.app.Dialogs, 1, "what comes of the call stands in the list behind it")
	r.keys("esc")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	r.keys("j enter c")
	require.Len(t, r.app.Dialogs, 1, "what has no form stays open")
	require.Contains(t, r.screen(), "Request")
}

func TestCopyGivesTheExchangeAsJSONRPC(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 80, 24).keys("g y")
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"github_create_issue","arguments":{"title":"It's","n":1},"_meta":{"progressToken":7}}}
{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"created"}]}}
`, r.copied())
	r.keys("j y")
	require.Contains(t, r.copied(), `"error":{"code":-32002,"message":"not there"}`)
	r.keys("j y")
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mcp://files/file:///srv/readme.md"}}`+"\n", r.copied())
}

func TestCopyGivesTheCommandOrSaysThatThereIsNone(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 80, 24).keys("g Y")
	require.Equal(t, `goblin call github_create_issue --args '{"title":"It'\''s","n":1}'`, r.copied())
	r.keys("j Y")
	require.Equal(t, `goblin read mcp://files/file:///srv/readme.md`, r.copied())
	r.app.Command = []string{"/opt/goblin", "stdio", "--config", "/etc/two words.yaml"}
	r.keys("Y")
	require.Equal(t, `goblin read mcp://files/file:///srv/readme.md --config '/etc/two words.yaml'`, r.copied(), "of the same daemon")
	r.keys("j j Y")
	require.Contains(t, r.line("No command"), "elicitation/create has none")
	require.Contains(t, r.copied(), `"jsonrpc"`)
}

func TestCommands(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, method, params, want string }{
		{"no arguments", "tools/call", `{"name":"a_b"}`, `goblin call a_b`},
		{"meta without the token", "tools/call", `{"name":"a","_meta":{"progressToken":1,"x":"y"}}`, `goblin call a --meta '{"x":"y"}'`},
		{"a name that looks like a flag", "tools/call", `{"name":"--args","arguments":{}}`, `goblin call --args '{}' -- --args`},
		{"prompt", "prompts/get", `{"name":"n/p","arguments":{"z":"two words","a":"$(rm)"}}`, `goblin prompt n/p --arg 'z=two words' --arg 'a=$(rm)'`},
		{"prompt with a number", "prompts/get", `{"name":"n","arguments":{"z":1}}`, ``},
		{"prompt with an odd name", "prompts/get", `{"name":"n","arguments":{"a=b":"1"}}`, ``},
		{"a URI that hides", "resources/read", `{"uri":"a:\u001b[201~\nrm -rf ~\u202e'"}`, `goblin read $'a:\033[201~\012rm -rf ~\342\200\256\047'`},
		{"arguments that hide", "tools/call", `{"name":"a","arguments":{"t":"` + "\u009b\u202e" + `"}}`, `goblin call a --args '{"t":"\u009b\u202e"}'`},
		{"not whole", "tools/call", `{"name":"a","argu`, ``},
		{"no name", "tools/call", `{}`, ``},
		{"another method", "tools/list", `{}`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, why := pane.ShellCommand(&registry.TrafficRecord{Method: tt.method, Request: []byte(tt.params)}, "")
			require.Equal(t, tt.want, got)
			require.Equal(t, got == "", why != "")
		})
	}
}

func FuzzQuotedWordsReachTheProgramAsTheyAre(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("no bash here")
	}
	for _, seed := range []string{"", "a b", "it's", "$(x)`y`", "\x1b[201~\nrm", "\u202eabc", `back\slash`, "-n", "\xff\xfe1", "世界", "\x7f8", "~"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) {
			t.Skip("no argument of a program can hold it")
		}
		word := termtext.Word(s)
		require.NotRegexp(t, `[\x00-\x1f\x7f]`, word)
		out, err := exec.Command(bash, "-c", "printf %s "+word).Output()
		require.NoError(t, err)
		require.Equal(t, s, string(out))
	})
}

func TestInspectGoesToTheItemAlsoWhenAFilterHidesIt(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 80, 24)
	r.keys("2 /").text("list_issues").keys("enter 5 g i")
	require.Equal(t, pane.PaneTools, r.app.Open)
	require.Contains(t, r.line("github_create_issue"), "> ")
	r.keys("5 j i")
	require.Equal(t, pane.PaneResources, r.app.Open)
	require.Contains(t, r.line("readme.md"), "> ")
	r.keys("5 j i")
	require.Equal(t, pane.PaneResources, r.app.Open, "an update is about its resource")
	r.keys("5 j i")
	require.Equal(t, pane.PaneServers, r.app.Open, "what is about no item leads to its server")
}

func TestARecordOfAnExpansionIsAboutItsTemplate(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 80, 24)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now().Add(time.Minute), Server: "files", Method: "resources/read", Name: "mcp://files/file:///log/monday.txt", Status: "success"})
	r.changed(registry.Traffic).keys("G")
	it := r.app.Logs().Item()
	require.False(t, it.IsEmpty())
	require.Equal(t, registry.Template, it.Kind)
	r.keys("i")
	require.Equal(t, pane.PaneResources, r.app.Open)
	require.True(t, r.app.Panes[pane.PaneResources].(*pane.Resources).TemplatesChosen)
}

func TestInspectOfAnItemShowsItsRequestsOnly(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 80, 24)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "github", Method: "tools/call", Name: "github_list_issues", Status: "success"})
	r.changed(registry.Traffic)
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
	r.changed(registry.Traffic)
	require.Equal(t, 1, r.app.Logs().Rows().Len())
}

func TestAWideScreenShowsTheLatestRequestsAboutTheItem(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 220, 40).keys("2 g")
	require.Contains(t, r.line("Requests"), "Tools")
	require.Contains(t, r.line("1234 ms"), "claude")
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Client: "vscode", Server: "github", Method: "tools/call", Name: "create_issue", Duration: 7 * time.Millisecond, Status: "failure", Code: -32603})
	screen := r.screen()
	require.Contains(t, screen, "!-32603")
	require.Less(t, strings.Index(screen, "!-32603"), strings.Index(screen, "1234 ms"), "the newest first")
	r.keys("j")
	require.Contains(t, r.screen(), "none so far")
	require.NotContains(t, r.screen(), "1234 ms")
}

func TestTheTabHoldsTheLastRecordsAndTellsOfTheOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 24, "files").keys("5 ]")
	for i := range 12_000 {
		r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "files", Method: "ping", Name: fmt.Sprint("n", i), Status: "success"})
		if i%5000 == 0 {
			r.changed(registry.Traffic)
		}
	}
	r.changed(registry.Traffic)
	require.Equal(t, pane.MostTraffic, r.app.Logs().Traffic.Count())
	require.Contains(t, r.screen(), "7000 older dropped")
	require.Contains(t, r.line("n11999"), "> ")
}

func TestForeignTextOfTrafficIsHarmless(t *testing.T) {
	t.Parallel()
	r := newRig(t, 160, 40, "files")
	evil := "\x1b]52;c;AAAA\x07\u202e世界\r\n"
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Client: evil, Session: evil, Server: "files", Method: "tools/" + evil, Name: evil, Status: evil, Request: []byte(`{"a":"` + evil), Response: []byte("\x1b[2J")})
	r.changed(registry.Traffic).keys("5 ]")
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

func TestTrafficOfEverySizeFillsTheScreenExactly(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{40, 10}, {47, 17}, {60, 18}, {80, 24}, {109, 30}, {120, 40}, {160, 45}, {200, 50}, {250, 60}} {
		r := trafficRig(t, size[0], size[1])
		r.screen()
		r.keys("enter")
		r.screen()
		r.keys("esc / e r r : y e s enter")
		r.screen()
		r.keys("esc l")
		r.screen()
	}
}

// flood appends what comes in a frame at 10,000 requests a second.
func flood(reg *registry.Registry) {
	for i := range 333 {
		reg.Traffic().Append(registry.TrafficRecord{Time: time.Unix(1, 0), Session: "s-1", Client: "claude", Server: "files", Method: "tools/call", Name: "files_read_" + string(rune('a'+i%26)), Duration: time.Millisecond, Size: 1000, Status: "success", Request: []byte(`{"name":"x"}`), Response: []byte(`{}`)})
	}
}

func BenchmarkTrafficRefresh(b *testing.B) {
	r := newRig(b, 250, 60, "files")
	r.keys("5 ]")
	for range 40 {
		flood(r.reg)
	}
	r.changed(registry.Traffic)
	b.ResetTimer()
	for b.Loop() {
		b.StopTimer()
		flood(r.reg)
		b.StartTimer()
		r.run(r.app.Logs().Refresh(registry.Traffic))
	}
}

func BenchmarkTrafficView(b *testing.B) {
	r := newRig(b, 250, 60, "files")
	for range 40 {
		flood(r.reg)
	}
	r.keys("5 ]")
	for b.Loop() {
		_ = r.app.View()
	}
}

func BenchmarkRefreshWhileClosed(b *testing.B) {
	r := newRig(b, 250, 60, "files")
	for range 40 {
		flood(r.reg)
	}
	for b.Loop() {
		r.run(r.app.Logs().Refresh(registry.Traffic))
	}
}

func BenchmarkRelatedOfAnotherItem(b *testing.B) {
	r := newRig(b, 250, 60, "files")
	for range 40 {
		flood(r.reg)
	}
	for i := 0; b.Loop(); i++ {
		r.app.Related(uicontext.Item{Kind: registry.Tool, Server: "files", Name: fmt.Sprint("none", i%2)}, uicontext.Rect{X: 0, Y: 2, W: 60, H: 56}, 1)
	}
}

func TestAnErrorThatAToolReportsIsTold(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now().Add(time.Minute), Server: "github", Method: "tools/call", Name: "github_search", Status: registry.StatusToolError, Request: []byte(`{}`), Response: []byte(`{"isError":true}`)})
	r.changed(registry.Traffic).keys("5 ] G")
	require.Contains(t, r.line("> "), "!tool")
	require.Contains(t, r.screen(), "the tool reports an error")
	require.Contains(t, r.screen(), "Response", "it answered")
}

func TestAnExchangeShowsItsIDsAndHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 60, "weather")
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now(), Session: "c9", Client: "web", Server: "weather", Method: "tools/call", Name: "weather_x", Status: "success",
		Request: []byte(`{"name":"weather_x"}`), Response: []byte(`{"content":[]}`),
		Wire: []byte("i\"a-1\"\nthttp\ns7\naPOST /mcp HTTP/1.1\naUser-Agent: web/1\naCookie: [hidden]\nbHTTP/1.1 200 OK\nbContent-Type: application/json\n" +
			"cPOST /x HTTP/1.1\ncX-Team: blue\x1b[2J\ndHTTP/2.0 200 OK\ndServer: nginx\n"),
	})
	r.changed(registry.Traffic).keys("5 ]")
	require.Contains(t, r.screen(), "{▸ 4 members}", "headers are folded")
	require.NotContains(t, r.screen(), "User-Agent")
	for _, keys := range []string{"enter"} { // the exchange at length
		r.keys(keys)
		text := r.screen()
		for _, want := range []string{
			`id +"a-1" from the client, 7 to the server`, `transport +client http`,
			`headers from the client`, `HTTP +POST /mcp HTTP/1\.1`, `User-Agent +web/1`, `Cookie +\[hidden\]`,
			`headers to the server`, `X-Team +blue\\x1b\[2J`, `headers from the server`, `Server +nginx`, `headers to the client`, `HTTP +HTTP/1\.1 200 OK`,
		} {
			require.Regexp(t, want, text)
		}
	}
	r.keys("y")
	require.Contains(t, r.copied(), `"id":"a-1"`)
}

// What comes by the second would push the requests out of the third column.
func TestRequestsBesideAnItemAreWithoutNotificationsButWhereTrafficShowsThem(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 250, 40).keys("5 v 4 g /readme enter")
	require.Contains(t, r.screen(), "Requests")
	require.Contains(t, r.line("claude "), "!-32002")
	require.NotContains(t, r.screen(), "notifications/resources/updated")
	r.keys("5 v v 4")
	require.Contains(t, r.line("notifications/resources/updated"), "12:00:02 ←")
	require.NotContains(t, r.screen(), "notifi…")
}

func TestTrafficBesideADetailHasTheClient(t *testing.T) {
	t.Parallel()
	r := trafficRig(t, 140, 40)
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now().Add(time.Minute), Session: "s-1", Client: "claude", Server: "everything", Method: "tools/call", Name: "everything_trigger-long-running-operation",
		Duration: 12 * time.Second, Size: 90, Status: "success",
	})
	for _, keys := range []string{"v", "v v"} { // without notifications and with
		line := r.changed(registry.Traffic).keys(keys).keys("G").line("│> ")
		for _, want := range []string{"claude", "every", "tools/call", "eration", "ok", "12 s"} {
			require.Contains(t, line, want)
		}
	}
}
