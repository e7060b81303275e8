package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
)

func TestEveryListNamesItsColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ keys, want string }{
		{"1", "state server via revision tools res tmpl prompts latency restarts requests errors times last error"},
		{"2", "name RDIW title server description"},
		{"3", "name arguments title server description"},
		{"4", "server URI name title MIME type size"},
		{"4 t", "server template name MIME type"},
		{"5", "time↑ level server message"},
		{"5 ]", "time↑ client method name status took size arguments"},
		{"5 ] ]", "time↑ level server source message"},
		{"5 [ [", "time↑ level message"},
		{"6", "tool tokens↓ calls errors p50 p95 answers last call cancelled waited start last hour"},
		{"6 ]", "client tools tokens↓ calls errors p50 p95 answers last call last hour"},
		{"6 [", "server tools unused tokens↓ calls errors p50 p95 answers last call last hour"},
		{"0", "client version transport since requests errors last subs"},
		{"w", "server URI subscribers updates last change"},
		{"2 V", "profile tools prompts resources"},
		{"2 j j c ctrl+s H", "time ago result took size arguments"},
	} {
		w := 220
		if strings.HasSuffix(c.keys, "H") {
			w = 130 // as wide as the dialog
		}
		r := newExampleUI(t, w, 60, plainEnv).keys(c.keys)
		if len(r.app.Dialogs) == 0 {
			r.keys("F")
		}
		first, _, _ := strings.Cut(c.want, " ")
		last := c.want[strings.LastIndexByte(c.want, ' ')+1:]
		if c.keys == "4 t" {
			last = "template"
		}
		require.Equal(t, c.want, strings.Join(strings.Fields(r.columnHead(first+" ", last)), " "), c.keys)
	}
}

// The README documents the order in which columns disappear.
func TestColumnsMakeRoomInTheirOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys, first string
		want        []string // from wide to narrow
	}{
		{"2", "name", []string{"name RDIW title server description", "name RDIW title description", "name RDIW description", "name RDIW"}},
		{"5 ]", "", []string{
			"time↑ client method name status took size arguments", "time↑ client method name status took arguments",
			"time↑ client method name status took size", "time↑ client method name status took", "client method name status took", "method name status took", "method name status",
		}},
		{"4", "", []string{
			"server URI name title MIME type size", "server URI name MIME type size", "server URI MIME type size", "server URI MIME type", "server URI",
		}},
	} {
		r := newExampleUI(t, 220, 24, plainEnv).keys(c.keys + " F")
		var got []string
		for w := 220; w >= pane.LeastWidth; w-- {
			r.app.Update(tea.WindowSizeMsg{Width: w, Height: 24})
			lines := strings.Split(r.screen(), "\n")
			head := lines[3]
			if c.keys == "5 ]" {
				head = lines[4]
			}
			head = strings.Join(strings.Fields(strings.Trim(head, "│ ")), " ")
			if len(got) == 0 || got[len(got)-1] != head {
				got = append(got, head)
			}
		}
		require.Equal(t, c.want, got, c.keys)
	}
}

func TestNothingIsCutWhileThereIsRoom(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 160, 40, "everything", "odd").setReady("everything").setReady("odd")
	r.setList("everything", registry.Tool,
		`{"name":"trigger-long-running-operation","title":"Trigger a long running operation","description":"Takes time"}`,
		`{"name":"echo","title":"Echo","description":"Says it again"}`)
	r.setList("everything", registry.Resource,
		`{"uri":"demo://resource/static/document/architecture-of-the-whole.md","name":"architecture-of-the-whole.md","mimeType":"text/markdown"}`,
		`{"uri":"demo://a","name":"a","title":"A short one with a title","mimeType":"application/json"}`)
	r.setList("odd", registry.Tool, `{"name":"日本語の道具","title":"日本語の道具の題名","description":"道具の説明"}`)
	for _, entryKeys := range []string{"2 F", "4"} {
		r.keys(entryKeys)
		for _, l := range strings.Split(r.screen(), "\n")[4:10] {
			require.NotContains(t, l, "…", entryKeys)
		}
	}
	require.Contains(t, r.line("demo://resource/static/document/architecture-of-the-whole.md"), "architecture-of-the-whole.md  ")
	require.NotContains(t, r.screen(), "mcp://", "the server has a column")
	require.Contains(t, r.keys("2").line("日本語の道具の題名"), "道具の説明")
}

// If not all rows fit, the visible ones share the space.
func TestRoomGoesToWhatIsInSight(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "s").setReady("s")
	var items []string
	for i := range 100 {
		items = append(items, fmt.Sprintf(`{"uri":"a://%03d","name":"n","mimeType":"application/vnd.of-a-very-long-name+%03d"}`, i, i))
	}
	items = append(items, `{"uri":"z://`+strings.Repeat("long/", 40)+`","name":"n"}`)
	r.setList("s", registry.Resource, items...)
	require.Contains(t, r.keys("4").line("a://000"), "application/vnd.of-a-very-long-name+000")
	r.keys("G")
	require.Regexp(t, `z://long/.*….*long/`, r.line("> "))
}

func TestColumnsWithNothingInThemTakeNoRoom(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 160, 40, "s").setReady("s")
	r.setList("s", registry.Resource, `{"uri":"a://1","name":"n"}`, `{"uri":"a://2","name":"n"}`)
	require.Equal(t, "server URI   name", r.keys("4 F").columnHead("server "))
	r.setList("s", registry.Resource, `{"uri":"a://1","name":"n","size":12}`, `{"uri":"a://2","name":"n","title":"T"}`)
	require.Equal(t, "server URI   name title     size", r.columnHead("server "))
	r.keys("/").typeText("a://1").keys("enter")
	require.Equal(t, "server URI   name     size", r.columnHead("server "), "only for the remaining rows")
}

// columnValues returns the values of a column, from top to bottom.
func (r *testUI) columnValues(column func(*registry.Entry) string) (all []string) {
	t := r.app.Panes[pane.PaneResources].(*pane.Resources).All.Table
	for _, i := range t.Matches {
		all = append(all, column(t.Rows[i]))
	}
	return all
}

func newSizedUI(t testing.TB) *testUI {
	r := newTestUI(t, 120, 30, "s").setReady("s")
	return r.setList("s", registry.Resource,
		`{"uri":"a://1","name":"one","title":"beta","size":20}`, `{"uri":"a://2","name":"two"}`,
		`{"uri":"a://3","name":"three","title":"Alpha","size":3}`, `{"uri":"a://4","name":"four","title":"gamma","size":100}`).keys("4 F")
}

func TestAKeySortsByEachColumnAndTurnsItAround(t *testing.T) {
	t.Parallel()
	r := newSizedUI(t)
	label := func(e *registry.Entry) string { return e.Label }
	var heads []string
	for range 11 {
		r.keys("o")
		heads = append(heads, strings.Join(strings.Fields(r.columnHead("server")), " "))
	}
	require.Equal(t, []string{
		"server↑ URI name title size", "server↓ URI name title size", "server URI↑ name title size", "server URI↓ name title size",
		"server URI name↑ title size", "server URI name↓ title size", "server URI name title↑ size", "server URI name title↓ size",
		"server URI name title size↓", "server URI name title size↑", "server URI name title size", // last update is in no column
	}, heads)
	require.Contains(t, r.line("╭"), "by last update ↓")
	r.keys("o o")
	require.NotContains(t, r.line("╭"), "by ", "in listed order")
	r.keys("O O O O")
	require.Equal(t, []string{"three", "one", "four", "two"}, r.columnValues(label), "by title")
	require.Contains(t, r.screen(), "Sorted by title ↑")
	r.keys("o")
	require.Equal(t, []string{"four", "one", "three", "two"}, r.columnValues(label), "rows without a value stay last")
	r.keys("O")
	require.Equal(t, []string{"four", "one", "three", "two"}, r.columnValues(label), "largest first")
	require.Contains(t, r.line("╭"), "by size ↓")
}

func TestAClickOnAHeadSorts(t *testing.T) {
	t.Parallel()
	r := newSizedUI(t)
	label := func(e *registry.Entry) string { return e.Label }
	r.click("server", "size")
	require.Equal(t, []string{"four", "one", "three", "two"}, r.columnValues(label))
	r.click("server", "size↓")
	require.Equal(t, []string{"three", "one", "four", "two"}, r.columnValues(label))
	require.Contains(t, r.columnHead("server"), "size↑")
	r.click("server", "name")
	require.Equal(t, []string{"four", "one", "three", "two"}, r.columnValues(label))
	r.click("three", "three")
	require.Contains(t, r.line("> "), "three", "a click must select the row drawn there")
	r = newExampleUI(t, 120, 40, plainEnv).keys("0").click("transport", "errors")
	require.Contains(t, r.screen(), "Clients 3 by errors ↓")
	r = newExampleUI(t, 120, 40, plainEnv).keys("w").click("subscribers", "URI")
	require.Contains(t, r.screen(), "Subscriptions 2 by URI ↑")
	r = newExampleUI(t, 160, 40, plainEnv).keys("5 ]").click("method", "took")
	require.Contains(t, r.screen(), "by took ↓")
	require.NotContains(t, r.screen(), "following")
	r = newExampleUI(t, 160, 40, plainEnv).keys("6").click("tokens", "calls errors")
	require.Contains(t, r.screen(), "by calls ↓")
	r = newExampleUI(t, 160, 40, plainEnv).keys("6").click("Clients", "Clients")
	require.Contains(t, r.screen(), "[Clients 3]")
}

func TestColumnsAreSortedByTheirNames(t *testing.T) {
	t.Parallel()
	r := newSizedUI(t).sortBy("size")
	require.Contains(t, r.columnHead("server"), "size↓")
	r.sortBy("size")
	require.Contains(t, r.columnHead("server"), "size↑")
	r.sortBy("last update")
	require.Contains(t, r.line("╭"), "by last update ↓")
	r.keys(":").typeText("sort weight").keys("enter")
	require.Contains(t, r.screen(), "cannot sort by weight; choose listed name, server, URI, name")
}

// Typed words sort by where they match; an explicit sort column wins.
func TestTheHeadSaysWhenTheBestMatchComesFirst(t *testing.T) {
	t.Parallel()
	r := newSizedUI(t).keys("o").keys("O")
	require.Contains(t, r.columnHead("server"), "URI↑")
	r.keys("/ ~ a enter")
	require.Contains(t, r.line("╭"), "best match first")
	require.NotContains(t, r.columnHead("server"), "↑")
	r.keys("esc")
	require.Contains(t, r.line("╭"), "by URI ↑")
	r = newSizedUI(t).keys("/ a enter")
	require.Contains(t, r.line("╭"), "best match first")
	r.keys("O")
	require.Contains(t, r.line("╭"), "by server ↑")
}

// A long legend must not hide the count.
func TestExactCountsStayVisible(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "s").setReady("s")
	var tools []string
	for i := range 12_345 {
		tools = append(tools, fmt.Sprintf(`{"name":"t%05d","inputSchema":{"type":"object"}}`, i))
	}
	r.setList("s", registry.Tool, tools...).keys("2")
	require.Contains(t, r.screen(), "Tools 12,345")
	r.keys("/ t 0 0 enter")
	require.Contains(t, r.screen(), "Tools 1000/12,345")
	for w := range 41 {
		r.app.Update(tea.WindowSizeMsg{Width: 40 + w, Height: 24})
		require.Contains(t, r.screen(), "Tools 1000/12,345")
	}
	r.app.Update(tea.WindowSizeMsg{Width: 40, Height: 10}) // lists have no borders
	require.Contains(t, r.screen(), "1000 of 12,345")
	r.keys("esc o")
	r.app.Flash = uicontext.Flash{}
	require.Regexp(t, `Tools 12,345 +by name ↑ `, r.screen())
}

func TestArrowsOfOrdersAreASCIIWhereAllIs(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, asciiEnv).keys("4 o")
	require.Contains(t, r.screen(), "server^")
	r.keys("o")
	require.Contains(t, r.screen(), "serverv")
}

// A long row that is not visible must not take space from visible ones.
func TestRoomThatRowsInSightLeaveIsForFurtherColumns(t *testing.T) {
	t.Parallel()
	var items []string
	for i := range 100 {
		items = append(items, fmt.Sprintf(`{"uri":"file:///a/%02d","name":"name-%02d","mimeType":"text/plain","size":%d}`, i, i, i+1))
	}
	items = append(items, `{"uri":"file:///z/`+strings.Repeat("long", 20)+`","name":"last","mimeType":"text/plain","size":1}`)
	r := newTestUI(t, 70, 24, "files").setList("files", registry.Resource, items...).keys("4")
	require.Contains(t, r.columnHead("server"), "name")
	require.Contains(t, r.screen(), "name-00")
	require.NotContains(t, r.keys("G").columnHead("server"), "name")
	require.Contains(t, r.keys("g").columnHead("server"), "name")
}

func TestAStatusIsNotCutForTheSakeOfSizesAndClients(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 60, 40, "everything").setReady("everything")
	for _, status := range []string{"cancelled", "tool error", "failure"} {
		r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Session: "s-1", Client: "claude-code", Server: "everything", Method: "tools/call", Name: "everything_trigger-long-running-operation", Status: status, Duration: time.Second, Size: 10})
	}
	r.refresh(registry.Traffic).keys("5 ]")
	for w := 60; w < 220; w++ {
		r.resize(w, 40)
		for _, whole := range []string{"cancelled", "!tool error", "!failed"} {
			require.Contains(t, r.screen(), whole, "%d cells", w)
		}
		if strings.Contains(r.line("status"), "size") {
			require.Contains(t, r.screen(), "everything_trigger-long-running-operation", "%d cells", w)
		}
	}
}

func TestOwnTextsAreASCIIInASCIITerminals(t *testing.T) {
	t.Parallel()
	rules := newRulesUI(t, 160, 40, asciiEnv)
	example := newExampleUI(t, 160, 40, asciiEnv)
	for _, s := range []string{
		rules.setRules(rules.stop(7)).runCommand("rules").screen(),
		example.keys("1 enter").screen(), example.keys("esc 2 enter").screen(), example.keys("esc 5").screen(), example.keys("enter").screen(),
		example.keys("esc ] enter").screen(), example.keys("]").screen(), example.keys("]").screen(), example.keys("esc ] enter ]").screen(),
		example.keys("esc 6 enter").screen(), example.keys("esc 0").screen(), example.keys("esc ?").screen(), example.keys("esc :").screen(),
	} {
		for _, c := range s {
			require.True(t, c < 0x80 || c >= 0x3000 || c == 'ö', "%q in\n%s", c, s)
		}
	}
}
