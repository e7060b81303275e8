//go:build e2e

package calls

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// longText has lines that contain their position.
var longText = func() string {
	var b strings.Builder
	for b.Len() < 40<<10 {
		b.WriteString("line " + strings.Repeat("=", 20) + " ä\n")
	}
	return b.String()
}()

// long is a server whose tools return long results.
func long() e2e.Obj {
	return e2e.Obj{
		"tools": []e2e.Obj{
			e2e.Tool("long"), e2e.Tool("short"), e2e.Tool("both"), taskTool("task", "optional"),
			e2e.Tool("raised", e2e.Obj{"_meta": e2e.Obj{"anthropic/maxResultSizeChars": 100_000}}),
		},
		"tasks": e2e.Obj{"task": e2e.Obj{"poll": 20}},
		"calls": e2e.Obj{
			"long": longText, "task": longText, "raised": longText, "short": "brief",
			"both": e2e.Obj{"content": []e2e.Obj{{"type": "text", "text": longText}}, "structuredContent": e2e.Obj{"all": longText}},
		},
	}
}

// whole joins the parts of a text that a client received. It returns the text and the
// number of reads.
func whole(c *e2e.Client, result []byte) (text string, reads int) {
	c.T.Helper()
	blocks := e2e.Each(result, "content")
	if len(blocks) == 1 {
		return e2e.Str(blocks[0], "text"), 0
	}
	require.Len(c.T, blocks, 4)
	uri := e2e.Str(blocks[3], "uri")
	require.Contains(c.T, e2e.Str(blocks[1], "text"), "[Goblin removed ")
	require.Contains(c.T, e2e.Str(blocks[1], "text"), uri)
	text = e2e.Str(blocks[0], "text")
	for ; uri != ""; reads++ {
		page := c.Ok("resources/read", e2e.Obj{"uri": uri})
		text += e2e.Str(page, "contents", 0, "text")
		uri = e2e.Str(page, "_meta", "goblin/next")
	}
	return text + e2e.Str(blocks[2], "text"), reads
}

func TestLongResultsAreReadByPages(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		w.Gateway["meta_tools"] = true
		w.Backend("a", long(), e2e.Obj{"max_result": "4KiB"})
		w.Backend("b", long())
		c := connect()
		for tool, reads := range map[string]int{"a_long": 10, "a_both": 10, "a_short": 0, "a_raised": 0, "b_long": 0, "b_raised": 0} {
			result := c.Ok("tools/call", e2e.Obj{"name": tool})
			text, n := whole(c, result)
			require.Equal(t, reads, n, tool)
			want := longText
			if tool == "a_short" {
				want = "brief"
			}
			require.Equal(t, want, text, tool)
			if tool == "a_both" {
				require.Equal(t, longText, e2e.Str(result, "structuredContent", "all"))
			}
		}
		script := `return #tostring(a.long{})`
		require.Equal(t, c.CallText("execute_lua", e2e.Obj{"script": `return #tostring(b.long{})`}), c.CallText("execute_lua", e2e.Obj{"script": script}), "scripts get the whole text")
	})
}

func TestResultsOfGoblinsOwnToolsAreBoundedByTheProfile(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		w.Gateway["meta_tools"] = true
		script := long()
		for i := range 60 {
			script["tools"] = append(script["tools"].([]e2e.Obj), e2e.Tool(fmt.Sprint("t", i), e2e.Obj{"description": strings.Repeat("word ", 30)}))
		}
		w.Backend("b", script)
		w.Profiles = e2e.Obj{"default": e2e.Obj{"max_result": "4KiB", "expose": "search"}}
		c := connect()
		for name, args := range map[string]e2e.Obj{
			"call_tool":     {"name": "b_long", "arguments": e2e.Obj{}},
			"execute_lua":   {"script": `return b.long{}`}, // a script gets the whole text
			"catalog_tools": {},
		} {
			result := c.Ok("tools/call", e2e.Obj{"name": name, "arguments": args})
			for _, block := range e2e.Each(result, "content") {
				require.LessOrEqual(t, len(e2e.Str(block, "text")), 4<<10, name)
			}
			text, reads := whole(c, result)
			require.Greater(t, reads, 1, name)
			switch name {
			case "call_tool":
				require.Equal(t, longText, text)
			case "execute_lua":
				require.True(t, text == longText, "the text differs; it is too long to print")
			default:
				require.JSONEq(t, string(e2e.At(result, "structuredContent")), text, "structured content is not cut")
			}
		}
		short := c.Ok("tools/call", e2e.Obj{"name": "describe_tool", "arguments": e2e.Obj{"name": "b_short"}})
		require.Len(t, e2e.Each(short, "content"), 1)
	})
}

func TestTheRestOfAResultIsItsSessionsOwn(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.AllowDaemon = true
	w.Backend("a", long(), e2e.Obj{"max_result": "4KiB"})
	w.Profiles = e2e.Obj{"wide": e2e.Obj{"max_result": "off"}, "narrow": e2e.Obj{"max_result": "8KiB"}}
	c, other := w.Pipe("stdio"), w.Pipe("stdio")
	c.Init()
	other.Init()
	result := c.Ok("tools/call", e2e.Obj{"name": "a_long"})
	uri := e2e.Str(result, "content", 3, "uri")
	c.Ok("resources/read", e2e.Obj{"uri": uri})
	require.Equal(t, -32002, other.Fault("resources/read", e2e.Obj{"uri": uri}).Code)
	require.Equal(t, -32002, c.Fault("resources/read", e2e.Obj{"uri": uri + "/99"}).Code)

	for profile, reads := range map[string]int{"wide": 0, "narrow": 5} {
		p := w.Pipe("stdio", "--profile", profile)
		p.Init()
		_, n := whole(p, p.Ok("tools/call", e2e.Obj{"name": "a_long"}))
		require.Equal(t, reads, n, profile)
	}

	task := startTask(c, "a_task")
	_, n := whole(c, c.Ok("tasks/result", e2e.Obj{"taskId": task}))
	require.Equal(t, 10, n)

	require.Contains(t, w.Succeeds("call", "a_long"), longText, "commands get the whole text")
}

func TestOlderClientsGetNoLinksToTheRest(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("a", long(), e2e.Obj{"max_result": 4096})
	c := w.Pipe("stdio", "--standalone")
	c.Ok("initialize", e2e.Obj{"protocolVersion": "2025-03-26", "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "old", "version": "1"}})
	c.Notify("notifications/initialized", e2e.Obj{})
	blocks := e2e.Each(c.Ok("tools/call", e2e.Obj{"name": "a_long"}), "content")
	require.Len(t, blocks, 3)
	_, uri, _ := strings.Cut(e2e.Str(blocks[1], "text"), "resource ")
	uri, _, _ = strings.Cut(uri, ",")
	uri, _, _ = strings.Cut(uri, " ")
	require.NotEmpty(t, e2e.Str(c.Ok("resources/read", e2e.Obj{"uri": uri}), "contents", 0, "text"))
}
