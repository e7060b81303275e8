package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"goblin/tui/keys"
	"goblin/tui/uicontext"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"time"

	"goblin/registry"
)

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
	r.run(r.app.Again(uicontext.Request{Item: uicontext.Item{Kind: registry.Tool, Server: "gone", Name: "x", Listed: "gone_x"}, Method: "tools/call"}))
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
			text := r.app.Follow()
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
				r.app.Answered(uicontext.Request{Item: item, Show: true})
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

func TestARecordedCallIsOpenedInItsForm(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("5 ]").text("/method:tools/call").keys("enter k c")
	require.Contains(t, r.screen(), "Call weather_forecast")
	require.Contains(t, r.line("city *"), "Oslo")
	r.keys("esc enter c")
	require.Contains(t, r.line("city *"), "Oslo", "of an exchange, too")
	r.keys("esc esc esc").text("/method:resources/read").keys("enter")
	r.keys("c")
	require.Contains(t, r.screen(), "only recorded calls of tools and prompts have a form")
}

func TestTheLastCallsOfAToolAreAtHand(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("2 / forecast enter H")
	require.Contains(t, r.screen(), "this screen has not called it yet")
	for _, city := range []string{"Oslo", "Lima", "Quito"} {
		r.keys("c").text(city).keys("ctrl+s")
		r.clock.advance(time.Minute)
	}
	r.keys("H")
	s := r.screen()
	require.Contains(t, s, "Last calls of weather_forecast")
	require.Less(t, strings.Index(s, `{"city":"Quito"}`), strings.Index(s, `{"city":"Oslo"}`), "the newest first")
	require.Contains(t, s, `"city": "Quito"`)
	require.Contains(t, s, "It will rain.")
	r.keys("j j")
	require.Contains(t, r.screen(), `"city": "Oslo"`)
	r.keys("c")
	require.Contains(t, r.line("city *"), "Oslo", "to be called once more")
}

func TestToolsWithoutHintsAskWithATruth(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.list("weather", registry.Tool, `{"name":"plain","inputSchema":{"type":"object"}}`)
	r.changed(registry.AllChanges).keys("2 / plain enter c ctrl+s")
	require.Len(t, r.backend.asked(), 1)
	r.keys(".")
	require.Contains(t, r.screen(), "no hints: this tool may change data")
	require.Contains(t, r.screen(), "a do not ask again for this tool")
	r.keys("a")
	require.Len(t, r.backend.asked(), 2)
	r.keys(".")
	require.Len(t, r.backend.asked(), 3, "no question")
	r.list("weather", registry.Tool, `{"name":"plain","description":"another one","inputSchema":{"type":"object"}}`)
	r.changed(registry.AllChanges).keys(".")
	require.Len(t, r.backend.asked(), 3, "it is another tool now")
}

func TestACancelledCallIsKeptWithItsArguments(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 50, plainEnv).keys("2 / forecast enter c").text("Oslo")
	r.backend.answers["tools/call"] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		r.clock.advance(4 * time.Second)
		r.app.Calls.List[0].Cancel()
		return nil, fmt.Errorf("context canceled")
	}
	r.keys("ctrl+s")
	require.Contains(t, r.screen(), "weather_forecast: cancelled after 4000 ms")
	require.Contains(t, r.line(", after 4000 ms, with"), "12:0")
	require.Contains(t, r.screen(), `"city": "Oslo"`)
	r.keys("H")
	require.Contains(t, r.screen(), "Last calls of weather_forecast")
	require.Regexp(t, `12:0\S+ +4 s +cancelled +4000 ms .*"city":"Oslo"`, r.line("4000 ms  "))
	require.Contains(t, r.screen(), "cancelled after 4000 ms")
	require.NotContains(t, r.screen(), "failed")
	r.keys("c")
	require.Contains(t, r.line("city *"), "Oslo", "it is called again with the same arguments")
	r.answer("tools/call", `{"content":[]}`)
	r.keys("ctrl+s H")
	require.Contains(t, r.line("> "), " ok ")
	require.Contains(t, r.line("4000 ms"), "cancelled")
	r.keys("esc")
	require.NotContains(t, r.screen(), "after 4000 ms, with")
}
