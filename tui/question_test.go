package tui

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/tui/dialog"
	"goblin/tui/uicontext"
)

// pendingQuestion is a request from a server that waits for an answer.
type pendingQuestion struct {
	r        *testUI
	answers  chan dialog.Reply
	withdraw context.CancelFunc
}

// ask sends a request like the gateway and waits until the UI has it.
func (r *testUI) ask(method, params string) pendingQuestion {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.t.Cleanup(cancel)
	one := pendingQuestion{r, make(chan dialog.Reply, 1), cancel}
	before := r.app.questions.Questions.Len()
	go func() {
		result, err := r.app.questions.Questions.Ask(ctx, method, json.RawMessage(params), r.clock.now())
		one.answers <- dialog.Reply{Result: result, Err: err}
	}()
	for came := false; !came; { // the end of an earlier one may have woken it
		<-r.app.wake
		came = r.app.questions.Questions.Len() > before
		r.run(r.app.questions.Sync())
	}
	return one
}

// awaitWake waits until the UI is woken, and lets it check for requests.
func (r *testUI) awaitWake() *testUI {
	r.t.Helper()
	<-r.app.wake
	r.run(r.app.questions.Sync())
	return r
}

func (one pendingQuestion) answer() (string, error) {
	got := <-one.answers
	return string(got.Result), got.Err
}

// passGrace advances the clock past the time in which a new dialog ignores keys.
func (r *testUI) passGrace() *testUI {
	r.clock.advance(dialog.KeyGrace)
	return r
}

const wantsColour = `{"message":"Which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}}`

func TestElicitationIsAnsweredDeclinedAndCancelled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(r *testUI)
		want string
	}{
		{"accept", func(r *testUI) { r.typeText("red").keys("ctrl+s") }, `{"action":"accept","content":{"colour":"red"}}`},
		{"decline", func(r *testUI) { r.keys("tab tab enter") }, `{"action":"decline"}`},
		{"decline, with any input", func(r *testUI) { r.typeText("red").keys("tab tab enter") }, `{"action":"decline"}`},
		{"cancel", func(r *testUI) { r.keys("esc") }, `{"action":"cancel"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newTestUI(t, 80, 24, "files")
			one := r.ask("elicitation/create", wantsColour)
			require.Contains(t, r.screen(), "Which colour?")
			require.Contains(t, r.screen(), "never enter passwords")
			tt.do(r.passGrace())
			got, err := one.answer()
			require.NoError(t, err)
			require.JSONEq(t, tt.want, got)
			require.Empty(t, r.app.Dialogs)
			require.Zero(t, r.app.questions.Questions.Len())
		})
	}
}

func TestAFormStaysUntilItsValuesAreValid(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	one := r.ask("elicitation/create", wantsColour)
	r.passGrace().keys("ctrl+s")
	require.Len(t, r.app.Dialogs, 1, "a colour is required")
	r.typeText("blue").keys("ctrl+s")
	got, err := one.answer()
	require.NoError(t, err)
	require.Contains(t, got, "blue")
}

func TestSamplingIsAnsweredByAHuman(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 100, 30, "files")
	one := r.ask("sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"What is 2+2?"}}],"systemPrompt":"Be brief.","maxTokens":100,"modelPreferences":{"hints":[{"name":"sonnet"}],"speedPriority":0.5}}`)
	for _, want := range []string{"What is 2+2?", "Be brief.", "100", "sonnet", "0.5", "Your answer"} {
		require.Contains(t, r.screen(), want)
	}
	r.passGrace().keys("ctrl+s")
	require.Contains(t, r.screen(), "nothing to send yet")
	r.typeText("4, <b>of course</b>").keys("enter").typeText("Bye")
	require.Contains(t, r.screen(), "4, <b>of course</b>")
	r.keys("ctrl+s")
	got, err := one.answer()
	require.NoError(t, err)
	require.JSONEq(t, `{"role":"assistant","content":{"type":"text","text":"4, <b>of course</b>\nBye"},"model":"human","stopReason":"endTurn"}`, got)
	require.Empty(t, r.app.Dialogs)
}

func TestSamplingIsRejected(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 100, 30, "files")
	one := r.ask("sampling/createMessage", `{"messages":[],"maxTokens":1}`)
	r.passGrace().typeText("half an answer").keys("esc")
	require.Len(t, r.app.Dialogs, 1, "one key must not discard the text")
	require.Contains(t, r.screen(), "esc again rejects")
	r.keys("esc")
	_, err := one.answer()
	require.EqualError(t, err, "User rejected sampling request")
	var coded interface{ ErrorCode() int }
	require.ErrorAs(t, err, &coded)
	require.Equal(t, -1, coded.ErrorCode())
}

func TestSamplingTakesPartsAndOddMembers(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 100, 60, "files")
	r.ask("sampling/createMessage", `{"messages":[{"role":"user","content":[{"type":"text","text":"part one"},{"type":"image","data":"AAAA","mimeType":"image/png"}]},{"role":7}],"maxTokens":"many","temperature":{}}`)
	require.Contains(t, r.screen(), "part one")
	require.Contains(t, r.screen(), "image/png")
}

func TestAnAddressIsShownAndNeverOpened(t *testing.T) {
	t.Parallel()
	const params = `{"mode":"url","message":"Sign in","url":"https://login.example.com/auth?x=1","elicitationId":"e1"}`
	for key, want := range map[string]string{"enter": `{"action":"accept"}`, "d": `{"action":"decline"}`, "esc": `{"action":"cancel"}`} {
		r := newTestUI(t, 80, 24, "files")
		one := r.ask("elicitation/create", params)
		require.Equal(t, "login.example.com", strings.Trim(r.line("  login.example.com "), "│ ─╭╮╰╯"), "the host has a line of its own")
		require.Contains(t, r.screen(), "https://login.example.com/auth?x=1")
		r.passGrace().keys("y")
		require.Contains(t, r.term.written.String(), "\x1b]52;c;")
		require.Empty(t, r.term.opened)
		r.keys(key)
		got, err := one.answer()
		require.NoError(t, err)
		require.JSONEq(t, want, got)
	}
}

func TestAnAddressThatWasNotCopiedIsNotAccepted(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	one := r.ask("elicitation/create", `{"mode":"url","message":"m","url":"https://example.com"}`)
	require.Contains(t, r.screen(), "enter accept (copy first)")
	r.passGrace().keys("enter enter")
	require.Len(t, r.app.Dialogs, 1, "it opened automatically, so the keys were meant for the list")
	require.Contains(t, r.screen(), "copy the URL with y first")
	r.keys("y")
	require.Contains(t, r.screen(), "enter accept ")
	r.keys("enter")
	got, _ := one.answer()
	require.JSONEq(t, `{"action":"accept"}`, got)
}

func TestNoSingleKeyAnswersAFormThatOpenedByItself(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"nothing":  `{"type":"object","properties":{}}`,
		"optional": `{"type":"object","properties":{"note":{"type":"string"}}}`,
		"choice":   `{"type":"object","properties":{"sure":{"type":"boolean"}}}`,
	} {
		for _, key := range []string{"enter", "space", "j", "y", "s", "c", "r", "tab", "up", "l", "x"} {
			r := newTestUI(t, 80, 24, "files")
			r.ask("elicitation/create", `{"message":"Go on?","requestedSchema":`+schema+`}`)
			r.passGrace().keys(key)
			require.Len(t, r.app.Dialogs, 1, "%s: %s", name, key)
		}
		r := newTestUI(t, 80, 24, "files")
		one := r.ask("elicitation/create", `{"message":"Go on?","requestedSchema":`+schema+`}`)
		r.passGrace().keys("enter enter")
		got, _ := one.answer()
		require.Contains(t, got, "accept", name)
	}
}

func TestAnOpenQuestionTakesTheNewLook(t *testing.T) {
	t.Parallel()
	for method, params := range map[string]string{
		"elicitation/create":     `{"message":"Go on?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"},"note":{"type":"string"}}}}`,
		"sampling/createMessage": `{"messages":[{"role":"user","content":{"type":"text","text":"What?"}}],"systemPrompt":"Be brief."}`,
	} {
		paint := func(themes ...string) string {
			r := newExampleUI(t, 100, 30, map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8"})
			r.app.themeName = themes[0]
			r.app.SetTheme()
			r.ask(method, params)
			r.passGrace().keys("x")
			r.app.View()
			d := r.app.Dialogs[0]
			for _, theme := range themes[1:] {
				r.app.themeName = theme
				r.app.SetTheme()
				uicontext.SetTheme(d)
			}
			return strings.Join(d.Lines(80, 20), "\n")
		}
		require.NotEqual(t, paint("dark"), paint("light"), method)
		require.Equal(t, paint("light"), paint("dark", "light"), method)
	}
}

func TestOddAddressesAreNamed(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://good.com@evil.com/":   "user name before the host",
		"http://example.com/":          "Not encrypted",
		"https://xn--pple-43d.com/":    "look like others",
		"https://g\u043e\u043egle.com": "look like others",
		"https://XN--PPLE-43d.com/":    "look like others",
		"https://a.\u043erg/":          "look like others",
		"https://a\u202eb.com/":        "look like others",
		"javascript:alert(1)":          "not a web URL",
		"file:///etc/passwd":           "not a web URL",
		"https://":                     "no host",
		"https://x/\x1b]52;c;AA\x07":   "invalid URL",
	} {
		r := newTestUI(t, 80, 24, "files")
		raw, err := json.Marshal(map[string]string{"mode": "url", "message": "m", "url": address})
		require.NoError(t, err)
		r.ask("elicitation/create", string(raw))
		require.Contains(t, r.screen(), want, address)
		require.NotContains(t, r.screen(), "\u202e")
		if strings.Contains(want, "no ") {
			require.NotContains(t, r.screen(), "copy", address)
			r.passGrace().keys("y enter")
			require.NotContains(t, r.term.written.String(), "\x1b]52", address)
			require.Len(t, r.app.Dialogs, 1, "it cannot be accepted: %s", address)
		}
	}
}

func TestThePortOfAnAddressStandsWithItsHost(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	r.ask("elicitation/create", `{"mode":"url","message":"m","url":"https://example.com:8443/x"}`)
	require.Equal(t, "example.com:8443", strings.Trim(r.line("  example.com:8443 "), "│ ─╭╮╰╯"))
}

func TestAnAnswerToAWithdrawnQuestionSaysSo(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	one := r.ask("elicitation/create", wantsColour)
	one.withdraw()
	r.passGrace().keys("esc")
	require.Contains(t, r.screen(), "The server has withdrawn its request")
}

func TestAQuestionTakesNoKeysThatWereMeantForSomethingElse(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	one := r.ask("elicitation/create", `{"mode":"url","message":"m","url":"https://example.com"}`)
	require.Len(t, r.app.Dialogs, 1)
	for range 5 { // the user is still typing
		r.clock.advance(dialog.KeyGrace - time.Millisecond)
		r.keys("enter")
		require.Len(t, r.app.Dialogs, 1)
	}
	require.Contains(t, r.screen(), "pause typing to use keys")
	r.passGrace().keys("d")
	got, _ := one.answer()
	require.JSONEq(t, `{"action":"decline"}`, got)
}

func TestAQuestionThatIsOpenedTakesKeysAtOnce(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files").keys("/")
	one := r.ask("elicitation/create", wantsColour)
	require.Empty(t, r.app.Dialogs, "a filter is being typed")
	require.Contains(t, r.screen(), "?1")
	r.typeText("x").keys("enter a")
	require.Len(t, r.app.Dialogs, 1)
	r.typeText("red").keys("ctrl+s")
	got, _ := one.answer()
	require.Contains(t, got, "red")
}

func TestAQuestionWaitsBehindADialog(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files").keys("w")
	r.ask("elicitation/create", wantsColour)
	require.Len(t, r.app.Dialogs, 1)
	require.NotContains(t, r.screen(), "Which colour?")
	require.Contains(t, r.screen(), "A server asks for input; press a to answer")
	r.keys("esc a")
	require.Contains(t, r.screen(), "Which colour?")
}

func TestQuestionsAreAnsweredInTheirOrder(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	first := r.ask("elicitation/create", strings.ReplaceAll(wantsColour, "Which colour?", "First?"))
	second := r.ask("elicitation/create", strings.ReplaceAll(wantsColour, "Which colour?", "Second?"))
	require.Contains(t, r.screen(), "First?")
	require.Contains(t, r.screen(), "1 of 2")
	r.passGrace().typeText("one").keys("ctrl+s")
	got, _ := first.answer()
	require.Contains(t, got, "one")
	require.Contains(t, r.screen(), "Second?", "the next one must open")
	r.typeText("zzz")
	r.passGrace().typeText("two").keys("ctrl+s")
	got, _ = second.answer()
	require.JSONEq(t, `{"action":"accept","content":{"colour":"two"}}`, got, "keys between the two must be ignored")
	r.keys("a")
	require.Contains(t, r.screen(), "no open requests from servers")
}

func TestAWithdrawnQuestionCloses(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	one := r.ask("elicitation/create", wantsColour)
	one.withdraw()
	_, err := one.answer()
	require.ErrorIs(t, err, context.Canceled)
	r.awaitWake()
	require.Empty(t, r.app.Dialogs)
	require.Contains(t, r.screen(), "Request withdrawn")
}

func TestAQuestionSaysHowLongItWaits(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	r.ask("elicitation/create", wantsColour)
	r.tick(75 * time.Second)
	require.Contains(t, r.screen(), "waiting 1 min")
}

func TestAQuestionSaysWhoAsksAndWhyHere(t *testing.T) {
	t.Parallel()
	url := `{"mode":"url","url":"https://x.example/","message":"m"}`
	sampling := `{"messages":[],"maxTokens":1}`
	for _, tt := range []struct {
		name, asker, want string
	}{
		{"own call", `{"server":"files","why":"own","call":"files_paint"}`, `From server "files", during your call of "files_paint".`},
		{"one of own calls", `{"server":"files","why":"own"}`, `From server "files", during one of your calls.`},
		{"no call", `{"server":"files","why":"none"}`, `From server "files", outside of any call, so no client can answer it.`},
		{"client that cannot", `{"server":"files","why":"unable","call":"p","client":"ed\u001b[2J"}`, `From server "files", during a call of "p" by client "ed\x1b[2J", which can't answer it.`},
		{"several clients", `{"server":"files","why":"ambiguous"}`, `From server "files", during calls by several clients.`},
		{"no asker", `3`, "Unknown server."},
	} {
		for method, params := range map[string][]string{"elicitation/create": {wantsColour, url}, "sampling/createMessage": {sampling}} {
			for _, p := range params {
				t.Run(tt.name+" "+method, func(t *testing.T) {
					r := newTestUI(t, 200, 40, "files")
					r.ask(method, p[:len(p)-1]+`,"_meta":{"goblin/asker":`+tt.asker+`}}`)
					require.Contains(t, strings.Join(strings.Fields(strings.NewReplacer("│", " ", "\n", " ").Replace(r.screen())), " "), tt.want)
				})
			}
		}
	}
}

func TestWhatNobodyCanAnswerIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method, params string
		code           int
	}{
		{"roots/list", `{}`, -32601},
		{"evil/\x1b[2J", `{}`, -32601},
		{"elicitation/create", `{"mode":"telepathy"}`, -32602},
		{"elicitation/create", `[]`, -32602},
		{"sampling/createMessage", `{"messages":"hello"}`, -32602},
	} {
		r := newTestUI(t, 80, 24, "files")
		_, err := r.ask(tt.method, tt.params).answer()
		var coded interface{ ErrorCode() int }
		require.ErrorAs(t, err, &coded, tt.method)
		require.Equal(t, tt.code, coded.ErrorCode(), tt.method)
		require.Empty(t, r.app.Dialogs)
	}
}

func TestAQuestionFromBeforeTheScreenIsThere(t *testing.T) {
	t.Parallel()
	q := dialog.NewQuestions()
	heard := make(chan struct{})
	q.OnChange(func() { close(heard) })
	go func() {
		_, _ = q.Ask(context.Background(), "elicitation/create", json.RawMessage(wantsColour), time.Now())
	}()
	<-heard
	r := newTestUI(t, 80, 24, "files")
	a := newApp(t.Context(), r.app.o, q, r.backend, r.term)
	<-a.wake
	a.questions.Sync()
	require.Len(t, a.Dialogs, 1)
	q.OnChange(func() {})
	q.Close()
}

func TestHostileQuestionsStayInTheirDialog(t *testing.T) {
	t.Parallel()
	evil := "x\x1b[2J\x1b]52;c;QQ==\x07\u202e\u200b\u0085 你好 " + strings.Repeat("long ", 300)
	for _, params := range []map[string]any{
		{"message": evil, "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{evil: map[string]any{"type": "string", "title": evil, "description": evil}}}},
		{"message": evil, "requestedSchema": evil},
		{"mode": "url", "message": evil, "url": "https://" + strings.Repeat("a.", 900) + "com/" + strings.Repeat("é", 4000)},
		{"mode": "url", "message": strings.Repeat("\n", 3000), "url": evil},
	} {
		raw, err := json.Marshal(params)
		require.NoError(t, err)
		requireHarmless(t, "elicitation/create", string(raw))
	}
	raw, err := json.Marshal(map[string]any{"systemPrompt": evil, "messages": []any{map[string]any{"role": evil, "content": map[string]any{"type": "text", "text": evil}}}, "stopSequences": []string{evil}})
	require.NoError(t, err)
	requireHarmless(t, "sampling/createMessage", string(raw))
}

func requireHarmless(t *testing.T, method, params string) {
	t.Helper()
	r := newTestUI(t, 80, 24, "files")
	r.ask(method, params)
	require.Len(t, r.app.Dialogs, 1)
	for _, size := range [][2]int{{80, 24}, {40, 10}, {47, 13}, {120, 40}, {250, 60}} {
		r.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]}, 0)
		r.screen() // checks the size of every line
		view := r.app.View()
		for _, bad := range []string{"\x1b[2J", "\x1b]", "\u202e", "\u200b", "\u0085", "\a"} {
			require.NotContains(t, view, bad)
		}
	}
}

func TestSamplingIsLaidOutAnewWhenTheScreenIsResized(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 60, 20, "files")
	r.ask("sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"`+strings.Repeat("word ", 40)+`"}}]}`)
	d := r.app.Dialogs[0].(*dialog.QuestionDialog).Inner.(*dialog.SamplingQuestion)
	require.Equal(t, 58, d.View.Doc().Width())
	r.send(tea.WindowSizeMsg{Width: 100, Height: 20}, 0)
	r.screen()
	r.awaitWake()
	require.Equal(t, 98, d.View.Doc().Width())
}

func TestASmallScreenOpensNothingUnseen(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 30, 8, "files")
	r.ask("elicitation/create", wantsColour)
	require.Empty(t, r.app.Dialogs)
	require.Equal(t, 1, r.app.questions.Questions.Len())
}
