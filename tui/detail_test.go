package tui

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// newJSONUI returns a UI with an open resource: a list of flat objects.
func newJSONUI(t *testing.T) *testUI {
	r := newExampleUI(t, 120, 50, plainEnv)
	r.setAnswer("resources/read", `{"contents":[{"uri":"mcp://files/file:///srv/config.json","mimeType":"application/json","text":"{\"rows\":[{\"a\":1},{\"b\":2}]}"}]}`)
	return r.keys("4 / config.json enter enter")
}

func TestFoldingBeginsAtTheDepthThatThereIs(t *testing.T) {
	t.Parallel()
	r := newJSONUI(t)
	require.Contains(t, r.screen(), `"a": 1`)
	r.keys("-")
	require.NotContains(t, r.screen(), `"a": 1`)
	require.Contains(t, r.screen(), "1 member}")
	require.Contains(t, r.screen(), "JSON: 2 of 3 levels unfolded")
	r.keys("- - -")
	require.Contains(t, r.line(`"rows"`), "2 items")
	r.keys("+ +")
	require.Contains(t, r.screen(), `"a": 1`)
	require.Contains(t, r.screen(), "JSON: all 3 levels unfolded")
}

func TestOneNodeOfJSONIsFolded(t *testing.T) {
	t.Parallel()
	r := newJSONUI(t)
	r.click(`"rows": [`, `"rows": [`)
	require.Contains(t, r.line(`"rows"`), "2 items")
	require.Contains(t, r.screen(), `"name": "config.json"`, "the definition has its own folds")
	r.clock.advance(time.Second)
	r.click(`"rows": [`, `"rows": [`)
	require.Contains(t, r.screen(), `"a": 1`)
	r.keys("l g z")
	require.NotContains(t, r.screen(), `"rows"`)
}

// Content that fits the pane can also be scrolled, so that keys reach each node.
func TestInnerNodesOfShortJSONAreFoldedByKeys(t *testing.T) {
	t.Parallel()
	r := newJSONUI(t).keys("l g")
	first := func() string { return strings.Split(r.screen(), "\n")[3] }
	for range 60 {
		if strings.Contains(first(), `"rows": [`) {
			break
		}
		r.keys("j")
	}
	require.Contains(t, first(), `"rows": [`)
	r.keys("z")
	require.Contains(t, first(), "2 items")
	r.keys("z j z")
	require.Contains(t, first(), "1 member}")
	require.Contains(t, r.screen(), `"b": 2`, "the other node must stay unfolded")
	r.keys("G")
	require.NotContains(t, first(), "member}", "the last line must show the end")
}

func TestLongLinesAreWrappedOrGoneOverSideways(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setAnswer("resources/read", `{"contents":[{"uri":"x","mimeType":"text/plain","text":"`+strings.Repeat("word ", 60)+`THEEND"}]}`)
	r.keys("4 / day-01 enter enter")
	require.Contains(t, r.screen(), "THEEND")
	r.keys("\\")
	require.NotContains(t, r.screen(), "THEEND")
	for range 60 {
		r.keys("}")
	}
	require.Contains(t, r.screen(), "THEEND")
	r.keys("\\")
	require.Contains(t, r.screen(), "Line wrapping enabled")
}

func TestASearchSaysInHowMuchOfATextItLooked(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	text := "first\n" + strings.Repeat("0123456789 0123456789 0123456789\n", 90_000) + "the end\n"
	r.setAnswer("resources/read", `{"contents":[{"uri":"`+configURI+`","mimeType":"text/plain","text":`+strconv.Quote(text)+`}]}`)
	r.keys("4 / config enter enter l /").typeText("the end")
	require.Contains(t, r.screen(), "0 of 0 in the first 1.0 of 3.0 MB")
	r.keys("esc /").typeText("first").keys("enter")
	require.Contains(t, r.screen(), "1 of 1 in the first 1.0 of 3.0 MB")
}

func TestContentOfAnotherRowIsNeverTaken(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv)
	r.keys("2 enter esc esc j e")
	require.Contains(t, r.term.opened[0], "github_delete_repo")
	require.NotContains(t, r.term.opened[0], "github_create_issue", "the closed panel must not change the row")
}

func TestLongDataURIsAreShownByTypeAndSize(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 60, plainEnv)
	icon := "data:image/svg+xml;base64," + strings.Repeat("QUJD", 80)
	src, err := json.Marshal(icon)
	require.NoError(t, err)
	r.setList("weather", registry.Tool, `{"name":"pretty","inputSchema":{"type":"object"},"icons":[{"src":`+string(src)+`,"mimeType":"image/svg+xml"}],"_meta":{"logo":"data:,`+strings.Repeat("%41", 100)+`"}}`)
	r.refresh(registry.AllChanges).keys("2 / pretty enter")
	require.Contains(t, r.screen(), "data:image/svg+xml, 240 B")
	require.Contains(t, r.screen(), "data:text/plain, 100 B")
	require.NotContains(t, r.screen(), "QUJDQUJD")
	r.keys("e")
	require.Contains(t, strings.Join(r.term.opened, ""), icon, "the raw view must show everything")
}

func TestASearchInTheDetailShowsItsKeysAndItsFailure(t *testing.T) {
	t.Parallel()
	r := newJSONUI(t).keys("l / zzz")
	require.Contains(t, r.line("enter keep"), "esc clear")
	require.NotContains(t, r.line("enter keep"), "earlier")
	r.keys("enter")
	require.Contains(t, r.screen(), "no matches for zzz")
}

func TestRowsOfEachListHaveNumbers(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv).keys("2 #")
	require.Contains(t, r.screen(), "Go to row")
	r.keys("2 enter enter")
	require.Contains(t, r.screen(), " 2 of ")
	require.Contains(t, r.screen(), "J next row")
	r.keys("esc / text:zzz ctrl+u counter enter enter")
	require.NotContains(t, r.screen(), "J next row", "there is only one row")
}
