package tui

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// exampleSaved are saved calls of the example.
var exampleSaved = map[string]string{
	"smoke/forecast.yaml":       "description: Rain in Oslo\ncall: forecast\narguments: {city: \"${CITY:-Oslo}\"}\ncapture: {mm: \"$.structuredContent.mm\"}\nexpect:\n  - {path: \"$.structuredContent.rain\", equals: true}\n  - {time: 2s}\n",
	"smoke/rain amount.yaml":    "call: forecast\narguments: {city: Oslo}\nexpect:\n  - {path: \"$.structuredContent.mm\", equals: 9}\n  - {same: true}\n",
	"smoke/search.yaml":         "call: search\narguments: {q: \"${WORD}\", mm: \"${mm}\"}\n",
	"orders/create issue.yaml":  "call: create_issue\narguments: {title: Broken door, priority: high}\n",
	"orders/gone.yaml":          "call: forecst\n",
	"orders/with mistakes.yaml": "call: search\nexpect:\n  - {path: \"$[\", equals: 1}\n  - {tme: 2s}\n",
	"config.yaml":               "read: mcp://files/file:///srv/config.json\n",
}

// newSavedUI returns the pane with one saved call and the cursor on it.
func newSavedUI(t testing.TB, name, text string) *testUI {
	t.Helper()
	r := newExampleUI(t, 120, 40, plainEnv)
	clear(r.backend.files)
	r.backend.files[name] = text
	return r.keys("7 G")
}

func TestAFolderOfSavedCallsRunsInOrderWithItsCaptures(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("7 / smoke enter V").typeText("Bergen").keys("tab").typeText("fjord").keys("ctrl+s R")
	sent := r.backend.sentRequests()
	require.Equal(t, []string{
		`tools/call {"name":"forecast","arguments":{"city":"Bergen"}}`,
		`tools/call {"name":"forecast","arguments":{"city":"Oslo"}}`,
		`tools/call {"name":"search","arguments":{"q":"fjord","mm":4.5}}`,
	}, sent[len(sent)-3:])
	require.Contains(t, r.screen(), "Ran smoke: 2 passed, 1 failed (smoke/rain amount: $.structuredContent.mm equals 9: got 4.5)")
	require.Contains(t, r.line("Saved 4/7"), "2 ✓ 1 ✗")
	require.Contains(t, r.line("1 Servers"), "[7 Saved !1]")
	require.Contains(t, r.keys("esc / result:failed enter").screen(), "rain amount")
	require.NotContains(t, r.screen(), "smoke/search")
}

func TestOneSavedCallUsesWhatEarlierRunsCaptured(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("7 / name:forecast enter enter esc / name:search enter enter")
	require.Contains(t, r.screen(), "${WORD}")
	require.Contains(t, r.screen(), "V sets variables for this UI")
	r.keys("V tab").typeText("fjord").keys("ctrl+s enter")
	sent := r.backend.sentRequests()
	require.Equal(t, `tools/call {"name":"search","arguments":{"q":"fjord","mm":4.5}}`, sent[len(sent)-1])
}

func TestACallIsSavedFromItsForm(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2 / forecast enter c").typeText("Os${lo").keys("ctrl+w")
	require.Contains(t, r.screen(), "Save the call")
	r.typeText("s").keys("tab").typeText("Rain").keys("ctrl+s")
	require.Equal(t, "description: Rain\ncall: weather_forecast\narguments:\n  city: Os$${lo\n", r.backend.files["weather_forecasts.yaml"])
	require.Contains(t, r.screen(), "Saved /etc/goblin/saved/weather_forecasts.yaml; 7 shows it")
	require.Contains(t, r.screen(), "Call weather_forecast", "the form stays open")

	r.typeText("!").keys("ctrl+w").typeText("s").keys("ctrl+s")
	require.Contains(t, r.screen(), "Replace weather_forecasts.yaml?")
	require.Contains(t, r.backend.files["weather_forecasts.yaml"], "Rain", "not before the user agrees")
	r.keys("y")
	require.Equal(t, "call: weather_forecast\narguments:\n  city: Os$${lo!\n", r.backend.files["weather_forecasts.yaml"])
}

func TestACallIsSavedFromTrafficWithItsAnswer(t *testing.T) {
	t.Parallel()
	const params, answer = `{"name":"search","arguments":{"q":"x","token":"[hidden]"},"_meta":{"progressToken":1}}`, `{"content":[]}`
	record := func(r *testUI) {
		r.reg.Traffic().Append(registry.TrafficRecord{
			Time: r.clock.now(), Direction: registry.ToServer, Server: "github", Method: "tools/call", Name: "search",
			Request: []byte(params), RequestSize: len(params), Response: []byte(answer), ResponseSize: len(answer), Status: "ok",
		})
		r.refresh(registry.Traffic)
	}
	for name, keys := range map[string]string{"list": "ctrl+w", "exchange": "enter ctrl+w", "time line": "] ] ] ctrl+w"} {
		t.Run(name, func(t *testing.T) {
			r := newExampleUI(t, 120, 40, plainEnv).keys("5 ]")
			record(r)
			r.keys("G " + keys + " tab tab right ctrl+s")
			require.Equal(t, "call: github_search\narguments:\n  q: x\n  token: \"${TOKEN}\"\nexpect:\n  - {same: true}\n", r.backend.files["github_search.yaml"])
			require.JSONEq(t, answer, r.backend.fakeSaved.answers["github_search.yaml"])
			require.Contains(t, r.screen(), "set TOKEN to run it")
		})
	}
}

func TestSecretsOfTheConfigAreNotSaved(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2 / forecast enter c").typeText("hunter2").keys("ctrl+w")
	require.Contains(t, r.screen(), "became variables: CITY")
	require.Contains(t, r.keys("ctrl+s").backend.files["weather_forecast.yaml"], `city: "${CITY}"`)
}

func TestACallIsSavedFromPastCalls(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2 / forecast enter c").typeText("Oslo").keys("ctrl+s H ctrl+w ctrl+s")
	require.Equal(t, "call: weather_forecast\narguments:\n  city: Oslo\n", r.backend.files["weather_forecast.yaml"])
}

func TestOnlyCallsAreSaved(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	for _, keys := range []string{"1", "2", "4", "5", "6", "7"} {
		require.Contains(t, r.keys(keys+" ctrl+w").screen(), "only calls in forms, Traffic, Time line or past calls (H) can be saved", keys)
	}
	text := `{"level":"debug"}`
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Direction: registry.ToServer, Method: "logging/setLevel", Request: []byte(text), RequestSize: len(text)})
	r.keys("5 ]").refresh(registry.Traffic).keys("G ctrl+w")
	require.Contains(t, r.screen(), "logging/setLevel cannot be saved; only tools/call, resources/read and prompts/get can")
}

func TestAChangedAnswerIsComparedAndAccepted(t *testing.T) {
	t.Parallel()
	r := newSavedUI(t, "rain.yaml", "call: forecast # how wet\nexpect: [{same: true}]\n")
	r.keys("enter A enter")
	require.Contains(t, r.line("│> "), "✓ rain")
	r.setAnswer("tools/call", `{"content":[{"type":"text","text":"It will rain."}],"structuredContent":{"rain":false,"mm":4.5}}`)
	r.keys("enter")
	require.Contains(t, r.line("│> "), "✗ rain")
	require.Contains(t, r.line("│> "), "changed")
	r.keys("v")
	require.Contains(t, r.screen(), "stored answer")
	require.Contains(t, r.line("1 difference"), "1 difference")
	r.keys("esc A")
	require.Contains(t, r.screen(), "Stored the answer of rain.yaml")
	require.Contains(t, r.line("│> "), "✓ rain")
	require.Contains(t, r.backend.fakeSaved.answers["rain.yaml"], `"rain": false`)
	require.Contains(t, r.keys("enter").screen(), "Ran rain: 1 passed")
}

func TestAcceptingAddsTheCheck(t *testing.T) {
	t.Parallel()
	r := newSavedUI(t, "rain.yaml", "call: forecast\n").keys("enter A")
	require.Contains(t, r.screen(), "adds {same: true} to its checks")
	require.Contains(t, r.keys("y").backend.files["rain.yaml"], "- {same: true}")
	require.NotEmpty(t, r.backend.fakeSaved.answers["rain.yaml"])
}

func TestTwoRunsAreCompared(t *testing.T) {
	t.Parallel()
	r := newSavedUI(t, "rain.yaml", "call: forecast\n").keys("enter v")
	require.Contains(t, r.screen(), "nothing to compare with")
	r.setAnswer("tools/call", `{"content":[],"structuredContent":{"rain":false}}`)
	require.Contains(t, r.keys("enter v").screen(), "earlier answer")
}

func TestTheFormKeepsVariables(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setList("weather", registry.Tool, `{"name":"forecast","inputSchema":{"type":"object","properties":{"city":{"type":"string","pattern":"^[a-z]+$"},"days":{"type":"integer","maximum":9},"wet":{"type":"boolean"}},"required":["days"]}}`)
	clear(r.backend.files)
	r.backend.files["rain.yaml"] = "call: forecast\narguments: {city: \"${CITY}\", days: \"${DAYS:-3}\", wet: \"${WET}\"}\n"
	r.refresh(registry.AllChanges).keys("7 c")
	r.typeText("!").keys("ctrl+s")
	require.Equal(t, "call: forecast\narguments:\n  city: ${CITY}!\n  days: ${DAYS:-3}\n  wet: ${WET}\n", r.backend.files["rain.yaml"])
	r.keys("c").keys("tab backspace").typeText("x").keys("backspace")
	for range len("${DAYS:-3}") {
		r.keys("backspace")
	}
	r.typeText("12").keys("ctrl+s")
	require.Contains(t, r.screen(), "must be at most 9", "values without variables are checked")
}

func TestAMissingToolIsMarkedWithTheNearestName(t *testing.T) {
	t.Parallel()
	r := newSavedUI(t, "gone.yaml", "call: forecst\n")
	require.Contains(t, r.line("│> ! gone"), "forecst")
	require.Contains(t, r.screen(), `unknown tool "forecst"; did you mean`)
}

func TestAFileWithMistakesIsEditedAtItsLine(t *testing.T) {
	t.Parallel()
	r := newSavedUI(t, "bad.yaml", "call: search\nexpect:\n  - {tme: 2s}\n")
	require.Contains(t, r.line("│> ! bad"), "line 3")
	require.Contains(t, r.screen(), "bad.yaml:3: ")
	r.keys("enter")
	require.Equal(t, []string{"file /etc/goblin/saved/bad.yaml:3: "}, r.term.opened)
	require.Contains(t, r.keys("R").screen(), "no calls to run here")
}

func TestSavedCallsAreRenamedCopiedAndDeleted(t *testing.T) {
	t.Parallel()
	r := newSavedUI(t, "one.yaml", "call: search\n").keys("d ctrl+s enter")
	require.Contains(t, r.backend.files, "one-2.yaml")
	require.Contains(t, r.line(">"), "one-2", "the copy is selected")
	r.keys("m backspace backspace enter")
	require.Contains(t, r.screen(), "one.yaml already exists")
	r.typeText("s/two").keys("enter")
	require.NotContains(t, r.backend.files, "one-2.yaml")
	require.Contains(t, r.backend.files, "ones/two.yaml")
	require.Contains(t, r.keys("D").screen(), "Delete ones/two?")
	r.keys("n D y")
	require.NotContains(t, r.backend.files, "ones/two.yaml")
}

func TestANewCallIsMadeFromATool(t *testing.T) {
	t.Parallel()
	r := newSavedUI(t, "one.yaml", "call: search\n").keys("C")
	for range len("github_search") {
		r.keys("backspace")
	}
	require.Contains(t, r.typeText("forecst").keys("enter").screen(), "did you mean \"weather_forecast\"?")
	for range len("forecst") {
		r.keys("backspace")
	}
	r.typeText("forecast").keys("enter").typeText("${CITY}").keys("ctrl+s ctrl+s")
	require.Equal(t, "call: weather_forecast\narguments:\n  city: \"${CITY}\"\n", r.backend.files["weather_forecast.yaml"])
}

func TestARunIsCancelled(t *testing.T) {
	t.Parallel()
	r := newSavedUI(t, "a.yaml", "call: search\n")
	r.backend.files["b.yaml"] = "call: search\n"
	r.keys("r")
	n := 0
	r.backend.fakeSaved.request = func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		n++
		require.Contains(t, r.screen(), "running")
		require.Contains(t, r.line("quit"), "X cancel")
		r.keys("esc")
		return []byte(`{"content":[]}`), nil
	}
	r.keys("R")
	require.Equal(t, 1, n, "the second call does not start")
	require.Contains(t, r.screen(), "Ran all calls: 1 passed")
	require.Empty(t, r.app.Calls.Running)
}

func TestDestructiveSavedCallsAskFirst(t *testing.T) {
	t.Parallel()
	r := newSavedUI(t, "danger.yaml", "call: delete_repo\narguments: {name: x}\n").keys("enter")
	require.Contains(t, r.screen(), "These calls may delete or overwrite data")
	before := len(r.backend.sentRequests())
	require.Len(t, r.keys("n").backend.sentRequests(), before)
	require.Len(t, r.keys("enter a enter").backend.sentRequests(), before+2, "the second run does not ask")
}

func TestSavedCallsOfARecordingOnlyChange(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv, ofRecording)
	require.Contains(t, r.keys("7 enter").screen(), "no requests are sent")
	require.NotContains(t, r.keys("5 ] k k ctrl+w ctrl+s").screen(), "nothing can be changed")
}

func TestARunOfAFolderNamesTheFilesThatItOmits(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("7 / orders enter")
	require.Contains(t, r.footer(), "R run folder")
	require.Contains(t, r.keys("R").screen(), "orders without 1 with mistakes")
}

func TestFoldersFold(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv).keys("7 j enter")
	require.Contains(t, r.screen(), "▸ orders/")
	require.NotContains(t, r.screen(), "create issue")
	require.Contains(t, r.keys("/ issue enter").screen(), "orders/create issue", "a filter also finds folded files")
	require.Contains(t, r.keys("esc j enter").screen(), "create issue")
}

func TestWithoutSavedCallsThePaneShowsHowToSaveOne(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {40, 10}} {
		r := newTestUI(t, size[0], size[1], "files").keys("7")
		require.Contains(t, r.screen(), "No saved calls yet.")
	}
}

func TestMissingFilesAreReported(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv)
	r.backend.missing = "only the first 5000 files are shown"
	require.Contains(t, r.keys("7").screen(), "Saved calls are missing: only the first 5000 files are shown")
}

func TestASavedCallIsCopiedAsACommand(t *testing.T) {
	t.Parallel()
	r := newSavedUI(t, "one two.yaml", "call: search\n").keys("Y")
	require.Contains(t, r.screen(), "goblin test '/etc/goblin/saved/one two.yaml'")
}
