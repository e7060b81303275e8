package tui

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/pane"
	"goblin/tui/uicontext"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
)

const configURI = "file:///srv/config.json"

func TestMovingTheCursorSendsNothing(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 j j k G g")
	require.Empty(t, r.backend.asked())
}

func TestR2_05_EnterAndReloadFetchEachTime(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 / config enter enter")
	require.Contains(t, r.screen(), `"name": "office"`)
	r.keys("enter").keys("r")
	require.Len(t, r.backend.asked(), 3)
	r.keys("esc j k / config enter")
	require.Contains(t, r.screen(), `"name": "office"`, "what was fetched is shown without asking again")
	require.Len(t, r.backend.asked(), 3)
}

func TestASearchSaysInHowMuchOfATextItLooked(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	text := "first\n" + strings.Repeat("0123456789 0123456789 0123456789\n", 90_000) + "the end\n"
	r.answer("resources/read", `{"contents":[{"uri":"`+configURI+`","mimeType":"text/plain","text":`+strconv.Quote(text)+`}]}`)
	r.keys("4 / config enter enter l /").text("the end")
	require.Contains(t, r.screen(), "0 of 0 in the first 1.0 of 2.8 MiB")
	r.keys("esc /").text("first").keys("enter")
	require.Contains(t, r.screen(), "1 of 1 in the first 1.0 of 2.8 MiB")
}

func TestReadErrorsAreShownWithTheServersWords(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.refuse("resources/read", "disk on fire")
	r.keys("4 / config enter enter")
	require.Contains(t, r.line("disk on fire"), "! ")
	inv := r.reg.Contents().Last(registry.Resource, "files", configURI)
	require.False(t, inv.Success)
	require.Nil(t, inv.Result)
}

func TestR2_12_SubscriptionsAreNeverAutomatic(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 / day-01 enter enter l esc")
	for _, asked := range r.backend.asked() {
		require.NotContains(t, asked, "subscribe")
	}
	r.keys("s")
	require.Contains(t, r.backend.asked(), `resources/subscribe {"uri":"mcp://files/file:///srv/notes/day-01.md"}`)
	require.Contains(t, r.screen(), "Subscribed to mcp://files/file:///srv/notes/day-01.md")
	r.changed(registry.Subscriptions).keys("s")
	require.Contains(t, r.backend.asked(), `resources/unsubscribe {"uri":"mcp://files/file:///srv/notes/day-01.md"}`)
}

func TestRefusedSubscriptionShowsTheServersWords(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.refuse("resources/subscribe", "no more watchers")
	r.keys("4 / day-01 enter s")
	require.Contains(t, r.line("refused"), "no more watchers")
	r.subscribes()
	r.keys("s")
	require.Contains(t, r.screen(), "Subscribed to", "it can be tried again")
}

func TestR2_01_SubscribeIsUnavailableWithAReason(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.reg.SetState("files", registry.ServerState{State: registry.StateReady, Listed: true, Capabilities: []byte(`{"resources":{}}`)})
	r.changed(registry.Servers).keys("4 / day-01 enter s")
	require.Contains(t, r.screen(), "files does not offer subscriptions; r reads again")
	require.Empty(t, r.backend.asked())
}

func TestR2_02_AnUpdateMarksTheRowAndIsReadOnceWhereItIsLookedAt(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 / config enter enter esc")
	require.NotContains(t, r.line("> "), "Δ", "opening it has seen the updates")
	r.answer("resources/read", `{"contents":[{"uri":"x","mimeType":"application/json","text":"{\"name\":\"office\",\"ports\":[80,8443]}"}]}`)
	before := len(r.backend.asked())
	for range 5 {
		r.reg.Touched("files", configURI)
	}
	r.changed(registry.Subscriptions | registry.Cached)
	require.Len(t, r.backend.asked(), before+1, "five updates in a row are one read")
	require.Contains(t, r.line("8443"), "▎", "changed lines are marked")
	require.NotContains(t, r.line(`"name": "office"`), "▎")
	require.NotContains(t, r.line("held by"), "▎", "only content is")
	require.NotContains(t, r.line("> "), "Δ", "it is being looked at")
	r.beat(time.Minute)
	require.NotContains(t, r.line("8443"), "▎", "for a moment")
	require.False(t, r.app.filtering || len(r.app.Dialogs) > 0, "nothing takes the focus")
}

func TestUpdatesOfWhatIsNotLookedAtReadNothing(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 G")
	r.reg.Touched("files", configURI)
	r.changed(registry.Subscriptions | registry.Cached)
	require.Empty(t, r.backend.asked())
	require.Contains(t, r.line("config.json"), "Δ3")
}

func TestOnlySubscribedRowsCanBeShown(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 S")
	require.Equal(t, 1, r.app.Panes[pane.PaneResources].Rows().Len())
	require.Contains(t, r.line("sub:yes"), "sub:yes", "it is a filter like any other")
	r.keys("S")
	require.Equal(t, 16, r.app.Panes[pane.PaneResources].Rows().Len())
}

func TestR2_11_TemplateFormShowsTheExpandedURIWhileTyping(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.refuse("completion/complete", "not now")
	r.keys("4 t j enter")
	require.Contains(t, r.screen(), "Expand mcp://github/repo://{owner}/{name}/readme")
	r.text("mark3labs")
	require.Contains(t, r.screen(), "mcp://github/repo://mark3labs/")
	r.keys("tab").text("mcp gö")
	require.Contains(t, r.screen(), "mcp://github/repo://mark3labs/mcp%20g%C3%B6/readme")
	r.keys("ctrl+s")
	last := r.backend.asked()[len(r.backend.asked())-1]
	require.Equal(t, `resources/read {"uri":"mcp://github/repo://mark3labs/mcp%20g%C3%B6/readme"}`, last)
	inv := r.reg.Contents().Last(registry.Template, "github", "repo://{owner}/{name}/readme")
	require.NotNil(t, inv)
	require.JSONEq(t, `{"owner":"mark3labs","name":"mcp gö"}`, string(inv.Params))
	require.Contains(t, r.screen(), `"name": "office"`)
}

func TestTemplateVariablesAreCompletedByTheServer(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 t j enter")
	require.Contains(t, r.backend.asked()[0], `"value":""`, "an empty field is asked about, too")
	r.text("go")
	require.Contains(t, r.screen(), "gobbler")
	asked := r.backend.asked()[1]
	require.True(t, strings.HasPrefix(asked, "completion/complete "))
	require.Contains(t, asked, `"ref/resource"`)
	require.Contains(t, asked, `"value":"go"`)
	r.keys("tab")
	require.Contains(t, r.screen(), "repo://goblin/")
}

func TestToolFormCallsAndShowsTheResult(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("2 / forecast enter c")
	r.text("Oslo").keys("ctrl+s")
	require.Equal(t, `tools/call {"name":"weather_forecast","arguments":{"city":"Oslo"}}`, r.backend.asked()[0])
	s := r.screen()
	require.Contains(t, s, "It will rain.")
	require.Contains(t, s, `"mm": 4.5`)
	r.keys(".")
	require.Len(t, r.backend.asked(), 2, ". repeats")
	require.Equal(t, r.backend.asked()[0], r.backend.asked()[1])
	r.keys("c ctrl+r")
	require.Contains(t, r.screen(), "Oslo", "C-r fills in the last arguments")
}

func TestRequiredArgumentsAreAskedForBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("2 / forecast enter c ctrl+s")
	require.Empty(t, r.backend.asked())
	require.Len(t, r.app.Dialogs, 1)
}

func TestDestructiveToolsAskFirst(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("2 / delete enter c")
	r.text("goblin").keys("ctrl+s")
	require.Empty(t, r.backend.asked())
	require.Contains(t, r.screen(), "may destroy something with this tool")
	r.keys("n")
	require.Empty(t, r.backend.asked())
	require.Contains(t, r.screen(), "goblin", "the form is still there")
	r.keys("ctrl+s y")
	require.Len(t, r.backend.asked(), 1)
	r.keys(".")
	require.Len(t, r.backend.asked(), 1, "repeating asks too")
}

func TestAToolThatIsNotListedAnyMoreIsNotRepeatedUnasked(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.run(dialog.Again(r.app.Context, uicontext.Request{Item: uicontext.Item{Kind: registry.Tool, Server: "gone", Name: "x", Listed: "gone_x"}, Method: "tools/call"}))
	require.Contains(t, r.screen(), "may destroy something with this tool")
	require.Empty(t, r.backend.asked())
}

func TestRunningCallShowsProgressAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.backend.answers["tools/call"] = func(_ json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
		progress(json.RawMessage(`{"progressToken":1,"progress":3,"total":4,"message":"halfway\u001b[2J"}`))
		return nil, errors.New("cancelled")
	}
	r.keys("2 / search enter c")
	cmd := r.app.Update(keyOf("ctrl+s"))
	require.Contains(t, r.screen(), "running")
	done := make(chan tea.Msg, 1)
	go func() { done <- cmd() }()
	r.take(<-done, 0)
	require.Contains(t, r.screen(), "cancelled")
	require.Zero(t, r.app.Calls.Len())
}

func TestPromptIsFetchedThroughItsForm(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("3 / review enter enter")
	r.text("https://example.com/1").keys("ctrl+s")
	require.Equal(t, `prompts/get {"name":"github/review","arguments":{"url":"https://example.com/1"}}`, r.backend.asked()[len(r.backend.asked())-1])
	require.Contains(t, r.screen(), "review this.")
	r.keys("esc / standup enter enter")
	require.Equal(t, `prompts/get {"name":"github/standup"}`, r.backend.asked()[len(r.backend.asked())-1], "no arguments, no form")
}

func TestCopyGoesToTheTerminalsClipboard(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 / config enter y")
	require.Contains(t, r.term.written.String(), "\x1b]52;c;bWNwOi8vZmlsZXMvZmlsZTovLy9zcnYvY29uZmlnLmpzb24=")
	r.keys("enter Y")
	require.Contains(t, r.screen(), "Copied the content")
}

func TestContentOpensInThePagerAndIsSaved(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 / config enter enter e")
	require.Len(t, r.term.opened, 1)
	require.Contains(t, r.term.opened[0], `pager config.json: {"name":"office"`)
	r.keys("E")
	require.Contains(t, r.term.opened[1], "editor config.json")
	r.keys("W enter")
	require.Contains(t, r.term.saved["config.json"], `"name":"office"`)
	require.Contains(t, r.screen(), "Saved /home/config.json")
	r.keys("W enter")
	require.Contains(t, r.screen(), "exists already")
}

func TestBlobsAreSavedAsBytes(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.answer("resources/read", `{"contents":[{"uri":"x","mimeType":"image/png","blob":"AAEC"}]}`)
	r.keys("4 / png enter enter e enter")
	require.Len(t, r.term.saved, 1)
	for _, data := range r.term.saved {
		require.Equal(t, "\x00\x01\x02", data)
	}
}

func TestClearForgetsWhatIsKept(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 / config enter enter")
	r.run(r.app.run(r.app.binding("clear")))
	r.changed(registry.Cached)
	require.Nil(t, r.reg.Contents().Last(registry.Resource, "files", configURI))
	require.NotContains(t, r.screen(), `"name": "office"`)
}

func TestContentOfAnotherRowIsNeverTaken(t *testing.T) {
	t.Parallel()
	r := office(t, 80, 24, plainEnv)
	r.keys("2 enter esc esc j e")
	require.Contains(t, r.term.opened[0], "github_delete_repo")
	require.NotContains(t, r.term.opened[0], "github_create_issue", "the panel that is closed shows another row")
}

func TestEscCancelsTheCallThatIsLookedAt(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("2 / search enter")
	started := make(chan struct{})
	r.app.Backend = blocking{r.backend, started}
	cmd := r.app.Update(keyOf("c"))
	require.Nil(t, cmd)
	cmd = r.app.Update(keyOf("ctrl+s"))
	ended := make(chan tea.Msg, 1)
	go func() { ended <- first(cmd) }()
	<-started
	r.keys("1 X")
	require.Contains(t, r.screen(), "Cancelling github_search", "the only one is meant")
	r.take(<-ended, 0)
	require.Contains(t, r.screen(), "github_search: cancelled")
	require.Nil(t, r.reg.Contents().Last(registry.Tool, "github", "search"), "a call that was left is no result")
	r.keys("2")
	started = make(chan struct{})
	r.app.Backend = blocking{r.backend, started}
	cmd = r.app.Update(keyOf("."))
	go func() { ended <- first(cmd) }()
	<-started
	r.keys("esc")
	r.take(<-ended, 0)
	require.Contains(t, r.screen(), "github_search: cancelled")
}

// blocking answers only when it is cancelled.
type blocking struct {
	*fakeBackend
	started chan struct{}
}

func (b blocking) Request(ctx context.Context, _ string, _ json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
	close(b.started)
	<-ctx.Done()
	return nil, ctx.Err()
}

// first runs the first command of a batch that gives a result.
func first(cmd tea.Cmd) tea.Msg {
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		return first(msg[0])
	default:
		return msg
	}
}

func TestRepeatingAsksUnlessTheToolSaysThatItIsHarmless(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("2 / create enter c").text("one").keys("ctrl+s")
	require.Len(t, r.backend.asked(), 1)
	r.keys("r")
	require.Len(t, r.backend.asked(), 1)
	require.Contains(t, r.screen(), "may destroy something")
	r.keys("n 3 .")
	require.Len(t, r.backend.asked(), 1)
	require.Contains(t, r.screen(), "Call github_create_issue?", "it says what it repeats")
	r.keys("y")
	require.Len(t, r.backend.asked(), 2)
}

func TestAConfirmationShowsAllThatIsSent(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("2 / delete enter c").text(strings.Repeat("x", 94) + "THE-END").keys("ctrl+s")
	require.Contains(t, strings.NewReplacer("│", "", "\n", "", " ", "").Replace(r.screen()), "xTHE-END")
}

func TestArgumentsOutliveTheCacheAndEscAsksBeforeTheyAreLost(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("2 / forecast enter c").text("Oslo").keys("ctrl+s")
	r.app.Reg.Contents().ClearAll()
	r.keys("c ctrl+r")
	require.Contains(t, r.screen(), "Oslo")
	r.keys("esc")
	require.Len(t, r.app.Dialogs, 1)
	require.Contains(t, r.screen(), "esc once more throws away what you typed")
	r.keys("esc")
	require.Empty(t, r.app.Dialogs)
}

func TestMetaIsRememberedWithTheArguments(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("2 / forecast enter c ctrl+e")
	r.take(tea.KeyMsg{Type: tea.KeyCtrlU}, 0)
	r.keys("tab").text(`{"trace":"abc"}`).keys("ctrl+e").text("Oslo").keys("ctrl+s")
	require.Len(t, r.backend.asked(), 1)
	require.Contains(t, r.backend.asked()[0], `"_meta":{"trace":"abc"}`)
	r.keys("c ctrl+r ctrl+e")
	require.Contains(t, r.screen(), `{"trace":"abc"}`)
}

func TestAFailedUnsubscribeCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.refuse("resources/unsubscribe", "not now")
	r.keys("4 / config enter s s")
	require.Equal(t, []string{
		`resources/unsubscribe {"uri":"mcp://files/file:///srv/config.json"}`,
		`resources/unsubscribe {"uri":"mcp://files/file:///srv/config.json"}`,
	}, r.backend.asked())
}

func TestTheOrderByUpdateFollowsUpdates(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4").sorts("last update")
	require.Contains(t, r.line("╭"), "by last update ↓")
	r.reg.SetSubscription(registry.SubscriptionState{Server: "files", URI: "file:///srv/notes/day-09.md", Status: registry.SubscriptionOn, Holders: 1})
	r.clock.advance(time.Second)
	r.reg.Touched("files", "file:///srv/notes/day-09.md")
	r.changed(registry.Subscriptions).keys("g")
	require.Contains(t, r.line("> "), "day-09.md")
}

func TestAFilterByAgeFollowsTheClock(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 / updated:<5m enter")
	require.Equal(t, 1, r.app.Panes[pane.PaneResources].Rows().Len())
	for range refilterBeats {
		r.beat(time.Minute)
	}
	require.Zero(t, r.app.Panes[pane.PaneResources].Rows().Len())
}

func TestAnEmptySectionLeavesTheOtherAlone(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 t / notes")
	require.NotContains(t, r.screen(), "Nothing matches")
	require.Contains(t, r.screen(), "day-02.md")
}

func TestReadsOfOneResourceAreNotSentTwiceAtATime(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("4 / config enter")
	started := make(chan struct{})
	r.app.Backend = blocking{r.backend, started}
	cmd := r.app.Update(keyOf("enter"))
	go first(cmd)
	<-started
	for range 4 {
		r.app.Update(keyOf("enter")) // a second request would close started again
	}
	require.Equal(t, 1, r.app.Calls.Len())
	r.keys("X")
}

func TestAnAnswerIsInSightInASmallPanel(t *testing.T) {
	t.Parallel()
	r := office(t, 100, 30, plainEnv)
	r.answer("resources/read", `{"contents":[{"uri":"x","mimeType":"text/plain","text":"here it is"}]}`)
	r.keys("4 t j enter").text("me").keys("tab").text("mine").screen()
	r.app.Opened = true
	r.screen()
	r.keys("ctrl+s")
	require.Contains(t, r.screen(), "here it is")
}

// An answer is kept, shown and told by different goroutines.
func TestAnAnswerIsGoneToInWhateverOrderItIsHeardOf(t *testing.T) {
	t.Parallel()
	for name, hear := range map[string]func(r *rig, told tea.Msg){
		"shown before it is told": func(r *rig, told tea.Msg) {
			r.answered("here it is").changed(registry.AllChanges)
			require.NotContains(r.t, r.screen(), "here it is")
			r.take(told, 0)
		},
		"told while a text without it is made": func(r *rig, told tea.Msg) {
			r.reg.SetState("weather", registry.ServerState{State: registry.StateConnecting, Listed: true})
			text := r.app.UpdateDetail()
			r.answered("here it is")
			next := r.app.Update(told)
			r.run(text)
			r.run(next)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := office(t, 80, 24, plainEnv).keys("2 / forecast enter enter")
			r.screen()
			item := r.app.Panes[r.app.Open].Item()
			hear(r, keys.FuncMsg(func() tea.Cmd {
				r.app.RequestAnswered(uicontext.Request{Item: item, Show: true})
				return nil
			}))
			require.Contains(t, r.screen(), "here it is")
		})
	}
}

// answered keeps an answer of the tool under the cursor.
func (r *rig) answered(text string) *rig {
	it := r.app.Panes[r.app.Open].Item()
	r.reg.Contents().Put(&registry.Invocation{
		Kind: it.Kind, Server: it.Server, Name: it.Name, Listed: it.Listed, Success: true, Time: r.clock.now(),
		Result: json.RawMessage(`{"content":[{"type":"text","text":` + strconv.Quote(text) + `}]}`),
	})
	return r
}

func TestTabWalksTheListsAndTheDetailPanel(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4 tab")
	require.True(t, r.app.Panes[pane.PaneResources].(*pane.Resources).TemplatesChosen)
	r.keys("tab")
	require.True(t, r.app.Inside)
	r.keys("tab")
	require.False(t, r.app.Inside)
	require.False(t, r.app.Panes[pane.PaneResources].(*pane.Resources).TemplatesChosen)
	r.keys("shift+tab")
	require.True(t, r.app.Inside)
	small := office(t, 80, 24, plainEnv).keys("2 tab")
	require.Equal(t, pane.PanePrompts, small.app.Open, "one list alone leads to the next pane")
}

func TestAFilterPutsTheCursorOnItsFirstMatch(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4 G / day")
	require.Contains(t, r.line("> "), "day-01.md")
}

func TestARowThatComesBackHasTheCursorAgain(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("2 G")
	require.Contains(t, r.line("> "), "weather_forecast")
	r.list("weather", registry.Tool)
	require.Contains(t, r.line("> "), "github_search")
	r.list("weather", registry.Tool, `{"name":"forecast","inputSchema":{"type":"object"}}`)
	require.Contains(t, r.line("> "), "weather_forecast")
	r.list("weather", registry.Tool)
	r.keys("k")
	r.list("weather", registry.Tool, `{"name":"forecast","inputSchema":{"type":"object"}}`)
	require.Contains(t, r.line("> "), "github_delete_repo", "unless its user moved on")
}

func TestAnAnswerOpensTheDetailOnASmallScreen(t *testing.T) {
	t.Parallel()
	r := office(t, 80, 24, plainEnv).keys("2 / forecast enter")
	require.NotContains(t, r.screen(), "original")
	r.keys("c").text("Oslo").screen()
	r.keys("ctrl+s").screen()
	require.True(t, r.app.DetailShown())
}

func TestToolsTellTheirArguments(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("2")
	require.Contains(t, r.line("title  "), "Create an issue")
	require.Contains(t, r.screen(), "required, text: One line")
	require.Contains(t, r.screen(), "one of low | high")
}

func TestQuittingAsksWhileCallsRun(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.app.o.Daemon.Owner = false
	started := make(chan struct{})
	r.app.Backend = blocking{r.backend, started}
	cmd := r.app.Calls.Start(uicontext.Request{Item: uicontext.Item{Kind: registry.Tool, Server: "github", Name: "search", Listed: "github_search"}, Method: "tools/call"})
	go first(cmd)
	<-started
	r.keys("q")
	require.Contains(t, r.screen(), "1 call of yours would be cancelled.")
	r.keys("n X")
}

func TestAPathThatIsTakenIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.term.saved["config.json"] = "mine"
	r.keys("4 / config enter enter W enter")
	require.Contains(t, r.screen(), "exists already")
	r.text("2").keys("enter")
	require.Contains(t, r.screen(), "Saved /home/config.json2")
	require.Equal(t, "mine", r.term.saved["config.json"])
}

func TestASmallTerminalTakesNoKeysBlindly(t *testing.T) {
	t.Parallel()
	r := office(t, 39, 9, plainEnv).keys("2 c")
	require.Empty(t, r.app.Dialogs)
	require.Equal(t, pane.PaneResources, r.app.Open)
}

func TestWhatIsTypedAfterAFilterIsAWordOfItsOwn(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4 / day enter / 0 7")
	require.Equal(t, 1, r.app.Panes[pane.PaneResources].Rows().Len())
}

func TestWhatATemplateStandsForCanBeWatched(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("4 t s")
	require.Contains(t, r.screen(), "c expands the template; s then subscribes to what it stands for")
	r.keys("enter").text("notes/today.md").keys("ctrl+s").screen()
	r.keys("s").changed(registry.Subscriptions)
	uri := "mcp://files/file:///srv/notes/today.md"
	require.Contains(t, r.backend.asked(), `resources/subscribe {"uri":"`+uri+`"}`)
	require.Contains(t, r.screen(), "s unsubscribe")
	r.answer("resources/read", `{"contents":[{"uri":"x","mimeType":"text/plain","text":"it changed"}]}`)
	r.reg.Touched("files", "file:///srv/notes/today.md")
	r.changed(registry.Subscriptions | registry.Cached)
	require.Contains(t, r.screen(), "it changed")
}

func TestSkillsStandBelowTheTemplates(t *testing.T) {
	t.Parallel()
	r := office(t, 200, 40, plainEnv)
	r.list("files", registry.Skill, `{"uri":"skill://git/SKILL.md","frontmatter":{"name":"git","description":"How we commit"},"resources":"dynamic"}`)
	r.changed(registry.Skills).keys("4")
	require.Contains(t, r.screen(), "Templates and skills 3")
	require.Regexp(t, `s\+ files +skill://git/SKILL.md +git +skill`, r.screen())
	r.keys("t G enter")
	require.Contains(t, r.backend.asked(), `resources/read {"uri":"skill://files/git/SKILL.md"}`)
	require.Contains(t, r.screen(), "How we commit")
}

func TestTheListThatAFilterLeavesRowsInHasTheCursor(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 30, "clock").ready("clock")
	r.list("clock", registry.Resource, `{"uri":"clock://now","name":"now"}`, `{"uri":"clock://now/utc","name":"utc"}`, `{"uri":"clock://zones","name":"zones"}`)
	r.list("clock", registry.Template, `{"uriTemplate":"time://{zone}","name":"a zone"}`)
	r.keys("4 t / n o w")
	require.Contains(t, r.screen(), "2 of 3", "the count covers it")
	r.keys("enter")
	require.Contains(t, r.line("/ now"), "2 of 3")
	require.Contains(t, r.keys("j").line("> "), "clock://now/utc")
	require.Contains(t, r.line("╭─ Resources"), "─ mcp://clock/clock://now/utc", "its detail stands beside")
	require.Contains(t, r.keys("t").screen(), "the filter leaves nothing there")
	require.True(t, r.keys("tab").app.Inside, "Tab goes on to the detail")
	require.Contains(t, r.keys("tab").line("> "), "clock://now/utc")
	require.Contains(t, r.keys("esc g / a space z enter").line("> "), "time://{zone}", "the other way round, too")
	require.Contains(t, r.line("/ a z"), "1 of 1")
	require.NotContains(t, r.keys("esc").line("> "), "{zone}", "as it was chosen")
}

func TestSubscribingToSeveralSaysToHowMany(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.subscribes()
	r.keys("4 / day enter g space space space s")
	require.Len(t, r.backend.asked(), 3)
	require.Contains(t, r.screen(), "Subscribed to 3 resources")
	require.Contains(t, r.changed(registry.Subscriptions).keys("s").screen(), "No longer subscribed to 3 resources")
	require.Contains(t, r.keys("g s").screen(), "mcp://files/", "one is called by its name")
}
