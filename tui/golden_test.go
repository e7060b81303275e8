package tui

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
	"goblin/tui/usage"
)

var update = flag.Bool("update", false, "write the golden screens anew")

// golden compares a frame with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got+"\n"), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test ./tui -run Golden -update writes it")
	require.Equal(t, string(want), got+"\n", "%s differs; go test ./tui -run Golden -update takes the new one", name)
}

// office is a screen over three servers with something of everything.
func office(t testing.TB, w, h int, env map[string]string) *rig {
	t.Helper()
	clock := &fakeClock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	reg := registry.New(registry.Options{Servers: []string{"files", "github", "weather", "legacy"}, Now: clock.now})
	r := rigOver(t, reg, clock, w, h, env)
	r.ready("files").ready("github").ready("weather")
	reg.SetState("legacy", registry.ServerState{State: registry.StateRetrying, Transport: "http", LastError: "connect \"legacy\": connection refused", Restarts: 3})
	var files []string
	for i := range 12 {
		files = append(files, fmt.Sprintf(`{"uri":"file:///srv/notes/day-%02d.md","name":"day-%02d.md","title":"Day %d","mimeType":"text/markdown","size":%d}`, i+1, i+1, i+1, 800*(i+1)))
	}
	files = append(
		files,
		`{"uri":"file:///srv/config.json","name":"config.json","mimeType":"application/json","size":512,"description":"What the office runs on"}`,
		`{"uri":"file:///srv/写真/猫🐈.png","name":"猫🐈.png","mimeType":"image/png","size":123456}`,
		`{"uri":"file:///srv/evil\u001b]0;owned\u0007\u202e.txt","name":"evil\u001b[2J","mimeType":"text/plain"}`,
		`{"uri":"file:///srv/a/very/long/path/that/does/not/fit/into/any/column/of/a/terminal/and/so/is/cut/in/its/middle/readme.md","name":"readme.md","mimeType":"text/markdown"}`,
	)
	r.list("files", registry.Resource, files...)
	r.list("files", registry.Template, `{"uriTemplate":"file:///srv/{+path}","name":"any file","description":"A file by its path"}`)
	r.list("github", registry.Template, `{"uriTemplate":"repo://{owner}/{name}/readme","name":"readme","mimeType":"text/markdown"}`)
	r.list("github", registry.Tool,
		`{"name":"create_issue","title":"Create an issue","description":"Creates an issue in a repository.\nIt is public.","inputSchema":{"type":"object","properties":{"title":{"type":"string","description":"One line"},"labels":{"type":"array","items":{"type":"string"}},"priority":{"enum":["low","high"]}},"required":["title"]},"annotations":{"openWorldHint":true}}`,
		`{"name":"delete_repo","description":"Deletes a repository","inputSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"annotations":{"destructiveHint":true,"idempotentHint":true}}`,
		`{"name":"search","description":"Searches","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
	r.list("weather", registry.Tool, `{"name":"forecast","description":"Tomorrow's weather","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"annotations":{"readOnlyHint":true,"openWorldHint":true}}`)
	r.list("github", registry.Prompt,
		`{"name":"review","title":"Review a change","description":"Reads a change with care","arguments":[{"name":"url","description":"Where it is","required":true},{"name":"tone"}]}`,
		`{"name":"standup","description":"What happened since yesterday"}`)
	reg.SetSession(registry.Session{ID: "me", Transport: "screen", Client: "goblin screen", Screen: true, Since: clock.now()})
	reg.SetSession(registry.Session{ID: "c1", Transport: "stdio", Client: "claude-code", Version: "2.1", Protocol: "2025-11-25", Since: clock.now()})
	reg.SetSession(registry.Session{ID: "c2", Transport: "http", Client: "inspector", Version: "0.17", Protocol: "2025-06-18", Since: clock.now()})
	reg.SetSubscription(registry.SubscriptionState{Server: "files", URI: "file:///srv/config.json", Status: registry.SubscriptionOn, Holders: 2, Sessions: []string{"me", "c1"}})
	reg.SetSubscription(registry.SubscriptionState{Server: "files", URI: "file:///srv/notes/day-03.md", Status: registry.SubscriptionRefused, Error: "too many watchers"})
	reg.Touched("files", "file:///srv/config.json")
	reg.Touched("files", "file:///srv/config.json")
	r.traffic()
	reg.Logs().Append(registry.LogRecord{Time: clock.now(), Server: "github", Source: registry.SourceStderr, Level: slog.LevelInfo, Text: "listening \x1b[31mred\x1b[0m"})
	reg.Logs().Append(registry.LogRecord{Time: clock.now(), Source: registry.SourceGoblin, Level: slog.LevelWarn, Text: "Server does not answer server=legacy"})
	r.answer("resources/read", `{"contents":[{"uri":"mcp://files/file:///srv/config.json","mimeType":"application/json","text":"{\"name\":\"office\",\"ports\":[80,443],\"deep\":{\"a\":null,\"b\":true}}"}]}`)
	r.answer("tools/call", `{"content":[{"type":"text","text":"It will rain."}],"structuredContent":{"rain":true,"mm":4.5}}`)
	r.answer("prompts/get", `{"description":"Review","messages":[{"role":"user","content":{"type":"text","text":"# Please\n\nreview **this**."}}]}`)
	r.subscribes()
	r.answer("completion/complete", `{"completion":{"values":["goblin","gobbler"],"total":2}}`)
	r.backend.usage = costs(clock.now())
	r.changed(registry.AllChanges)
	r.beat(time.Minute) // what was new is not any more
	return r
}

// answer has a method answered by one result.
func (r *rig) answer(method, result string) {
	r.backend.mu.Lock()
	defer r.backend.mu.Unlock()
	r.backend.answers[method] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		return json.RawMessage(result), nil
	}
}

// refuse has a method fail.
func (r *rig) refuse(method, message string) {
	r.backend.mu.Lock()
	defer r.backend.mu.Unlock()
	r.backend.answers[method] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		return nil, errors.New(message)
	}
}

// traffic records a few requests.
func (r *rig) traffic() {
	for i, rec := range []registry.TrafficRecord{
		{Session: "c1", Client: "claude-code", Server: "weather", Method: "tools/call", Name: "weather_forecast", Duration: 3 * time.Millisecond, Size: 120, Status: "success", Request: []byte(`{"name":"weather_forecast","arguments":{"city":"Oslo"}}`), Response: []byte(`{"content":[{"type":"text","text":"It will rain."}]}`), Wire: []byte("i42\ns7\n")},
		{Session: "c2", Client: "inspector", Server: "files", Method: "resources/read", Name: "mcp://files/file:///srv/config.json", Duration: 700 * time.Microsecond, Size: 90, Status: "success", Request: []byte(`{"uri":"mcp://files/file:///srv/config.json"}`), Response: []byte(`{"contents":[]}`)},
		{Session: "c2", Client: "inspector", Server: "legacy", Method: "tools/call", Name: "legacy_run", Duration: 30 * time.Second, Status: "failure", Code: -32603, Request: []byte(`{"name":"legacy_run"}`), Response: []byte(`{"code":-32603,"message":"CONNECTION_ERROR: legacy"}`)},
		{Session: "c1", Client: "claude-code", Server: "files", Direction: registry.ToClient, Method: "notifications/resources/updated", Name: "mcp://files/file:///srv/config.json", Status: "notification", Request: []byte(`{"uri":"mcp://files/file:///srv/config.json"}`)},
	} {
		rec.Time = r.clock.now().Add(time.Duration(i) * time.Second)
		r.reg.Traffic().Append(rec)
	}
}

// plainEnv is a terminal that wants no colours, colourEnv one of today.
var (
	plainEnv  = map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1"}
	colourEnv = map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8"}
	asciiEnv  = map[string]string{"TERM": "vt100", "LANG": "C", "NO_COLOR": "1"}
)

// TestGoldenScreens are the screens as a user sees them after some keys. Run
// with -update, look at each changed file, and commit it.
func TestGoldenScreens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, keys string }{
		{"servers", "1"},
		{"tools", "2"},
		{"tools-form", "2 c"},
		{"prompts", "3"},
		{"resources", "4"},
		{"resources-filter", "4 / config space server:files enter"},
		{"resources-read", "4 / config enter enter"},
		{"templates", "4 t"},
		{"logs-events", "5"},
		{"logs-traffic", "5 ]"},
		{"logs-exchange", "5 ] k k enter"},
		{"usage", "6"},
		{"usage-clients", "6 ] j enter"},
		{"help", "?"},
		{"palette", ": t h e m e"},
		{"facet", "f"},
		{"subscriptions", "w"},
		{"clients", "0"},
		{"marked", "4 j space space"},
		{"past", "2 j j c ctrl+s H"},
		{"path", "4 / config enter enter | p o r t s"},
		{"empty", "/ zzzzz"},
		{"confirm", "q"},
	} {
		sizes := [][2]int{{80, 24}, {120, 40}, {250, 60}}
		if slices.Contains(lists, c.name) {
			sizes = sizes[:2] // more are below
		}
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1]), func(t *testing.T) {
				r := office(t, size[0], size[1], plainEnv).keys(c.keys)
				r.app.Flash = uicontext.Flash{}
				r.untimed()
				golden(t, fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1]), r.screen())
				if size[0] != 120 {
					return
				}
				r = office(t, size[0], size[1], colourEnv).keys(c.keys)
				r.app.Flash = uicontext.Flash{}
				r.untimed()
				r.screen()
				golden(t, c.name+"-120x40-colour", r.app.View())
			})
		}
	}
	t.Run("ascii", func(t *testing.T) {
		s := office(t, 80, 24, asciiEnv).keys("4").screen()
		for _, c := range s {
			require.Less(t, c, rune(0x3100), "ASCII terminals get ASCII, but for what servers call their things")
		}
		golden(t, "resources-80x24-ascii", s)
	})
	for _, theme := range []string{"dark", "light"} {
		t.Run(theme, func(t *testing.T) {
			r := office(t, 120, 40, colourEnv)
			r.app.themeName = theme
			r.app.SetTheme()
			r.keys("4")
			r.screen()
			golden(t, "resources-120x40-"+theme, r.app.View())
		})
	}
}

// lists are the golden screens of panes and lists.
var lists = []string{"servers", "tools", "prompts", "resources", "templates", "logs-events", "logs-traffic", "usage", "usage-clients", "clients", "subscriptions"}

// TestGoldenScreensOfLists are the panes and lists in larger terminals and with colours, one
// file for each kind of terminal.
func TestGoldenScreensOfLists(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {160, 45}, {220, 60}} {
		for name, env := range map[string]map[string]string{"": plainEnv, "-colour": colourEnv} {
			if size[0] == 80 && name == "" {
				continue // a file for each is above
			}
			t.Run(fmt.Sprintf("%dx%d%s", size[0], size[1], name), func(t *testing.T) {
				var all strings.Builder
				for _, list := range [...][2]string{
					{"servers", "1"},
					{"tools", "2"},
					{"tools, full width", "2 F"},
					{"prompts", "3"},
					{"resources", "4"},
					{"resources, full width, by size", "4 F O O O O O O"},
					{"events", "5"},
					{"traffic", "5 ]"},
					{"traffic, full width", "5 ] F"},
					{"usage", "6"},
					{"clients", "0"},
					{"subscriptions", "w"},
				} {
					r := office(t, size[0], size[1], env).keys(list[1])
					r.app.Flash = uicontext.Flash{}
					r.untimed()
					frame := r.screen()
					if name != "" {
						frame = r.app.View()
					}
					all.WriteString("== " + list[0] + "\n" + frame + "\n")
				}
				golden(t, fmt.Sprintf("lists-%dx%d%s", size[0], size[1], name), all.String())
			})
		}
	}
}

// untimed takes the measured time of the last search off the screen.
func (r *rig) untimed() {
	for _, p := range r.app.Panes {
		switch p := p.(type) {
		case *pane.Servers:
			p.Table.LastSearch = 0
		case *pane.Tools:
			p.All.Table.LastSearch = 0
		case *pane.Prompts:
			p.All.Table.LastSearch = 0
		case *pane.Resources:
			p.All.Table.LastSearch, p.Templates.Table.LastSearch = 0, 0
		case *usage.Pane:
			for _, t := range p.Tables {
				t.LastSearch = 0
			}
		case *pane.Logs:
			p.Logs[pane.TabEvents].Table.LastSearch, p.Logs[pane.TabStderr].Table.LastSearch, p.Logs[pane.TabGoblin].Table.LastSearch, p.Traffic.Table.LastSearch = 0, 0, 0, 0
		}
	}
}

// sgr are the only escape sequences of a frame: they switch styles.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// FuzzFrames checks that every frame is exactly as many lines of exactly as many
// cells as the terminal has, whatever size it has and whatever is typed.
func FuzzFrames(f *testing.F) {
	f.Add(uint8(80), uint8(24), "4jjenter/conf")
	f.Add(uint8(40), uint8(10), "1234512345???")
	f.Add(uint8(250), uint8(60), "2c:q")
	f.Add(uint8(111), uint8(18), "5]]/err:yes")
	f.Add(uint8(39), uint8(9), "q")
	f.Add(uint8(90), uint8(30), "2jjc\n\t\n\x1bH\x1b|a[\x1b\\\\}}{ s ")
	f.Fuzz(func(t *testing.T, w, h uint8, keys string) {
		if w == 0 || h == 0 || len(keys) > 40 {
			return
		}
		r := office(t, int(w), int(h), plainEnv)
		r.screen()
		for _, c := range keys {
			switch c {
			case '\n':
				r.keys("enter")
			case '\t':
				r.keys("tab")
			case 0x1b:
				r.keys("esc")
			default:
				r.text(string(c))
			}
			rest := sgr.ReplaceAllString(r.app.View(), "")
			require.False(t, strings.ContainsFunc(rest, func(c rune) bool {
				return c != '\n' && (unicode.IsControl(c) || c == '\u202e' || c == '\u200b')
			}), "%q", rest)
			r.screen()
			if r.app.quitting {
				return
			}
		}
	})
}
