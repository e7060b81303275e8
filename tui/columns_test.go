package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// head is the line that names the columns of the list, without borders.
func (r *rig) head(first string, also ...string) string {
	r.t.Helper()
	for l := range strings.SplitSeq(r.screen(), "\n") {
		l = strings.TrimLeft(l, "│ ")
		if strings.HasPrefix(l, first) && (len(also) == 0 || strings.Contains(l, also[0])) {
			l, _, _ = strings.Cut(l, "│")
			return strings.TrimRight(l, " ")
		}
	}
	r.t.Fatalf("no head that begins with %q in:\n%s", first, r.screen())
	return ""
}

// clicks clicks on a text of a line.
func (r *rig) clicks(line, text string) *rig {
	r.t.Helper()
	for y, l := range strings.Split(r.screen(), "\n") {
		if x := strings.Index(l, text); x >= 0 && strings.Contains(l, line) {
			r.take(tea.MouseMsg{X: ansi.StringWidth(l[:x]), Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
			return r
		}
	}
	r.t.Fatalf("no %q in a line with %q in:\n%s", text, line, r.screen())
	return r
}

func TestEveryListNamesItsColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ keys, want string }{
		{"1", "state server via revision tools res tmpl prompts latency restarts requests errors times last error"},
		{"2", "name RDIW title server description"},
		{"3", "name arguments title server description"},
		{"4", "server URI name title MIME type size"},
		{"4 t", "server template name MIME type"},
		{"5", "time↑ level server message"},
		{"5 ]", "time↑ client server method name status took size"},
		{"5 ] ]", "time↑ level server source message"},
		{"5 [", "time↑ level message"},
		{"6", "tool tokens↓ calls errors p50 p95 answers last call last hour"},
		{"6 ]", "client tools tokens↓ calls errors p50 p95 answers last call last hour"},
		{"6 [", "server tools unused tokens↓ calls errors p50 p95 answers last call last hour"},
		{"0", "client version transport since requests errors last watches"},
		{"w", "server URI held by updates last change"},
		{"2 V", "profile tools prompts resources"},
		{"2 j j c ctrl+s H", "time ago result took size arguments"},
	} {
		w := 220
		if strings.HasSuffix(c.keys, "H") {
			w = 130 // as wide as the dialog
		}
		r := office(t, w, 60, plainEnv).keys(c.keys)
		if len(r.app.Dialogs) == 0 {
			r.keys("F")
		}
		first, _, _ := strings.Cut(c.want, " ")
		last := c.want[strings.LastIndexByte(c.want, ' ')+1:]
		if c.keys == "4 t" {
			last = "template"
		}
		require.Equal(t, c.want, strings.Join(strings.Fields(r.head(first+" ", last)), " "), c.keys)
	}
}

// The order in which columns make room is that of the README.
func TestColumnsMakeRoomInTheirOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys, first string
		want        []string // from wide to narrow
	}{
		{"2", "name", []string{"name RDIW title server description", "name RDIW title description", "name RDIW description", "name RDIW"}},
		{"5 ]", "", []string{
			"time↑ client server method name status took size", "time↑ client server method name status took",
			"time↑ client server method name status", "client server method name status", "server method name status", "method name status",
		}},
		{"4", "", []string{
			"server URI name title MIME type size", "server URI name MIME type size", "server URI MIME type size", "server URI MIME type", "server URI",
		}},
	} {
		r := office(t, 220, 24, plainEnv).keys(c.keys + " F")
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
	r := newRig(t, 160, 40, "everything", "odd").ready("everything").ready("odd")
	r.list("everything", registry.Tool,
		`{"name":"trigger-long-running-operation","title":"Trigger a long running operation","description":"Takes time"}`,
		`{"name":"echo","title":"Echo","description":"Says it again"}`)
	r.list("everything", registry.Resource,
		`{"uri":"demo://resource/static/document/architecture-of-the-whole.md","name":"architecture-of-the-whole.md","mimeType":"text/markdown"}`,
		`{"uri":"demo://a","name":"a","title":"A short one with a title","mimeType":"application/json"}`)
	r.list("odd", registry.Tool, `{"name":"日本語の道具","title":"日本語の道具の題名","description":"道具の説明"}`)
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

// Where not all rows can be had whole, those in sight share the room.
func TestRoomGoesToWhatIsInSight(t *testing.T) {
	t.Parallel()
	r := newRig(t, 80, 24, "s").ready("s")
	var items []string
	for i := range 100 {
		items = append(items, fmt.Sprintf(`{"uri":"a://%03d","name":"n","mimeType":"application/vnd.of-a-very-long-name+%03d"}`, i, i))
	}
	items = append(items, `{"uri":"z://`+strings.Repeat("long/", 40)+`","name":"n"}`)
	r.list("s", registry.Resource, items...)
	require.Contains(t, r.keys("4").line("a://000"), "application/vnd.of-a-very-long-name+000")
	r.keys("G")
	require.Regexp(t, `z://long/.*….*long/`, r.line("> "))
}

func TestColumnsWithNothingInThemTakeNoRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, 160, 40, "s").ready("s")
	r.list("s", registry.Resource, `{"uri":"a://1","name":"n"}`, `{"uri":"a://2","name":"n"}`)
	require.Equal(t, "server URI   name", r.keys("4 F").head("server "))
	r.list("s", registry.Resource, `{"uri":"a://1","name":"n","size":12}`, `{"uri":"a://2","name":"n","title":"T"}`)
	require.Equal(t, "server URI   name title     size", r.head("server "))
	r.keys("/").text("a://1").keys("enter")
	require.Equal(t, "server URI   name     size", r.head("server "), "of the rows that are left")
}

// names are what a column holds, from top to bottom.
func (r *rig) found(column func(*registry.Entry) string) (all []string) {
	t := r.app.Panes[pane.PaneResources].(*pane.Resources).All.Table
	for _, i := range t.Found {
		all = append(all, column(t.Rows[i]))
	}
	return all
}

func sized(t testing.TB) *rig {
	r := newRig(t, 120, 30, "s").ready("s")
	return r.list("s", registry.Resource,
		`{"uri":"a://1","name":"one","title":"beta","size":20}`, `{"uri":"a://2","name":"two"}`,
		`{"uri":"a://3","name":"three","title":"Alpha","size":3}`, `{"uri":"a://4","name":"four","title":"gamma","size":100}`).keys("4 F")
}

func TestAKeySortsByEachColumnAndTurnsItAround(t *testing.T) {
	t.Parallel()
	r := sized(t)
	label := func(e *registry.Entry) string { return e.Label }
	var heads []string
	for range 11 {
		r.keys("o")
		heads = append(heads, strings.Join(strings.Fields(r.head("server")), " "))
	}
	require.Equal(t, []string{
		"server↑ URI name title size", "server↓ URI name title size", "server URI↑ name title size", "server URI↓ name title size",
		"server URI name↑ title size", "server URI name↓ title size", "server URI name title↑ size", "server URI name title↓ size",
		"server URI name title size↓", "server URI name title size↑", "server URI name title size", // last update is in no column
	}, heads)
	require.Contains(t, r.line("╭"), "by last update ↓")
	r.keys("o o")
	require.NotContains(t, r.line("╭"), "by ", "as they are listed")
	r.keys("O O O O")
	require.Equal(t, []string{"three", "one", "four", "two"}, r.found(label), "by title")
	require.Contains(t, r.screen(), "Sorted by title ↑")
	r.keys("o")
	require.Equal(t, []string{"four", "one", "three", "two"}, r.found(label), "what has none stays last")
	r.keys("O")
	require.Equal(t, []string{"four", "one", "three", "two"}, r.found(label), "the largest first")
	require.Contains(t, r.line("╭"), "by size ↓")
}

func TestAClickOnAHeadSorts(t *testing.T) {
	t.Parallel()
	r := sized(t)
	label := func(e *registry.Entry) string { return e.Label }
	r.clicks("server", "size")
	require.Equal(t, []string{"four", "one", "three", "two"}, r.found(label))
	r.clicks("server", "size↓")
	require.Equal(t, []string{"three", "one", "four", "two"}, r.found(label))
	require.Contains(t, r.head("server"), "size↑")
	r.clicks("server", "name")
	require.Equal(t, []string{"four", "one", "three", "two"}, r.found(label))
	r.clicks("three", "three")
	require.Contains(t, r.line("> "), "three", "rows are where they are seen")
	r = office(t, 120, 40, plainEnv).keys("0").clicks("transport", "errors")
	require.Contains(t, r.screen(), "Clients 3 by errors ↓")
	r = office(t, 120, 40, plainEnv).keys("w").clicks("held by", "URI")
	require.Contains(t, r.screen(), "Subscriptions 2 by URI ↑")
	r = office(t, 160, 40, plainEnv).keys("5 ]").clicks("method", "took")
	require.Contains(t, r.screen(), "by took ↓")
	require.NotContains(t, r.screen(), "following")
	r = office(t, 160, 40, plainEnv).keys("6").clicks("tokens", "calls errors")
	require.Contains(t, r.screen(), "by calls ↓")
	r = office(t, 160, 40, plainEnv).keys("6").clicks("Clients", "Clients")
	require.Contains(t, r.screen(), "[Clients 3]")
}

func TestColumnsAreSortedByTheirNames(t *testing.T) {
	t.Parallel()
	r := sized(t).sorts("size")
	require.Contains(t, r.head("server"), "size↓")
	r.sorts("size")
	require.Contains(t, r.head("server"), "size↑")
	r.sorts("last update")
	require.Contains(t, r.line("╭"), "by last update ↓")
	r.keys(":").text("sort weight").keys("enter")
	require.Contains(t, r.screen(), "there is no order by weight; there are listed name, server, URI, name")
}

// What words are typed for comes by where they are; a column that is chosen wins.
func TestTheHeadSaysWhenTheBestMatchComesFirst(t *testing.T) {
	t.Parallel()
	r := sized(t).keys("o").keys("O")
	require.Contains(t, r.head("server"), "URI↑")
	r.keys("/ ~ a enter")
	require.Contains(t, r.line("╭"), "best match first")
	require.NotContains(t, r.head("server"), "↑")
	r.keys("esc")
	require.Contains(t, r.line("╭"), "by URI ↑")
	r = sized(t).keys("/ a enter")
	require.Contains(t, r.line("╭"), "best match first")
	r.keys("O")
	require.Contains(t, r.line("╭"), "by server ↑")
}

func TestTheListTakesTheWholeWidth(t *testing.T) {
	t.Parallel()
	for _, w := range []int{120, 220} {
		r := office(t, w, 40, plainEnv).keys("4")
		require.Contains(t, r.screen(), "F full width")
		require.Contains(t, r.screen(), "Definition")
		r.keys("F")
		require.Equal(t, w, r.app.Geometry().List.W)
		require.NotContains(t, r.screen(), "Definition")
		require.Contains(t, r.screen(), "F detail panel")
		require.Contains(t, r.screen(), "name")
		r.keys("F")
		require.Contains(t, r.screen(), "Definition")
	}
	r := office(t, 80, 24, plainEnv).keys("4 enter F")
	require.Equal(t, 20, r.app.Geometry().List.H, "also of a panel below")
	require.Contains(t, office(t, 80, 24, plainEnv).keys("?").text("full width").screen(), "F")
}

// A long legend may not cost the count.
func TestExactCountsStayVisible(t *testing.T) {
	t.Parallel()
	r := newRig(t, 80, 24, "s").ready("s")
	var tools []string
	for i := range 12_345 {
		tools = append(tools, fmt.Sprintf(`{"name":"t%05d","inputSchema":{"type":"object"}}`, i))
	}
	r.list("s", registry.Tool, tools...).keys("2")
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

// crowd is a table of many rows with columns that count what they are asked.
func crowd(t testing.TB, n int) (table *list.Table[int], asked *int) {
	asked = new(int)
	text := func(i int) string {
		*asked++
		return fmt.Sprintf("row %05d", (i*7919)%n)
	}
	table = list.New(context.Background(), time.Now, text, text, func([]int) []list.Field { return nil })
	table.Arrange(list.Column[int]{Name: "row", Text: text}, list.Column[int]{Name: "again", Rank: 1, MinWidth: 4, Text: text})
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	r := &rig{t: t}
	r.finish(table.Refresh(0, func() []int { return rows }, func() tea.Cmd { return nil }))
	return table, asked
}

// finish runs commands that lead to nothing else.
func (r *rig) finish(cmd tea.Cmd) {
	for cmd != nil {
		done, ok := cmd().(keys.FuncMsg)
		require.True(r.t, ok)
		cmd = done()
	}
}

// 100,000 rows are sorted beside the screen's own loop, which goes on drawing the old order;
// what it draws costs as much as there is in sight.
func TestManyRowsAreSortedAndDrawnWithoutReadingThem(t *testing.T) {
	t.Parallel()
	const n = 20_000
	table, asked := crowd(t, n)
	lk := theme.New(theme.Options{Theme: "none"})
	*asked = 0
	lines := table.Grid(lk, 60, 30, true)
	require.Less(t, *asked, 30*5)
	require.Equal(t, "  row       again", strings.TrimRight(ansi.Strip(lines[0]), " "))
	*asked = 0
	cmd := table.Sort("row")
	require.NotNil(t, cmd, "a command does it")
	require.Less(t, *asked, 10)
	table.Grid(lk, 60, 30, true)
	require.Less(t, *asked, 30*5)
	require.Equal(t, int32(0), table.Found[0], "it is not yet")
	r := &rig{t: t}
	r.finish(cmd)
	require.True(t, slices.IsSortedFunc(table.Found, func(a, b int32) int { return int((int64(a)*7919)%n - (int64(b)*7919)%n) }))
	*asked = 0
	r.finish(table.Sort("row"))
	require.Less(t, *asked, 10, "turning it around compares nothing")
	require.Equal(t, "row 19999", fmt.Sprintf("row %05d", (int(table.Found[0])*7919)%n))
	*asked = 0
	table.Grid(lk, 60, 30, true)
	require.Less(t, *asked, 30*5)
}

func TestArrowsOfOrdersAreASCIIWhereAllIs(t *testing.T) {
	t.Parallel()
	r := office(t, 80, 24, asciiEnv).keys("4 o")
	require.Contains(t, r.screen(), "server^")
	r.keys("o")
	require.Contains(t, r.screen(), "serverv")
}

// One long row far away takes nothing from those in sight.
func TestRoomThatRowsInSightLeaveIsForFurtherColumns(t *testing.T) {
	t.Parallel()
	var items []string
	for i := range 100 {
		items = append(items, fmt.Sprintf(`{"uri":"file:///a/%02d","name":"name-%02d","mimeType":"text/plain","size":%d}`, i, i, i+1))
	}
	items = append(items, `{"uri":"file:///z/`+strings.Repeat("long", 20)+`","name":"last","mimeType":"text/plain","size":1}`)
	r := newRig(t, 80, 24, "files").list("files", registry.Resource, items...).keys("4")
	require.Contains(t, r.head("server"), "name")
	require.Contains(t, r.screen(), "name-00")
	require.NotContains(t, r.keys("G").head("server"), "name")
	require.Contains(t, r.keys("g").head("server"), "name")
}

// Whose row it is stands beside the detail, too, and where there is none.
func TestRowsOfLogsSayWhoseTheyAre(t *testing.T) {
	t.Parallel()
	for _, w := range []int{80, 100, 120, 160} {
		r := newRig(t, w, 40, "everything", "notes").ready("everything").ready("notes")
		for i, server := range []string{"everything", "notes"} {
			r.reg.Logs().Append(registry.LogRecord{Time: r.clock.now(), Server: server, Source: registry.SourceStderr, Text: fmt.Sprintf("line %d of a log that is long enough to be cut somewhere", i)})
			r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Session: "s-1", Client: "claude-code", Server: server, Method: "tools/call", Name: server + "_trigger-long-running-operation", Status: "success", Duration: time.Second, Size: 10})
		}
		r.changed(registry.AllChanges)
		for _, entryKeys := range []string{"5", "5 ] ]"} {
			line := r.keys(entryKeys).line("> ")
			require.Regexp(t, `> \d\d:\d\d:\d\d`, line)
			require.Contains(t, line, "notes", "%d cells", w)
			require.Contains(t, r.line("info"), "everyth", "%d cells", w)
		}
		line := r.keys("[").line("> ")
		require.Regexp(t, `> \d\d:\d\d:\d\d claude.* notes +tools/call .*ration +ok`, line, "%d cells", w)
	}
}

func TestAMessageIsNotCutForTheSakeOfMilliseconds(t *testing.T) {
	t.Parallel()
	r := newRig(t, 80, 24, "notes").ready("notes")
	r.reg.Logs().Append(registry.LogRecord{Time: r.clock.now(), Server: "notes", Source: registry.SourceEvent, Text: "a message of forty-nine letters, some of which fit"})
	line := r.changed(registry.Logs).keys("5").line("a message")
	require.Contains(t, line, "some of which fit")
	require.NotContains(t, line, ".000")
	require.Contains(t, newRig(t, 160, 24, "notes").ready("notes").keys("5 F").line("ready"), ".000")
}

func TestAStatusIsNotCutForTheSakeOfSizesAndClients(t *testing.T) {
	t.Parallel()
	for w := 60; w < 220; w++ {
		r := newRig(t, w, 40, "everything").ready("everything")
		for _, status := range []string{"cancelled", "tool error", "failure"} {
			r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Session: "s-1", Client: "claude-code", Server: "everything", Method: "tools/call", Name: "everything_trigger-long-running-operation", Status: status, Duration: time.Second, Size: 10})
		}
		r.changed(registry.Traffic).keys("5 ]")
		for _, whole := range []string{"cancelled", "!tool error", "!failed"} {
			require.Contains(t, r.screen(), whole, "%d cells", w)
		}
		if strings.Contains(r.line("status"), "size") {
			require.Contains(t, r.screen(), "everything_trigger-long-running-operation", "%d cells", w)
		}
	}
}
