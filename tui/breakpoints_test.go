package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/dialog"
)

const deleteTool = `{"name":"delete_all","description":"Deletes a table","inputSchema":{"type":"object","properties":{"table":{"type":"string","enum":["orders","users"]},"limit":{"type":"integer"}},"required":["table"]},"annotations":{"destructiveHint":true}}`

// newRulesUI returns a UI with a server, rules, an approval and no stopped request.
func newRulesUI(t *testing.T, w, h int, env map[string]string, change ...func(*Options)) *testUI {
	t.Helper()
	clock := &fakeClock{current: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	reg := registry.New(registry.Options{Servers: []string{"odd"}, Now: clock.now})
	r := newTestUIWith(t, reg, clock, w, h, env, change...)
	r.setReady("odd").setList("odd", registry.Tool, deleteTool)
	reg.ListsComplete("odd")
	return r.setRules()
}

// setRules publishes the rules of the tests with stopped requests.
func (r *testUI) setRules(stopped ...registry.StoppedRequest) *testUI {
	r.t.Helper()
	r.reg.SetRules(&registry.RuleState{
		Stopped: stopped,
		Rules: []registry.RuleEntry{
			{ID: 1, Origin: registry.RuleFromUI, Text: `{when: "method:tools/call name:delete_*", then: stop}`, When: "method:tools/call name:delete_*", On: "request", Then: "stop", Enabled: true, Hits: 3, Left: -1},
			{ID: 2, Origin: registry.RuleFromFlag, Text: `{when: "server:files", then: delay, delay: 2s, p: 0.1}`, When: "server:files", On: "request", Then: "delay 2 s", Left: -1},
			{ID: 3, Origin: registry.RuleFromConfig, Line: 12, Text: `{when: "name:nope", on: answer, then: fail, count: 2}`, When: "name:nope", On: "answer", Then: "fail", Enabled: true, Left: 2, Problem: "no listed name matches nope"},
		},
		Approvals: []registry.CallApproval{{ID: "a1", When: "method:tools/call", Client: "codex", Server: "odd", Kind: "tool", Name: "counter", Session: "c1", Since: time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)}},
	})
	return r.refresh(registry.Rules)
}

// stop returns a call of codex that stopped now.
func (r *testUI) stop(id uint64, change ...func(*registry.StoppedRequest)) registry.StoppedRequest {
	s := registry.StoppedRequest{
		ID: id, Rule: 1, When: "method:tools/call name:delete_*", On: "request", Since: r.clock.now(), Until: r.clock.now().Add(50 * time.Second), Default: "deny",
		Client: "codex", Session: "c1", Server: "odd", Method: "tools/call", Name: "odd_delete_all", Number: 100 + id, Editable: true,
		Params: json.RawMessage(`{"name":"odd_delete_all","arguments":{"table":"users","limit":5},"_meta":{"progressToken":7}}`),
	}
	for _, set := range change {
		set(&s)
	}
	return s
}

func TestGoldenBreakpoints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, keys string
		stopped    int
	}{
		{"breakpoints", "!", 2},
		{"breakpoints-rules", "B j j", 0},
		{"breakpoints-change", "! enter", 1},
		{"breakpoints-add", "2 b", 0},
	} {
		open := func(w, h int, env map[string]string) *testUI {
			r := newRulesUI(t, w, h, env)
			var stopped []registry.StoppedRequest
			for i := range c.stopped {
				stopped = append(stopped, r.stop(uint64(7+i)))
			}
			r.setRules(stopped...).clock.advance(9 * time.Second)
			return r.keys(c.keys)
		}
		var frames string
		for _, size := range [][2]int{{80, 24}, {120, 40}, {160, 45}} {
			frames += open(size[0], size[1], plainEnv).goldenSection()
		}
		r := open(120, 40, colourEnv)
		r.goldenSection()
		golden(t, c.name, frames+"== 120x40 with colours\n"+r.app.View())
	}
}

func TestBAddsABreakpointForWhatIsSelected(t *testing.T) {
	t.Parallel()
	const text = `{when: "method:tools/call name:=odd_delete_all server:=odd", then: stop}`
	r := newRulesUI(t, 120, 40, plainEnv)
	r.keys("2 b")
	require.Contains(t, r.screen(), text, "the form shows the rule")
	r.keys("enter")
	require.Equal(t, []string{"rule add " + text}, r.backend.acts)
	require.Contains(t, r.line("Added rule"), "B lists the rules")

	r.keys("b") // the id of the added one is 1
	require.Contains(t, r.screen(), "── Rule 1 ──", "a rule is added once")
	require.Len(t, r.backend.acts, 1)

	r = newRulesUI(t, 120, 40, plainEnv)
	r.keys("1 b enter")
	require.Equal(t, []string{`rule add {when: "server:=odd", then: stop}`}, r.backend.acts)
}

func TestTheFormOfARuleOffersAllActions(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	r.addCall(1, "x", 1).keys("5 ] b")
	require.Contains(t, r.screen(), "client:=my-agent")
	r.keys("tab tab space tab").typeText("destructive:yes").keys("tab tab space").typeText("delay").keys("enter")
	r.typeText("2s").keys("tab").typeText("0.5").keys("tab").typeText("3").keys("ctrl+s")
	require.Equal(t, []string{`rule add {when: "method:tools/call name:=odd_counter server:=odd destructive:yes", then: delay, delay: 2s, p: 0.5, count: 3}`}, r.backend.acts)
}

func TestTheFormShowsWhyARuleIsRefused(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 80, 24, plainEnv)
	r.backend.fails = errors.New("when: unknown field \x1b[2Jnope")
	r.keys("2 b enter")
	require.Contains(t, r.line("unknown field"), "! when: unknown field")
	r.backend.fails = nil
	r.keys("enter")
	require.Len(t, r.backend.acts, 2)
	require.NotContains(t, r.screen(), "Add a rule")
}

func TestOnlyRequestsOfClientsGetRules(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Direction: registry.ToClient, Server: "odd", Method: "elicitation/create", Status: "success"})
	r.refresh(registry.Traffic).keys("5 ] b")
	require.Contains(t, r.screen(), "rules apply only to requests of clients")
	r.keys("4 b")
	require.Contains(t, r.screen(), "no call, tool or server selected")
}

func TestAStoppedRequestIsAnnouncedAndTakesNoKeys(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	r.keys("2 / d e")
	r.setRules(r.stop(7))
	r.typeText("s!d").keys("enter")
	require.Equal(t, "des!d", r.filterText())
	require.Empty(t, r.backend.acts)
	require.Contains(t, r.line("work.yaml"), "1 request stopped (!)")
	r.keys("esc c")
	r.setRules(r.stop(7), r.stop(8, func(s *registry.StoppedRequest) { s.Client = "cur\x1b[2Jsor" }))
	require.Contains(t, r.screen(), "Call odd_delete_all", "the form stays in front")
	require.Contains(t, r.line("is stopped"), "sor → odd odd_delete_all is stopped; ! shows it")
	r.setRules()
	require.NotContains(t, r.line("work.yaml"), "stopped")
}

func TestTheUserDecidesAboutAStoppedRequest(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]registry.Decision{
		"s":                               {Action: registry.DecideSend},
		"enter ctrl+s":                    {Action: registry.DecideSend},
		"enter left tab 1 ctrl+s":         {Action: registry.DecideSend, Params: json.RawMessage(`{"name":"odd_delete_all","arguments":{"table":"orders","limit":1},"_meta":{"progressToken":7}}`)},
		"d ask first ctrl+s":              {Action: registry.DecideDeny, Text: "askfirst"},
		"d ctrl+s":                        {Action: registry.DecideDeny},
		"r ctrl+s":                        {Action: registry.DecideAnswer, Result: json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`)},
		"r tab space ctrl+s":              {Action: registry.DecideAnswer, Result: json.RawMessage(`{"content":[{"type":"text","text":"ok"}],"isError":true}`)},
		"f tab broken ctrl+s":             {Action: registry.DecideFail, Code: -32603, Text: "broken"},
		"m ctrl+s":                        {Action: registry.DecideSend, Remember: registry.RememberTool},
		"m down down space ctrl+s":        {Action: registry.DecideSend, Remember: registry.RememberDefinition},
		"m down space ctrl+s":             {Action: registry.DecideSend, Remember: registry.RememberSession},
		"tab j j tab s":                   {Action: registry.DecideSend},
		"enter ctrl+e ctrl+e ctrl+s":      {Action: registry.DecideSend},
		"d lost esc esc s":                {Action: registry.DecideSend},
		"enter right right left 2 ctrl+s": {Action: registry.DecideSend, Params: json.RawMessage(`{"name":"odd_delete_all","arguments":{"table":"orders","limit":5},"_meta":{"progressToken":7}}`)},
	} {
		r := newRulesUI(t, 120, 40, plainEnv)
		r.setRules(r.stop(7)).keys("! " + keys)
		require.Equal(t, []string{fmt.Sprintf("decide 7 %+v", want)}, r.backend.acts, keys)
		require.Contains(t, r.line(": odd_delete_all"), "odd_delete_all", "the message names the call")
	}
}

func TestAnswersOfToolsWithAnOutputSchemaHaveStructuredContent(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	r.setList("odd", registry.Tool, strings.Replace(deleteTool, `"annotations"`, `"outputSchema":{"type":"object","properties":{"deleted":{"type":"integer"},"log":{"type":"string"}},"required":["deleted"]},"annotations"`, 1))
	r.setRules(r.stop(7)).keys("! r ctrl+s")
	want := registry.Decision{Action: registry.DecideAnswer, Result: json.RawMessage(`{"content":[{"type":"text","text":"ok"}],"structuredContent":{"deleted":0}}`)}
	require.Equal(t, []string{fmt.Sprintf("decide 7 %+v", want)}, r.backend.acts)
}

func TestAStoppedAnswerIsChangedAsJSON(t *testing.T) {
	t.Parallel()
	answer := func(s *registry.StoppedRequest) {
		s.On, s.Editable, s.Answer = "answer", false, json.RawMessage(`{"content":[{"type":"text","text":"gone"}]}`)
	}
	r := newRulesUI(t, 120, 40, plainEnv)
	r.setRules(r.stop(7, answer)).keys("!")
	require.Contains(t, r.screen(), `"text": "gone"`)
	require.NotContains(t, r.footer(), "remember")
	r.keys("m enter ctrl+s")
	require.Equal(t, []string{fmt.Sprintf("decide 7 %+v", registry.Decision{Action: registry.DecideSend})}, r.backend.acts)
	r.keys("enter").typeText(" ").keys("ctrl+s")
	require.Contains(t, r.backend.acts[1], "Result:[")

	r.setRules(r.stop(8, answer, func(s *registry.StoppedRequest) {
		s.IsError, s.Answer = true, json.RawMessage(`{"code":-32000,"message":"no"}`)
	})).clock.advance(dialog.KeyGrace)
	r.keys("enter")
	require.Contains(t, r.screen(), "Answer odd_delete_all", "an error is not a result")
}

func TestRequestsThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	r.setRules(r.stop(7, func(s *registry.StoppedRequest) { s.Editable = false })).keys("! enter")
	require.Contains(t, r.screen(), "this request cannot be changed; s sends it, d denies it")
	r.setRules(r.stop(8, func(s *registry.StoppedRequest) {
		s.Method, s.Name, s.Params = "resources/read", "odd://\x1b]0;x\x07", json.RawMessage(`{"uri":"odd://x"}`)
	})).keys("enter")
	require.Contains(t, r.screen(), `"uri": "odd://x"`, "other requests are raw JSON")
	r.keys("esc").setRules(r.stop(9, func(s *registry.StoppedRequest) { s.Method = "completion/complete" })).clock.advance(dialog.KeyGrace)
	r.keys("! m")
	require.Contains(t, r.screen(), "only calls of tools, prompts and resources can be remembered")
}

func TestTheFormClosesWhenTheRequestNoLongerWaits(t *testing.T) {
	t.Parallel()
	open := func(keys string) *testUI {
		r := newRulesUI(t, 120, 40, plainEnv)
		return r.setRules(r.stop(7)).keys("! " + keys)
	}
	record := func(r *testUI, status string) {
		r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Number: 107, Method: "tools/call", Status: status})
	}
	for why, end := range map[string]func(r *testUI){
		"already decided":                           func(r *testUI) { record(r, "success") },
		"the client cancelled it":                   func(r *testUI) { record(r, registry.StatusCancelled) },
		"the client disconnected":                   func(r *testUI) { record(r, registry.StatusLeft) },
		"time is up, the default was applied: deny": func(r *testUI) { r.clock.advance(time.Minute) },
	} {
		r := open("enter")
		end(r)
		r.setRules()
		require.NotContains(t, r.screen(), "Change odd_delete_all")
		require.Contains(t, r.line("odd_delete_all: "), why)

		r = open("enter left")
		end(r)
		r.setRules().keys("n y esc") // typed into the form
		require.Contains(t, r.screen(), "odd_delete_all no longer waits")
		require.Contains(t, r.screen(), why+".")
		require.Contains(t, r.screen(), `"table": "orders"`)
		r.clock.advance(dialog.KeyGrace)
		r.keys("y")
		require.Contains(t, r.clipboard(), `"table": "orders"`)
		require.NotContains(t, r.screen(), "no longer waits")
		require.Empty(t, r.backend.acts)
	}

	r := open("enter left") // refused before the state arrives
	r.backend.fails = errors.New("this request no longer waits")
	r.keys("ctrl+s")
	require.Contains(t, r.line("no longer waits"), "!", "the form shows the error")
}

func TestAKeyIsNotForTheRequestThatTakesThePlace(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	r.setRules(r.stop(7), r.stop(8)).keys("!")
	r.setRules(r.stop(8)).keys("s")
	require.Empty(t, r.backend.acts)
	require.Contains(t, r.screen(), "odd_delete_all was selected just now; press the key again")
	r.setRules(r.stop(8), r.stop(9)).keys("! s")
	require.Contains(t, r.backend.acts[0], "decide 9 ", "a chosen one is meant")
	r.setRules(r.stop(8)).clock.advance(dialog.KeyGrace)
	r.backend.acts = nil
	r.keys("s")
	require.Len(t, r.backend.acts, 1)
	require.Contains(t, r.backend.acts[0], "decide 8 ")
}

func TestAnOwnDecisionIsNotReportedAsDecidedByAnother(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	r.setRules(r.stop(7), r.stop(8)).keys("! s").setRules(r.stop(8))
	require.Contains(t, r.screen(), "Sent: odd_delete_all")
	r.setRules()
	require.Contains(t, r.screen(), "odd_delete_all: already decided", "another UI decided this one")
}

func TestTheKeysOfAStoppedRequestFit(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 80, 24, plainEnv)
	r.setRules(r.stop(7), r.stop(8)).keys("!")
	require.Contains(t, r.footer(), "! next  esc back")
}

func TestRulesAreChangedInTheList(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	r.keys("B space j space e D j j D g enter")
	require.Contains(t, r.screen(), "Change rule 1")
	r.keys("home").pressKeys(tea.KeyDelete).typeText("{ ").keys("ctrl+s")
	r.keys("D C")
	require.Contains(t, r.screen(), "Remove 1 rule?")
	r.keys("n C y")
	require.Equal(t, []string{
		"rule enabled 1 false", "rule enabled 2 true", "revoke a1",
		`rule change 1 { when: "method:tools/call name:delete_*", then: stop}`, "rule remove 1", "rule remove 1",
	}, r.backend.acts)
	r.keys("j D")
	require.Contains(t, r.screen(), "rule 2 is from --rule; change it there, or disable it here")
	r.keys("j e")
	require.Contains(t, r.screen(), "rule 3 is from config, line 12; change it there")
	require.Contains(t, r.screen(), "! no listed name matches nope")
}

func TestHitsAreLive(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 80, 24, plainEnv).keys("B")
	require.Regexp(t, `1 method:tools/call name:delete_\* .* 3│`, r.line("name:delete_"))
	s := *r.reg.Rules()
	s.Rules = slices.Clone(s.Rules)
	s.Rules[0].Hits = 41
	r.reg.SetRules(&s)
	r.refresh(registry.Rules)
	require.Regexp(t, ` 41│`, r.line("name:delete_"))
	require.Contains(t, r.screen(), "hits    41")
}

func TestStoppedRequestsShowWhereverTheyAre(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	r.reg.SetSession(registry.Session{ID: "c1", Client: "codex", Transport: "stdio", Since: r.clock.now()})
	r.backend.underWay = []registry.InFlight{{ID: "1", TrafficRecord: registry.TrafficRecord{
		Time: r.clock.now(), Number: 107, Session: "c1", Client: "codex", Server: "odd", Method: "tools/call", Name: "odd_delete_all", Status: registry.StatusInFlight,
	}}}
	r.setRules(r.stop(7)).clock.advance(9 * time.Second)
	r.keys("5 ]")
	r.run(r.app.Logs().ReadInFlight())
	require.Contains(t, r.screen(), "! 41 s")
	require.Contains(t, r.screen(), "stopped by a rule; ! decides about it")
	r.runCommand("timeline")
	require.Contains(t, r.line("delete_all"), "stopped, 41 s left")
	r.keys("0")
	require.Regexp(t, `stdio .*! 1 stopped`, r.screen())
}

func TestSecretsOfTheConfigAreHidden(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	r.setRules(r.stop(7, func(s *registry.StoppedRequest) {
		s.Params = json.RawMessage(`{"arguments":{"table":"hunter2"}}`)
	})).keys("! y")
	require.Contains(t, r.screen(), "[hidden]")
	require.NotContains(t, r.screen(), "hunter2")
	require.NotContains(t, r.clipboard(), "hunter2")
}

func TestTheMouseSelectsRules(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	r.setRules(r.stop(7)).keys("B").click("server:files", "server:files")
	require.Contains(t, r.screen(), "── Rule 2 ──")
	r.click("Rules 3", "Rules")
	require.Contains(t, r.screen(), "── Rule 1 ──", "headings are skipped")
	r.resize(80, 24)
	require.Contains(t, r.screen(), "when    method:tools/call")
}

func TestBreakpointsFitEverySize(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 120, 40, plainEnv)
	long := func(s *registry.StoppedRequest) {
		s.Client, s.Name = strings.Repeat("客户\x1b[2J", 40), strings.Repeat("n\u202e", 90)
	}
	r.setRules(r.stop(7, long), r.stop(8)).keys("!")
	for _, keys := range []string{"", "enter", "esc d", "esc j j tab"} {
		r.keys(keys)
		for w := 40; w < 180; w += 13 {
			for h := 10; h < 50; h += 6 {
				r.resize(w, h).screen()
			}
		}
	}
}

func TestListAndDetailOfRulesAreZoomed(t *testing.T) {
	t.Parallel()
	r := newRulesUI(t, 80, 24, plainEnv)
	r.setRules(r.stop(7)).runCommand("rules").keys("F")
	require.Contains(t, r.screen(), "Remembered approvals")
	require.NotContains(t, r.screen(), "History")
	r.keys("tab")
	require.NotContains(t, r.screen(), "Remembered approvals")
	require.Contains(t, r.screen(), "History")
	require.Contains(t, r.footer(), "esc back")
	r.keys("F")
	require.Contains(t, r.screen(), "Rules 3")
	r.keys("F esc esc")
	require.Contains(t, r.screen(), "Breakpoints 3", "esc restores, then leaves the detail")
	r.keys("esc")
	require.NotContains(t, r.screen(), "Breakpoints 3")
}

func TestWithoutRulesTheListNamesTheNextStep(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "odd").runCommand("rules")
	require.Contains(t, r.screen(), "No rules. b on a call, tool or server adds one.")
	r.keys("a")
	require.Contains(t, r.screen(), "Add a rule")
	r.keys("tab tab ctrl+s")
	require.Equal(t, []string{`rule add {when: "", then: stop}`}, r.backend.acts)
}

func TestRecordingsHaveNoRules(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv, ofRecording).keys("2 b")
	require.Contains(t, r.screen(), "this is a recording; nothing can be changed")
	r.keys("B")
	require.Contains(t, r.screen(), "No rules: this is a recording.")
	r.keys("a s space")
	require.NotContains(t, r.screen(), "Add a rule")
	require.Empty(t, r.backend.acts)
}
