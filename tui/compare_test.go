package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// newCompareUI returns a UI in Traffic with two calls of a tool, the newest selected.
func newCompareUI(t *testing.T, w, h int, env map[string]string) *testUI {
	t.Helper()
	clock := &fakeClock{current: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	reg := registry.New(registry.Options{Servers: []string{"odd"}, Now: clock.now})
	r := newTestUIWith(t, reg, clock, w, h, env)
	r.setReady("odd").setList("odd", registry.Tool,
		`{"name":"counter","description":"Counts","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"label":{"type":"string"}}},"annotations":{"readOnlyHint":true}}`,
		`{"name":"price","description":"Tells the price","inputSchema":{"type":"object","properties":{"n":{"type":"string"}}}}`)
	reg.ListsComplete("odd")
	r.addCall(3, "run2", 3)
	r.addCall(2, "run9", 2)
	return r.keys("5 ]")
}

// addCall records a call of the tool "counter" with some rows in its result.
func (r *testUI) addCall(n int, label string, rows int) *testUI {
	r.t.Helper()
	var all []string
	for i := range rows {
		all = append(all, fmt.Sprintf(`{"i":%d,"sq":%d,"when":"%d:%d"}`, i, i*i, n, i))
	}
	result := fmt.Sprintf(`{"count":%d,"label":%q,"rows":[%s]}`, n, label, strings.Join(all, ","))
	text, err := json.Marshal(result)
	require.NoError(r.t, err)
	r.clock.advance(time.Second)
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now(), Session: "c1", Client: "my-agent", Server: "odd", Method: "tools/call", Name: "odd_counter", Original: "counter",
		Duration: time.Duration(n) * time.Millisecond, Size: 214, Status: "success",
		Request:  fmt.Appendf(nil, `{"name":"odd_counter","arguments":{"n":%d,"label":%q},"_meta":{"progressToken":%d}}`, n, label, n),
		Response: fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, text, result),
	})
	return r.refresh(registry.Traffic)
}

func TestGoldenComparison(t *testing.T) {
	t.Parallel()
	const open = "k v j v"
	var frames string
	for _, size := range [][2]int{{80, 24}, {120, 40}, {160, 45}} {
		frames += newCompareUI(t, size[0], size[1], plainEnv).keys(open).goldenSection()
	}
	r := newCompareUI(t, 120, 40, colourEnv).keys(open)
	r.goldenSection() // removes the notice
	golden(t, "compare", frames+"== 120x40 with colours\n"+r.app.View())

	frames = ""
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		frames += newCompareUI(t, size[0], size[1], plainEnv).keys("2 C j C").goldenSection()
	}
	golden(t, "compare-definitions", frames)
	golden(t, "compare-marked", newCompareUI(t, 120, 40, plainEnv).keys("k v").goldenSection())
}

func TestTwoCallsAreComparedByPath(t *testing.T) {
	t.Parallel()
	r := newCompareUI(t, 160, 40, plainEnv).keys("k v")
	require.Contains(t, r.line("marked A"), "odd_counter")
	require.Contains(t, r.screen(), "Marked as A: tools/call odd_counter; v on another compares")
	r.addCall(7, "later", 1)
	require.Contains(t, r.line("marked A"), "12:00:01", "new rows must not move the mark")
	r.keys("/ l a t e r esc j v")
	require.Contains(t, r.line("Compare tools/call odd_counter"), "1 of 7")
	require.NotContains(t, r.screen(), "Marked as A")
	require.Contains(t, r.line("arguments.n  3 → 2"), `arguments.label  "run2" → "run9"`)
	require.Contains(t, r.screen(), "same definition (hash ")
	require.NotContains(t, r.screen(), "progressToken")

	r.keys("n n n n i")
	require.Contains(t, r.line("differences"), "5 differences; 1 path ignored")
	require.Contains(t, r.line("ignored: "), "$.result.rows[*].when")
	require.Contains(t, r.line(`"when": (ignored)`), `│`)
	r.keys("n")
	require.Contains(t, r.line("Compare"), "5 of 5")
	r.keys("n")
	require.Contains(t, r.screen(), "No further differences")
	r.keys("N N")
	require.Contains(t, r.line("Compare"), "3 of 5")
	r.keys("s")
	require.Contains(t, r.screen(), "arguments.n  2 → 3")
	require.Contains(t, r.screen(), "only in B")

	r.keys("I").typeText(" ..label").keys("enter")
	require.Contains(t, r.line("differences"), "3 differences; 2 paths ignored")
	r.keys("I").typeText(" a[").keys("enter")
	require.Contains(t, r.screen(), "] is missing")
	r.keys("I")
	for range 60 {
		r.keys("backspace")
	}
	r.keys("enter")
	require.Contains(t, r.line("7 differences"), "7 differences ─", "no path is left")

	// The paths are kept for the tool; v on the marked row removes the mark.
	r.keys("g n n n n i esc v")
	require.Contains(t, r.line("differences"), "1 path ignored")
	r.keys("esc k v")
	require.NotContains(t, r.screen(), "marked A")
}

func TestSwappedSidesHaveTheSameIgnoredPaths(t *testing.T) {
	t.Parallel()
	r := newCompareUI(t, 120, 40, plainEnv)
	r.reg.Traffic().Append(registry.TrafficRecord{
		Time: r.clock.now(), Session: "c1", Client: "my-agent", Server: "odd", Method: "tools/call", Name: "odd_price", Original: "price", Status: "success",
		Request: []byte(`{"name":"odd_price","arguments":{"n":"2"}}`), Response: []byte(`{"content":[]}`),
	})
	r.refresh(registry.Traffic).keys("k v j v n i")
	require.Contains(t, r.screen(), "1 path ignored")
	require.Contains(t, r.keys("s").screen(), "1 path ignored")
}

func TestAComparisonFollowsTheWidth(t *testing.T) {
	t.Parallel()
	r := newCompareUI(t, 80, 24, plainEnv).keys("k v j v")
	require.Contains(t, r.screen(), `-   "n": 3`)
	require.Contains(t, r.screen(), `+   "n": 2`)
	r.resize(120, 40)
	require.Contains(t, r.line(`"n": 3`), `"n": 2`)
	r.keys("u")
	require.NotContains(t, r.line(`"n": 3`), `"n": 2`)
	for _, size := range [][2]int{{40, 10}, {80, 24}, {111, 18}, {250, 60}, {41, 11}} {
		r.resize(size[0], size[1]).keys("j } n G {")
		r.screen()
	}
}

func TestBRunsAgainWithTheArgumentsOfA(t *testing.T) {
	t.Parallel()
	r := newCompareUI(t, 120, 40, plainEnv)
	r.setAnswer("tools/call", `{"content":[],"structuredContent":{"count":3,"label":"run2","rows":[]}}`)
	r.keys("k v j v r")
	require.Equal(t, []string{`tools/call {"name":"odd_counter","arguments":{"n":3,"label":"run2"}}`}, r.backend.sentRequests())
	require.Contains(t, r.line("3 differences"), "3 differences")
	require.Contains(t, r.line(" B "), "you")
	require.NotContains(t, r.screen(), "arguments.n")

	// A tool that may change data asks first.
	r.keys("esc").setList("odd", registry.Tool, `{"name":"counter","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`)
	r.keys("v r")
	require.Contains(t, r.screen(), "Call odd_counter?")
	require.Len(t, r.backend.sentRequests(), 1)
	r.screen()
	r.clock.advance(time.Second)
	r.keys("y")
	require.Len(t, r.backend.sentRequests(), 2)
}

func TestAChangedDefinitionIsNamedInTheComparison(t *testing.T) {
	t.Parallel()
	r := newCompareUI(t, 120, 40, plainEnv).keys("k v")
	r.clock.advance(time.Second)
	r.setList("odd", registry.Tool, `{"name":"counter","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"label":{"type":"string"}},"required":["n"]}}`)
	r.addCall(4, "new", 1).keys("G v")
	require.Contains(t, r.screen(), `definition changed since A: `)
	require.Contains(t, r.screen(), `argument "n" is now required`)
	r.keys("esc k v")
	require.Contains(t, r.screen(), "same definition", "both calls precede the change")
}

func TestACutBodyIsNamedInTheComparison(t *testing.T) {
	t.Parallel()
	r := newCompareUI(t, 120, 40, plainEnv)
	for _, text := range []string{"a", "b"} {
		r.reg.Traffic().Append(registry.TrafficRecord{
			Time: r.clock.now(), Server: "odd", Method: "tools/call", Name: "odd_counter", Status: "success", Request: []byte(`{"name":"odd_counter"}`),
			Response: []byte(`{"first":"` + text + `","content":[{"type":"text","text":"` + strings.Repeat("x", 100_000) + text + `"}]}`),
		})
	}
	r.refresh(registry.Traffic).keys("G k v j v")
	require.Contains(t, r.screen(), "only the first 65.5 kB are compared")
	require.Contains(t, r.line("1 difference"), "1 difference ")
	require.Contains(t, r.screen(), `result.first  "a" → "b"`)
}

func TestAnEvictedCallIsStillComparedAndNamed(t *testing.T) {
	t.Parallel()
	r := newCompareUI(t, 120, 40, plainEnv).keys("k v")
	for range 5_100 {
		r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "odd", Method: "ping", Status: "success"})
	}
	r.addCall(9, "last", 1).keys("G v")
	require.Contains(t, r.screen(), "A was evicted from Traffic by newer requests")
	require.Contains(t, r.screen(), "arguments.n  3 → 9")
}

func TestOnlyFinishedRequestsAreCompared(t *testing.T) {
	t.Parallel()
	r := newCompareUI(t, 120, 40, plainEnv)
	addHangingCall(r)
	r.pollInFlight().keys("g v")
	require.Contains(t, r.screen(), "the request is running")
	require.NotContains(t, r.screen(), "marked A")
	r.keys("[ v")
	require.Contains(t, r.screen(), "only requests in Traffic and Time line can be compared")
}

func TestPastCallsAreCompared(t *testing.T) {
	t.Parallel()
	r := newCompareUI(t, 120, 40, plainEnv).keys("2")
	for _, n := range []int{1, 2} {
		r.clock.advance(time.Second)
		r.setAnswer("tools/call", fmt.Sprintf(`{"content":[],"structuredContent":{"count":%d}}`, n))
		r.keys("c ctrl+s")
	}
	r.keys("H v")
	require.Contains(t, r.screen(), "marked A")
	r.keys("j v")
	require.Contains(t, r.line("1 difference"), "1 difference ")
	require.Contains(t, r.screen(), "result.count  2 → 1")
	r.keys("esc k v")
	require.NotContains(t, r.screen(), "marked A")

	// A call in Traffic is compared with a past call.
	r.keys("v esc 5 g v")
	require.Contains(t, r.screen(), "arguments.n  only in B")
}

func TestDefinitionsOfToolsAreCompared(t *testing.T) {
	t.Parallel()
	r := newCompareUI(t, 120, 40, plainEnv).keys("2 C")
	require.Contains(t, r.line("> A"), "odd_counter")
	r.keys("j C")
	require.Contains(t, r.screen(), "Compare tool odd_counter and tool odd_price")
	require.Contains(t, r.screen(), `inputSchema.properties.n.type  "integer" → "string"`)
	require.NotContains(t, r.footer(), "run B")
	// A mark on a definition and one on a call don't mix.
	r.keys("esc 5 v")
	require.Contains(t, r.line("marked A"), "odd_counter")
}

func TestTheTimeLineMarksAndCompares(t *testing.T) {
	t.Parallel()
	r := newCompareUI(t, 120, 40, plainEnv).keys("k v ] ] ]")
	require.Contains(t, r.line("[A]"), "n=3")
	r.keys("G v")
	require.Contains(t, r.screen(), "Compare tools/call odd_counter")
	require.Contains(t, r.screen(), "arguments.n  3 → 2")
}
