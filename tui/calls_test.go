package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

func TestToolFormCallsAndShowsTheResult(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("2 / forecast enter c")
	r.typeText("Oslo").keys("ctrl+s")
	require.Equal(t, `tools/call {"name":"weather_forecast","arguments":{"city":"Oslo"}}`, r.backend.sentRequests()[0])
	s := r.screen()
	require.Contains(t, s, "It will rain.")
	require.Contains(t, s, `"mm": 4.5`)
	r.keys(".")
	require.Len(t, r.backend.sentRequests(), 2, ". repeats")
	require.Equal(t, r.backend.sentRequests()[0], r.backend.sentRequests()[1])
	r.keys("c ctrl+r")
	require.Contains(t, r.screen(), "Oslo", "C-r fills in the last arguments")
}

func TestRequiredArgumentsAreAskedForBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("2 / forecast enter c ctrl+s")
	require.Empty(t, r.backend.sentRequests())
	require.Len(t, r.app.Dialogs, 1)
}

func TestDestructiveToolsAskFirst(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("2 / delete enter c")
	r.typeText("goblin").keys("ctrl+s")
	require.Empty(t, r.backend.sentRequests())
	require.Contains(t, r.screen(), "This tool may delete or overwrite data.")
	r.keys("n")
	require.Empty(t, r.backend.sentRequests())
	require.Contains(t, r.screen(), "goblin", "the form is still there")
	r.keys("ctrl+s y")
	require.Len(t, r.backend.sentRequests(), 1)
	r.keys(".")
	require.Len(t, r.backend.sentRequests(), 1, "repeating asks too")
}

func TestAToolThatIsNotListedAnyMoreIsNotRepeatedUnasked(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.run(dialog.Again(r.app.Context, uicontext.Request{Item: uicontext.Item{Kind: registry.Tool, Server: "gone", Name: "x", Listed: "gone_x"}, Method: "tools/call"}))
	require.Contains(t, r.screen(), "This tool may delete or overwrite data.")
	require.Empty(t, r.backend.sentRequests())
}

func TestRunningCallShowsProgressAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.backend.answers["tools/call"] = func(_ json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
		progress(json.RawMessage(`{"progressToken":1,"progress":3,"total":4,"message":"halfway\u001b[2J"}`))
		return nil, errors.New("cancelled")
	}
	r.keys("2 / search enter c")
	cmd := r.app.Update(keyOf("ctrl+s"))
	require.Contains(t, r.screen(), "running")
	done := make(chan tea.Msg, 1)
	go func() { done <- cmd() }()
	r.send(<-done, 0)
	require.Contains(t, r.screen(), "cancelled")
	require.Zero(t, r.app.Calls.Len())
}

func TestPromptIsFetchedThroughItsForm(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("3 / review enter enter")
	r.typeText("https://example.com/1").keys("ctrl+s")
	require.Equal(t, `prompts/get {"name":"github/review","arguments":{"url":"https://example.com/1"}}`, r.backend.sentRequests()[len(r.backend.sentRequests())-1])
	require.Contains(t, r.screen(), "review this.")
	r.keys("esc / standup enter enter")
	require.Equal(t, `prompts/get {"name":"github/standup"}`, r.backend.sentRequests()[len(r.backend.sentRequests())-1], "no arguments, no form")
}

func TestEscCancelsTheCallThatIsLookedAt(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("2 / search enter")
	started := make(chan struct{})
	r.app.Backend = blockingBackend{r.backend, started}
	cmd := r.app.Update(keyOf("c"))
	require.Nil(t, cmd)
	cmd = r.app.Update(keyOf("ctrl+s"))
	ended := make(chan tea.Msg, 1)
	go func() { ended <- runFirst(cmd) }()
	<-started
	r.keys("1 X")
	require.Contains(t, r.screen(), "Cancelling github_search", "the only running call is cancelled")
	r.send(<-ended, 0)
	require.Contains(t, r.screen(), "github_search: cancelled")
	require.Nil(t, r.reg.Contents().Last(registry.Tool, "github", "search"), "a cancelled call has no result")
	r.keys("2")
	started = make(chan struct{})
	r.app.Backend = blockingBackend{r.backend, started}
	cmd = r.app.Update(keyOf("."))
	go func() { ended <- runFirst(cmd) }()
	<-started
	r.keys("esc")
	r.send(<-ended, 0)
	require.Contains(t, r.screen(), "github_search: cancelled")
}

// blockingBackend blocks each request until it is cancelled.
type blockingBackend struct {
	*fakeBackend
	started chan struct{}
}

func (b blockingBackend) Request(ctx context.Context, _ string, _ json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
	close(b.started)
	<-ctx.Done()
	return nil, ctx.Err()
}

// runFirst runs the first command of a batch.
func runFirst(cmd tea.Cmd) tea.Msg {
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		return runFirst(msg[0])
	default:
		return msg
	}
}

func TestRepeatingAsksUnlessTheToolSaysThatItIsHarmless(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("2 / create enter c").typeText("one").keys("ctrl+s")
	require.Len(t, r.backend.sentRequests(), 1)
	r.keys("r")
	require.Len(t, r.backend.sentRequests(), 1)
	require.Contains(t, r.screen(), "may delete or overwrite data")
	r.keys("n 3 .")
	require.Len(t, r.backend.sentRequests(), 1)
	require.Contains(t, r.screen(), "Call github_create_issue?", "the dialog must name the call")
	r.keys("y")
	require.Len(t, r.backend.sentRequests(), 2)
	r.setList("github", registry.Tool, `{"name":"create_issue","inputSchema":{"type":"object"},"annotations":{"destructiveHint":false}}`)
	require.Contains(t, r.keys(".").screen(), "This tool may change data again.", "its server states that it destroys nothing")
	r.keys("n")
}

func TestAConfirmationShowsAllThatIsSent(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("2 / delete enter c").typeText(strings.Repeat("x", 94) + "THE-END").keys("ctrl+s")
	require.Contains(t, strings.NewReplacer("│", "", "\n", "", " ", "").Replace(r.screen()), "xTHE-END")
}

func TestArgumentsOutliveTheCacheAndEscAsksBeforeTheyAreLost(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("2 / forecast enter c").typeText("Oslo").keys("ctrl+s")
	r.app.Reg.Contents().ClearAll()
	r.keys("c ctrl+r")
	require.Contains(t, r.screen(), "Oslo")
	r.keys("esc")
	require.Len(t, r.app.Dialogs, 1)
	require.Contains(t, r.screen(), "esc again discards your input")
	r.keys("esc")
	require.Empty(t, r.app.Dialogs)
}

func TestMetaIsRememberedWithTheArguments(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("2 / forecast enter c ctrl+e")
	r.send(tea.KeyMsg{Type: tea.KeyCtrlU}, 0)
	r.keys("tab").typeText(`{"trace":"abc"}`).keys("ctrl+e").typeText("Oslo").keys("ctrl+s")
	require.Len(t, r.backend.sentRequests(), 1)
	require.Contains(t, r.backend.sentRequests()[0], `"_meta":{"trace":"abc"}`)
	r.keys("c ctrl+r ctrl+e")
	require.Contains(t, r.screen(), `{"trace":"abc"}`)
}

func TestReadsOfOneResourceAreNotSentTwiceAtATime(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / config enter")
	started := make(chan struct{})
	r.app.Backend = blockingBackend{r.backend, started}
	cmd := r.app.Update(keyOf("enter"))
	go runFirst(cmd)
	<-started
	for range 4 {
		r.app.Update(keyOf("enter")) // a second request would close started again
	}
	require.Equal(t, 1, r.app.Calls.Len())
	r.keys("X")
}

// Different goroutines store, show and report an answer.
func TestAnAnswerIsGoneToInWhateverOrderItIsHeardOf(t *testing.T) {
	t.Parallel()
	for name, hear := range map[string]func(r *testUI, told tea.Msg){
		"shown before it is reported": func(r *testUI, told tea.Msg) {
			r.addAnswer("here it is").refresh(registry.AllChanges)
			require.NotContains(r.t, r.screen(), "here it is")
			r.send(told, 0)
		},
		"told while a text without it is made": func(r *testUI, told tea.Msg) {
			r.reg.SetState("weather", registry.ServerState{State: registry.StateConnecting, Listed: true})
			text := r.app.UpdateDetail()
			r.addAnswer("here it is")
			next := r.app.Update(told)
			r.run(text)
			r.run(next)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newExampleUI(t, 80, 24, plainEnv).keys("2 / forecast enter enter F esc")
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

// addAnswer stores a result of the selected tool.
func (r *testUI) addAnswer(text string) *testUI {
	it := r.app.Panes[r.app.Open].Item()
	r.reg.Contents().Put(&registry.Invocation{
		Kind: it.Kind, Server: it.Server, Name: it.Name, Listed: it.Listed, Success: true, Time: r.clock.now(),
		Result: json.RawMessage(`{"content":[{"type":"text","text":` + strconv.Quote(text) + `}]}`),
	})
	return r
}

func TestQuittingAsksWhileCallsRun(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.app.o.Daemon.Owner = false
	started := make(chan struct{})
	r.app.Backend = blockingBackend{r.backend, started}
	cmd := r.app.Calls.Start(uicontext.Request{Item: uicontext.Item{Kind: registry.Tool, Server: "github", Name: "search", Listed: "github_search"}, Method: "tools/call"})
	go runFirst(cmd)
	<-started
	r.keys("q")
	require.Contains(t, r.screen(), "1 call would be cancelled.")
	r.keys("n X")
}

func TestARecordedCallIsOpenedInItsForm(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("5 ]").typeText("/method:tools/call").keys("enter k c")
	require.Contains(t, r.screen(), "Call weather_forecast")
	require.Contains(t, r.line("city *"), "Oslo")
	r.keys("esc enter c")
	require.Contains(t, r.line("city *"), "Oslo", "the same holds for an exchange")
	r.keys("esc esc esc").typeText("/method:resources/read").keys("enter")
	r.keys("c")
	require.Contains(t, r.screen(), "only recorded tool and prompt calls can be repeated")
}

func TestTheLastCallsOfAToolAreAtHand(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2 / forecast enter H")
	require.Contains(t, r.screen(), "not called in this UI yet")
	for _, city := range []string{"Oslo", "Lima", "Quito"} {
		r.keys("c").typeText(city).keys("ctrl+s")
		r.clock.advance(time.Minute)
	}
	r.keys("H")
	s := r.screen()
	require.Contains(t, s, "Recent calls: weather_forecast")
	require.Less(t, strings.Index(s, "city=Quito"), strings.Index(s, "city=Oslo"), "the newest first")
	require.Contains(t, s, `"city": "Quito"`)
	require.Contains(t, s, "It will rain.")
	r.keys("j j")
	require.Contains(t, r.screen(), `"city": "Oslo"`)
	r.keys("c")
	require.Contains(t, r.line("city *"), "Oslo", "the form must contain the arguments")
}

// A failed past call begins with its error, secrets are hidden, and b adds a rule.
func TestAFailedPastCallShowsItsErrorFirst(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setAnswer("tools/call", `{"isError":true,"content":[{"type":"text","text":"no such city hunter2\u001b[31m"}]}`)
	r.keys("2 / forecast enter c").typeText("hunter2").keys("ctrl+s H")
	require.Regexp(t, `! error .* no such city \[hidden\]\S* +city=\[hidden\]`, r.line("! error"))
	s := r.screen()
	require.Less(t, strings.Index(s, "tool error after"), strings.Index(s, `"city": "[hidden]"`))
	r.keys("y")
	require.Equal(t, `{"city":"[hidden]"}`, r.clipboard())
	r.keys("b")
	require.Contains(t, r.screen(), "Add a rule")
	require.Contains(t, r.screen(), "weather_forecast")
	r.keys("enter")
	require.Contains(t, r.app.Flash.Text, "Added rule")
}

func TestToolsWithoutHintsAskWithATruth(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setList("weather", registry.Tool, `{"name":"plain","inputSchema":{"type":"object"}}`)
	r.refresh(registry.AllChanges).keys("2 / plain enter c ctrl+s")
	require.Len(t, r.backend.sentRequests(), 1)
	r.keys(".")
	require.Contains(t, r.screen(), "This tool may change data (")
	require.Contains(t, r.screen(), "a call, and don't ask again")
	r.keys("a")
	require.Len(t, r.backend.sentRequests(), 2)
	r.keys(".")
	require.Len(t, r.backend.sentRequests(), 3, "no confirmation expected")
	r.setList("weather", registry.Tool, `{"name":"plain","description":"another one","inputSchema":{"type":"object"}}`)
	r.refresh(registry.AllChanges).keys(".")
	require.Len(t, r.backend.sentRequests(), 3, "the definition changed, so it asks again")
}

func TestACancelledCallIsKeptWithItsArguments(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 50, plainEnv).keys("2 / forecast enter c").typeText("Oslo")
	r.backend.answers["tools/call"] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		r.clock.advance(4 * time.Second)
		r.app.Calls.Running[0].Cancel()
		return nil, fmt.Errorf("context canceled")
	}
	r.keys("ctrl+s")
	require.Contains(t, r.screen(), "weather_forecast: cancelled after 4.0 s")
	require.Contains(t, r.line(", after 4.0 s, arguments:"), "12:0")
	require.Contains(t, r.screen(), `"city": "Oslo"`)
	r.keys("H")
	require.Contains(t, r.screen(), "Recent calls: weather_forecast")
	require.Regexp(t, `12:0\S+ +4 s +cancelled +4.0 s .*city=Oslo`, r.line("4.0 s  "))
	require.Contains(t, r.screen(), "cancelled after 4.0 s")
	require.NotContains(t, r.screen(), "failed")
	r.keys("c")
	require.Contains(t, r.line("city *"), "Oslo", "expected a call with the same arguments")
	r.setAnswer("tools/call", `{"content":[]}`)
	r.keys("ctrl+s H")
	require.Contains(t, r.line("> "), " ok ")
	require.Contains(t, r.line("4.0 s"), "cancelled")
	r.keys("esc")
	require.NotContains(t, r.screen(), "after 4.0 s, with")
}
