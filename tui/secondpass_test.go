package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestAFilterThatIsNotUnderstoodIsSaidSoAfterEnter(t *testing.T) {
	r := office(t, 120, 40, plainEnv).keys("4 / foo:bar enter")
	require.Contains(t, r.line("/ foo:bar"), `! no field "foo" here`)
	r.keys("esc / files: enter")
	require.Contains(t, r.line("/ files:"), "0 of 16", "a scheme is text")
	r.keys("esc / file: enter")
	require.Contains(t, r.line("/ file:"), "16 of 16")
	require.NotContains(t, r.screen(), "no field")
}

func TestTheFooterOffersTheFieldsOfTheList(t *testing.T) {
	r := office(t, 120, 40, plainEnv).keys("2 /")
	require.Contains(t, r.line("esc clear"), "server: name: fields")
	require.Contains(t, r.keys("esc 4 /").line("esc clear"), "mime: sub:")
}

func TestThePlaceOfTheDetailPanelChangesWithEachPress(t *testing.T) {
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

func TestACallThatWasCancelledLeavesItsArguments(t *testing.T) {
	r := office(t, 120, 50, plainEnv).keys("2 / forecast enter c")
	r.text("Oslo")
	r.backend.answers["tools/call"] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		r.clock.advance(4 * time.Second)
		r.app.Calls.List[0].Cancel()
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
